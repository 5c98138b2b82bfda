import { type Command, Option } from "commander";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type PageOptions, type PlatformOptions, withPageOptions, withPlatformOptions } from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

interface OrphanOptions extends PageOptions {
  readonly broker?: string;
  readonly ofSpace?: string;
  readonly state?: string;
}

/** `osbert platform orphans …`: what may exist at brokers although nobody has it. */
export function registerOrphanCommands(platform: Command, surroundings: Surroundings): void {
  const orphans = platform
    .command("orphans")
    .summary("list and end what may exist at brokers although nobody has it")
    .description("The ledger of what may exist at brokers although nobody has it.");

  const list = orphans
    .command("list")
    .summary("list what may exist at brokers although nobody has it")
    .description(
      "Lists what may exist at brokers although nobody has it: why, and how often it was tried to delete it.",
    )
    .option("--broker <name>", "only of this broker")
    .option("--of-space <name>", "only of this space")
    .addOption(
      new Option("--state <state>", "only those in this state").choices([
        "open",
        "held",
        "mitigated",
        "dismissed",
        "abandoned",
      ]),
    )
    .action((options: OrphanOptions) =>
      runPlatformCommand(options, surroundings, "list the orphans", (session) =>
        printPage(
          session,
          (page) =>
            session.ask(
              "orphans",
              {},
              { query: { ...page, broker: options.broker, space: options.ofSpace, state: options.state } },
            ),
          options,
          ["KEY", "STATE", "SPACE", "INSTANCE", "SINCE", "TRIES", "LAST ANSWER", "WHY"],
          (one) => [
            one.key,
            one.state,
            one.space,
            one.instance,
            one.suspected_at,
            String(one.tries),
            one.last_answer ?? "-",
            one.reason,
          ],
          "there are none",
        ),
      ),
    );
  withPageOptions(list);
  withExamples(list, [{ does: "what costs money in vain", command: "osbert platform orphans list --state open" }]);

  const mitigate = orphans
    .command("mitigate")
    .summary("delete one at its broker now")
    .description("Deletes an orphan at its broker now: one that is held, or one whose next try is far away.")
    .argument("<key>", "as the list tells it")
    .action((orphan: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `mitigate ${orphan}`, (session) =>
        showAnswer(
          session,
          (ask) => ask("mitigateOrphan", { orphan }, { body: {} }),
          ({ state }) => `${orphan} is ${state}, and is tried now\n`,
        ),
      ),
    );
  withPlatformOptions(mitigate);
  withExamples(mitigate, [{ does: "at once", command: "osbert platform orphans mitigate orphan/databases/0f3c2a" }]);

  const dismiss = orphans
    .command("dismiss")
    .summary("let one be")
    .description("Lets an orphan be: nobody tries to delete it any more. The reason stays in the ledger.")
    .argument("<key>", "as the list tells it")
    .requiredOption("--reason <text>", "why")
    .action((orphan: string, options: PlatformOptions & { readonly reason: string }) =>
      runPlatformCommand(options, surroundings, `dismiss ${orphan}`, (session) =>
        showAnswer(
          session,
          (ask) => ask("dismissOrphan", { orphan }, { body: { reason: options.reason } }),
          () => `${orphan} is dismissed\n`,
        ),
      ),
    );
  withPlatformOptions(dismiss);
  withExamples(dismiss, [
    {
      does: "somebody looked",
      command: "osbert platform orphans dismiss orphan/databases/0f3c2a --reason 'looked: there is nothing'",
    },
  ]);
}
