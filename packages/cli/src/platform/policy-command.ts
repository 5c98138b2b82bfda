import { type Command, Option } from "commander";
import { facts } from "../admin/print.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type PlatformOptions, theInstance, withPlatformOptions } from "./platform-options.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

const policies = {
  onFailure: ["auto", "halt", "continue"],
  concurrency: ["queue", "reject", "replace"],
  orphans: ["mitigate", "confirm", "hold"],
} as const;

/** What a command says of the policies of an instance. */
export interface PolicyChoice {
  readonly onFailure?: string;
  readonly concurrency?: string;
  readonly orphans?: string;
}

export function withPolicyOptions(command: Command): Command {
  const option = (flags: string, meaning: string, of: readonly string[]) =>
    command.addOption(new Option(flags, meaning).choices([...of]));
  option("--on-failure <policy>", "what becomes of later changes when one fails", policies.onFailure);
  option("--concurrency <policy>", "what becomes of a change while another is open", policies.concurrency);
  option("--orphans <policy>", "what becomes of what may be left at its broker", policies.orphans);
  return command;
}

/** `undefined`: nothing is said of them. */
export function policyBody({ onFailure, concurrency, orphans }: PolicyChoice): object | undefined {
  const said = onFailure !== undefined || concurrency !== undefined || orphans !== undefined;
  return said ? { on_failure: onFailure, concurrency, orphans } : undefined;
}

/** `osbert platform policy`: what an instance does when changes fail, or meet. */
export function registerPolicy(platform: Command, surroundings: Surroundings): void {
  const command = platform
    .command("policy")
    .summary("show or change what an instance does when changes fail or meet")
    .description(
      "Shows the policies of an instance, or changes those that are named. See the concept of the queue for what they mean.",
    )
    .argument("<instance>", theInstance)
    .action((name: string, options: PlatformOptions & PolicyChoice) =>
      runPlatformCommand(options, surroundings, `change the policy of ${name}`, (session) => {
        const values = { space: session.space, instance: name };
        const body = policyBody(options);
        return showAnswer(
          session,
          (ask) => (body === undefined ? ask("instance", values) : ask("setPolicy", values, { body })),
          ({ policy }) =>
            facts({ "on failure": policy.on_failure, concurrency: policy.concurrency, orphans: policy.orphans }),
        );
      }),
    );
  withPlatformOptions(withPolicyOptions(command));
  withExamples(command, [
    { does: "what is it?", command: "osbert platform policy my-db" },
    { does: "one change at a time", command: "osbert platform policy my-db --concurrency reject" },
  ]);
}
