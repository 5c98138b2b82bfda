import type { Command } from "commander";
import { exitStatuses } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { carryOutIntent } from "./carry-out-intent.js";
import { queueText } from "./instance-text.js";
import {
  type IntentOptions,
  type PlatformOptions,
  withIntentOptions,
  withPlatformOptions,
} from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { runPlatformCommand } from "./run-platform-command.js";

const theInstance = "the name of the instance";
const theOperation = "the operation's id, as show and queue tell it";

/** The commands about what is queued or has failed: cancel, hold, release, retry. */
export function registerControlCommands(platform: Command, surroundings: Surroundings): void {
  const control = (
    name: "cancel" | "release",
    { summary, description, example }: { summary: string; description: string; example: string },
  ) => {
    const command = platform
      .command(name)
      .summary(summary)
      .description(description)
      .argument("<instance>", theInstance)
      .argument("<operation>", theOperation)
      .action((instance: string, operation: string, options: PlatformOptions) =>
        runPlatformCommand(options, surroundings, `${name} ${operation}`, (session) =>
          controlled(session, name, { instance, operation }, {}),
        ),
      );
    withPlatformOptions(command);
    withExamples(command, [{ does: example, command: `osbert platform ${name} my-db 12-0f3c2a` }]);
  };
  control("cancel", {
    summary: "cancel what is queued",
    description:
      "Cancels what is queued. What was sent to a broker cannot be taken back: a create is deleted instead, anything else runs to its end.",
    example: "not that",
  });
  registerHold(platform, surroundings);
  control("release", {
    summary: "let go on what is held",
    description: "Lets go on what is held, whether a person or a failure before it holds it back.",
    example: "go on with it",
  });
  registerRetry(platform, surroundings);
}

function registerHold(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("hold")
    .summary("hold back what is queued")
    .description("Holds back what is queued until it is released. The reason stands in the journal.")
    .argument("<instance>", theInstance)
    .argument("<operation>", theOperation)
    .requiredOption("--reason <text>", "why")
    .action((instance: string, operation: string, options: PlatformOptions & { readonly reason: string }) =>
      runPlatformCommand(options, surroundings, `hold ${operation}`, (session) =>
        controlled(session, "hold", { instance, operation }, { reason: options.reason }),
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [
    { does: "not before Monday", command: "osbert platform hold my-db 12-0f3c2a --reason 'not before Monday'" },
  ]);
}

function registerRetry(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("retry")
    .summary("want once more what failed")
    .description("Wants once more what failed, as a new change that names the old one, and waits for it.")
    .argument("<instance>", theInstance)
    .argument("<operation>", theOperation)
    .action((instance: string, operation: string, options: IntentOptions) =>
      runPlatformCommand(options, surroundings, `retry ${operation}`, (session) =>
        carryOutIntent(session, options, {
          instance,
          what: `trying ${operation} again`,
          done: `${instance}: it has succeeded`,
          ask: ({ ask }, query) => ask("retry", { space: session.space, instance, operation }, { query, body: {} }),
        }),
      ),
    );
  withIntentOptions(command);
  withExamples(command, [{ does: "now that the broker is mended", command: "osbert platform retry my-db 12-0f3c2a" }]);
}

async function controlled(
  session: PlatformSession,
  route: "cancel" | "hold" | "release",
  { instance, operation }: { readonly instance: string; readonly operation: string },
  body: object,
) {
  const { ask, text } = session.askWith({});
  const seen = await ask(route, { space: session.space, instance, operation }, { body });
  session.surroundings.stdout.write(session.json ? `${text()}\n` : queueText(seen.queue));
  return exitStatuses.succeeded.status;
}
