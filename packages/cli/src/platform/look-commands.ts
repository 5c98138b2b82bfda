import type { Command } from "commander";
import { facts } from "../admin/print.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { bindingsText, exactState, instanceText, queueText, stateText, withExactNumbers } from "./instance-text.js";
import {
  type PageOptions,
  type PlatformOptions,
  theInstance,
  withPageOptions,
  withPlatformOptions,
} from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

/** The commands that look and change nothing: list, show, queue, bindings, whoami. */
export function registerLookCommands(platform: Command, surroundings: Surroundings): void {
  registerList(platform, surroundings);
  registerShow(platform, surroundings);
  registerQueue(platform, surroundings);
  registerBindings(platform, surroundings);
  registerWhoami(platform, surroundings);
}

interface ListOptions extends PageOptions {
  readonly phase?: string;
  readonly broker?: string;
  readonly allSpaces?: boolean;
}

function registerList(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("list")
    .summary("list the instances of a space")
    .description("Lists the instances of a space, with what is open on each.")
    .option("--phase <phase>", "only those in this phase")
    .option("--broker <name>", "only those of this broker")
    .option("--all-spaces", "of all spaces; for operators")
    .action((options: ListOptions) =>
      runPlatformCommand(options, surroundings, "list the instances", (session) => {
        const { phase, broker, allSpaces = false } = options;
        return printPage(
          session,
          (page) => {
            const query = { ...page, phase, broker };
            return allSpaces
              ? session.ask("allInstances", {}, { query })
              : session.ask("instances", { space: session.space }, { query });
          },
          options,
          [...(allSpaces ? ["SPACE"] : []), "NAME", "SERVICE", "PLAN", "PHASE", "OPEN", "BINDINGS", "BROKER"],
          (one) => [
            ...(allSpaces ? [one.space] : []),
            one.name,
            one.offering.name,
            one.plan?.name ?? "-",
            one.usable || one.plan === null ? one.phase : `${one.phase} (unusable)`,
            String(one.open),
            String(one.bindings),
            one.broker,
          ],
          allSpaces ? "there are none" : `there are none in space ${session.space}`,
        );
      }),
    );
  withPageOptions(command);
  withExamples(command, [{ does: "what is halted", command: "osbert platform list --phase halted" }]);
}

function registerShow(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("show")
    .summary("show an instance: what is, what is under way, what will be")
    .description("Shows everything about an instance in one look: what it is, what is under way, and what it will be.")
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `show ${name}`, (session) =>
        showAnswer(
          session,
          (ask) => ask("instance", { space: session.space, instance: name }),
          (instance, text) => instanceText(withExactNumbers(instance, text)),
        ),
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "how is it?", command: "osbert platform show my-db" }]);
}

function registerQueue(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("queue")
    .summary("show what is wanted of an instance, in order")
    .description(
      "Shows what is wanted of an instance in the order in which it will be done: by whom, since when, why it waits.",
    )
    .argument("<instance>", theInstance)
    .argument("[operation]", "only this one, and what the instance will be after it")
    .action((name: string, operation: string | undefined, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `show the queue of ${name}`, (session) => {
        const values = { space: session.space, instance: name };
        if (operation === undefined)
          return showAnswer(
            session,
            (ask) => ask("queue", values),
            ({ items }) => queueText(items),
          );
        return showAnswer(
          session,
          (ask) => ask("queued", { ...values, operation }),
          ({ intent, after }, text) =>
            queueText([intent]) + facts({ "will be": after === null ? "gone" : stateText(exactState(after, text)) }),
        );
      }),
    );
  withPlatformOptions(command);
  withExamples(command, [
    { does: "what comes next", command: "osbert platform queue my-db" },
    { does: "and what will it be after that?", command: "osbert platform queue my-db 12-0f3c2a" },
  ]);
}

function registerBindings(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("bindings")
    .summary("list the bindings of an instance")
    .description("Lists the bindings of an instance, without their credentials.")
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `list the bindings of ${name}`, (session) =>
        showAnswer(
          session,
          (ask) => ask("bindings", { space: session.space, instance: name }),
          ({ items }) => bindingsText(items) || `${name} has none\n`,
        ),
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "who uses it?", command: "osbert platform bindings my-db" }]);
}

function registerWhoami(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("whoami")
    .summary("show who you are to the platform, and what you may do")
    .description("Shows who you are to the platform, in which spaces, and what you may do there.")
    .action((options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, "ask who you are", (session) =>
        showAnswer(
          session,
          (ask) => ask("me", {}),
          ({ name, role, spaces }) =>
            facts({
              you: name,
              may: roleTexts[role],
              in: spaces === null ? "all spaces" : spaces.join(", ") || "no space",
            }),
        ),
      ),
    );
  withPlatformOptions(command);
  withExamples(command, [{ does: "why am I not allowed to?", command: "osbert platform whoami" }]);
}

const roleTexts = {
  see: "see what is there",
  change: "change what is there, and read credentials",
  operate: "operate the platform: everything, in all spaces",
} as const;
