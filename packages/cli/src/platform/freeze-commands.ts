import type { apiDescriptions } from "@osbert/platform/api";
import type { Shaped } from "@osbert/server/client";
import type { Command } from "commander";
import { CommandError, exitStatuses } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { withExamples } from "../examples-of.js";
import { type HoldBackOptions, holdBackBody, withHoldBackOptions } from "./lock-commands.js";
import { offeredIds, offeredNames } from "./offered-ids.js";
import { type PlatformOptions, withPlatformOptions } from "./platform-options.js";
import { printPage } from "./print-page.js";
import { runPlatformCommand } from "./run-platform-command.js";
import { showAnswer } from "./show-answer.js";
import { uniqueId } from "./unique-id.js";

type Freeze = Shaped<(typeof apiDescriptions)["freezes"]["answer"]>["items"][number];

/** The commands of operators who hold back changes of many instances: freezes, freeze, thaw. */
export function registerFreezeCommands(platform: Command, surroundings: Surroundings): void {
  const list = platform
    .command("freezes")
    .summary("list what is frozen")
    .description("Lists freezes: what they hold back, by whom, why and until when.")
    .action((options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, "list the freezes", async (session) => {
        const names = session.json ? new Map<string, string>() : await offeredNames(session);
        return printPage(
          session,
          () => session.ask("freezes", {}),
          { limit: 500 },
          ["ID", "HOLDS BACK", "EFFECT", "BY", "UNTIL", "WHY"],
          (one) => [one.id, scopeOf(one, names), effectOf(one), one.by, one.until ?? "-", one.reason],
          "nothing is frozen",
        );
      }),
    );
  withPlatformOptions(list);
  withExamples(list, [{ does: "why does everything wait?", command: "osbert platform freezes" }]);

  interface FreezeOptions extends HoldBackOptions {
    readonly ofSpace?: string;
    readonly broker?: string;
    readonly service?: string;
    readonly plan?: string;
    readonly everything?: boolean;
  }
  const freeze = platform
    .command("freeze")
    .summary("hold back changes of many instances")
    .description(
      "Holds back changes of a space, a broker, a plan, or of what is all of these, until it is thawed or ends by itself.",
    )
    .option("--of-space <name>", "only of this space")
    .option("--broker <name>", "only of this broker")
    .option("--service <name>", "whose plan it is")
    .option("--plan <name>", "only of this plan")
    .option("--everything", "of all instances there are")
    .action((options: FreezeOptions) =>
      runPlatformCommand(options, surroundings, "freeze", async (session) => {
        const { ofSpace, broker, service, everything } = options;
        // A command line that names nothing is not one that means everything.
        if ([ofSpace, broker, options.plan, everything].every((one) => one === undefined))
          throw new CommandError(
            "usage",
            "freeze what? Say --of-space, --broker, --service and --plan, or --everything",
          );
        if (service !== undefined && options.plan === undefined)
          throw new CommandError("usage", "a freeze is of a plan: say --plan, too");
        const { plan } = await offeredIds(session, options);
        const body = { space: ofSpace, broker, plan, ...holdBackBody(options, surroundings.now()) };
        return showAnswer(
          session,
          (ask) => ask("freeze", {}, { body }),
          ({ id, until }) => `frozen${until === null ? "" : ` until ${until}`}; osbert platform thaw ${id} ends it\n`,
        );
      }),
    );
  withHoldBackOptions(freeze);
  withExamples(freeze, [
    {
      does: "a broker moves",
      command: "osbert platform freeze --broker databases --reason 'moves to another house' --until 4h",
    },
    {
      does: "no changes of one plan, but for deletes",
      command:
        "osbert platform freeze --service database --plan small --effect reject --except-deletes --reason 'out of disk'",
    },
  ]);

  const thaw = platform
    .command("thaw")
    .summary("end a freeze")
    .description("Ends a freeze. What it held back goes on.")
    .argument("<freeze>", "its id, or how that begins")
    .action((beginning: string, options: PlatformOptions) =>
      runPlatformCommand(options, surroundings, `thaw ${beginning}`, async (session) => {
        const { items } = await session.ask("freezes", {});
        const ids = items.map(({ id }) => id);
        const id = uniqueId(ids, beginning, "freeze");
        await session.ask("thaw", { freeze: id });
        surroundings.stdout.write(session.json ? `${plainJson({ thawed: id })}\n` : `${id} is thawed\n`);
        return exitStatuses.succeeded.status;
      }),
    );
  withPlatformOptions(thaw);
  withExamples(thaw, [{ does: "go on", command: "osbert platform thaw 0f3c2a" }]);
}

function scopeOf({ space, broker, plan }: Freeze, names: ReadonlyMap<string, string>): string {
  const parts = [
    space && `space ${space}`,
    broker && `broker ${broker}`,
    plan && `plan ${names.get(plan) ?? plan}`,
  ].filter(Boolean);
  return parts.length === 0 ? "everything" : parts.join(", ");
}

function effectOf({ effect, deletes_exempt }: Freeze): string {
  return `${effect === "queue" ? "changes wait" : "changes are refused"}${deletes_exempt ? ", but for deletes" : ""}`;
}
