import { type Command, InvalidArgumentError } from "commander";
import { exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type NamedOffer, offeredIds, offeredNames } from "./offered-ids.js";
import { type PlatformOptions, withPlatformOptions } from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";

/** `osbert platform quotas …`: how many instances and bindings a space may have. */
export function registerQuotaCommands(platform: Command, surroundings: Surroundings): void {
  const quotas = platform
    .command("quotas")
    .summary("list and set how many instances and bindings a space may have")
    .description(
      "How many instances and bindings a space may have. Operators set it; whoever sees a space is told what is used.",
    );

  const list = quotas
    .command("list")
    .summary("list what holds in a space, and how much of it is used")
    .description("Lists the quotas that hold in the space, and how much of each is used.")
    .option("--all-spaces", "all quotas there are, without what is used; for operators")
    .action((options: PlatformOptions & { readonly allSpaces?: boolean }) =>
      runPlatformCommand(options, surroundings, "list the quotas", async (session) => {
        const names = session.json ? new Map<string, string>() : await offeredNames(session);
        if (options.allSpaces)
          return printPage(
            session,
            () => session.ask("quotas", {}),
            all,
            ["NAME", "SPACE", "COUNTS", "LIMIT", "BY", "SINCE"],
            (one) => [one.name, one.space ?? "each", countedOf(one, names), String(one.limit), one.by, one.at],
            "there are none",
          );
        return printPage(
          session,
          () => session.ask("quotasOfSpace", { space: session.space }),
          all,
          ["NAME", "COUNTS", "USED", "LIMIT"],
          (one) => [one.name, countedOf(one, names), String(one.used), String(one.limit)],
          "none holds here",
        );
      }),
    );
  withPlatformOptions(list);
  withExamples(list, [{ does: "how many more may we have?", command: "osbert platform quotas list" }]);

  interface SetOptions extends PlatformOptions, NamedOffer {
    readonly limit: number;
    readonly bindings?: boolean;
    readonly ofSpace?: string;
  }
  const set = quotas
    .command("set")
    .summary("set how many instances or bindings a space may have")
    .description("Sets a quota by its name. What is there stays, also if there is more of it.")
    .argument("<quota>", "its name")
    .requiredOption("--limit <number>", "so many instances of one space; 0 allows none", parseLimit)
    .option("--bindings", "count bindings, and not instances")
    .option("--of-space <name>", "only of this space (else of each on its own)")
    .option("--broker <name>", "count only what is of this broker")
    .option("--service <name>", "count only what is of this service")
    .option("--plan <name>", "count only what is of this plan of the service")
    .action((quota: string, options: SetOptions) =>
      runPlatformCommand(options, surroundings, `set the quota ${quota}`, async (session) => {
        const { limit, ofSpace: space, broker } = options;
        const counts = options.bindings ? "bindings" : "instances";
        const body = { counts, limit, space, broker, ...(await offeredIds(session, options)) };
        return showAnswer(
          session,
          (ask) => ask("setQuota", { quota }, { body }),
          (one) =>
            `${one.name} allows ${one.limit} ${one.counts === "bindings" ? "bindings " : ""}in ${one.space ?? "each space"}\n`,
        );
      }),
    );
  withPlatformOptions(set);
  withExamples(set, [
    { does: "ten instances in every space", command: "osbert platform quotas set everywhere --limit 10" },
    {
      does: "two large databases in one space",
      command: "osbert platform quotas set shop-large --limit 2 --of-space shop --service database --plan large",
    },
    { does: "a hundred bindings in every space", command: "osbert platform quotas set keys --limit 100 --bindings" },
  ]);

  const remove = quotas
    .command("remove")
    .summary("remove a quota")
    .description("Removes a quota. What others allow still holds.")
    .argument("<quota>", "its name")
    .action((quota: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `remove the quota ${quota}`, async (session) => {
        await session.ask("removeQuota", { quota });
        surroundings.stdout.write(session.json ? `${plainJson({ removed: quota })}\n` : `${quota} is removed\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(remove);
  withExamples(remove, [{ does: "as many as they like", command: "osbert platform quotas remove everywhere" }]);
}

/** The platform tells all of them at once. */
const all = { limit: 500 };

function countedOf(
  {
    counts,
    broker,
    offering,
    plan,
  }: { readonly counts: string } & { readonly [name in "broker" | "offering" | "plan"]: string | null },
  names: ReadonlyMap<string, string>,
): string {
  const parts = [
    broker && `broker ${broker}`,
    offering && `service ${names.get(offering) ?? offering}`,
    plan && `plan ${names.get(plan) ?? plan}`,
  ].filter(Boolean);
  if (parts.length === 0) return `all ${counts}`;
  return counts === "bindings" ? `bindings: ${parts.join(", ")}` : parts.join(", ");
}

function parseLimit(text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, such as 10.");
  return Number(text);
}
