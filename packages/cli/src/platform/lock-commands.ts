import { type Command, Option } from "commander";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type PlatformOptions, theInstance, withPlatformOptions } from "./platform-options.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";
import { untilTime } from "./until-option.js";

/** The options of a lock, and of a freeze, which is one for many. */
export interface HoldBackOptions extends PlatformOptions {
  readonly reason: string;
  readonly effect?: "queue" | "reject";
  readonly exceptDeletes?: boolean;
  readonly until?: string;
}

export function withHoldBackOptions(command: Command): Command {
  return withPlatformOptions(
    command
      .requiredOption("--reason <text>", "why; whoever is held back reads it")
      .addOption(
        new Option("--effect <effect>", "changes are taken and wait (queue, the default), or are refused").choices([
          "queue",
          "reject",
        ]),
      )
      .option("--except-deletes", "whatever is to go may go")
      .option("--until <time>", "when it ends by itself: 2h from now, or 2030-01-31T06:00:00Z"),
  );
}

export function holdBackBody({ reason, effect, exceptDeletes, until }: HoldBackOptions, now: number): object {
  return { reason, effect, deletes_exempt: exceptDeletes, until: untilTime(until, now) };
}

/** The commands that hold back changes of one instance: lock, unlock. */
export function registerLockCommands(platform: Command, surroundings: Surroundings): void {
  const lock = platform
    .command("lock")
    .summary("hold back changes of an instance")
    .description("Locks an instance: changes of it wait, or are refused, until it is unlocked or the lock ends.")
    .argument("<instance>", theInstance)
    .action((name: string, options: HoldBackOptions) =>
      runPlatformCommand(options, surroundings, `lock ${name}`, (session) =>
        showAnswer(
          session,
          (ask) =>
            ask(
              "lockInstance",
              { space: session.space, instance: name },
              { body: holdBackBody(options, surroundings.now()) },
            ),
          (instance) => `${name} is locked${instance.lock?.until ? ` until ${instance.lock.until}` : ""}\n`,
        ),
      ),
    );
  withHoldBackOptions(lock);
  withExamples(lock, [
    { does: "while somebody looks at it", command: "osbert platform lock my-db --reason 'audit' --until 2h" },
    {
      does: "nobody may even ask",
      command: "osbert platform lock my-db --reason 'end of the year' --effect reject --until 2030-01-02T06:00:00Z",
    },
  ]);

  const unlock = platform
    .command("unlock")
    .summary("let changes of an instance go on")
    .description("Unlocks an instance. What waited goes on. The lock of somebody else is lifted by an operator.")
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `unlock ${name}`, (session) =>
        showAnswer(
          session,
          (ask) => ask("unlockInstance", { space: session.space, instance: name }, { body: {} }),
          () => `${name} is not locked\n`,
        ),
      ),
    );
  withPlatformOptions(unlock);
  withExamples(unlock, [{ does: "go on", command: "osbert platform unlock my-db" }]);
}
