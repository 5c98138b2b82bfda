import type { Command } from "commander";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { carryOutIntent, followOperation } from "./carry-out-intent.js";
import { queueText } from "./instance-text.js";
import {
  type IntentOptions,
  type PlatformOptions,
  theInstance,
  theOperation,
  withIntentOptions,
  withPlatformOptions,
  withTimeoutOption,
} from "./platform-options.js";
import type { PlatformSession } from "./platform-session.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

/** The commands about what is queued or has failed: cancel, hold, release, retry, wait. */
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
      "Cancels what is queued and was not sent yet; a delete is called off, as restore does. What was sent to a broker cannot be taken back: it runs to its end, and a create that is not wanted any more is deleted.",
    example: "not that",
  });
  registerHold(platform, surroundings);
  control("release", {
    summary: "let go on what is held",
    description: "Lets go on what is held, whether a person or a failure before it holds it back.",
    example: "go on with it",
  });
  registerRetry(platform, surroundings);
  registerWait(platform, surroundings);
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

function registerWait(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("wait")
    .summary("wait for the end of a change")
    .description("Waits for the end of a change that somebody asked for, and tells what became of it.")
    .argument("<instance>", theInstance)
    .argument("<operation>", theOperation)
    .action((instance: string, operation: string, options: PlatformOptions & { readonly timeout?: number }) =>
      runPlatformCommand(options, surroundings, `wait for ${operation}`, async (session) => {
        // A platform that is not there, or knows nothing of it, is not waited for.
        await session.ask("operation", { space: session.space, instance, operation });
        const told = { instance, what: `operation ${operation} of ${instance}`, done: `${operation} has succeeded` };
        return followOperation(session, { ...options, wait: true }, told, operation);
      }),
    );
  withPlatformOptions(withTimeoutOption(command));
  withExamples(command, [{ does: "after --no-wait", command: "osbert platform wait my-db 12-0f3c2a --timeout 10m" }]);
}

async function controlled(
  session: PlatformSession,
  route: "cancel" | "hold" | "release",
  { instance, operation }: { readonly instance: string; readonly operation: string },
  body: object,
) {
  return showAnswer(
    session,
    (ask) => ask(route, { space: session.space, instance, operation }, { body }),
    ({ queue }) => queueText(queue),
  );
}
