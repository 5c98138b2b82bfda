import type { adminDescriptions } from "@osbert/broker/admin";
import type { Shaped } from "@osbert/server/client";
import { type Command, Option } from "commander";
import { CommandError, type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { parseSecondsOption } from "../client/seconds-option.js";
import { shellQuote } from "../client/shell-quote.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import {
  type PageChoice,
  type ReasonChoice,
  withAdminOptions,
  withPageOptions,
  withPlatformOption,
  withReason,
} from "./admin-command-options.js";
import type { AdminOptions, AdminSession } from "./admin-session.js";
import { confirm } from "./confirm.js";
import { runAdminCommand } from "./run-admin-command.js";

interface BulkOptions extends AdminOptions, ReasonChoice, PageChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly state?: string;
  /** Seconds. */
  readonly olderThan?: number;
  readonly failing?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** The admin commands that change many operations. Each of them gets an entry of its own. */
export function registerBulk(admin: Command, surroundings: Surroundings): void {
  registerRetryAll(admin, surroundings);
  registerCancelAll(admin, surroundings);
}

function registerRetryAll(admin: Command, surroundings: Surroundings): void {
  const command = withWhich(
    admin
      .command("retry-all")
      .summary("run many waiting operations now, or failed ones again")
      .description(
        "As retry, for all operations that wait for their next attempt, or with --state failed for the last ones of instances on which nothing is under way. Says of each what became of it.",
      ),
    ["waiting", "failed"],
  ).action((options: BulkOptions) =>
    runAdminCommand(options, surroundings, "retry the operations", (session) => {
      checkWhich(options);
      return run(session, "retry", options);
    }),
  );
  withReason(withAdminOptions(withPageOptions(withPlatformOption(command))));
  withExamples(command, [
    {
      does: "which would it be?",
      command: "osbert admin retry-all --service database --dry-run --reason 'the cluster is back'",
    },
    {
      does: "what failed meanwhile, too",
      command: "osbert admin retry-all --service database --state failed --reason 'the cluster is back'",
    },
  ]);
}

function registerCancelAll(admin: Command, surroundings: Surroundings): void {
  const command = withWhich(
    admin
      .command("cancel-all")
      .summary("end many open operations")
      .description("As cancel, for all open operations that are meant. Says of each what became of it."),
    ["running", "waiting", "queued", "held", "paused"],
  )
    .option("--yes", "do not ask; needed where nobody can be asked")
    .action((options: BulkOptions) =>
      runAdminCommand(options, surroundings, "cancel the operations", async (session) => {
        checkWhich(options);
        const name = options.service ?? "cancel";
        const what = `cancels up to ${options.limit} open operations; see which with --dry-run`;
        if (!options.dryRun) await confirm(surroundings, { what, name, yes: options.yes ?? false });
        return run(session, "cancel", options);
      }),
    );
  withReason(withAdminOptions(withPageOptions(withPlatformOption(command))));
  withExamples(command, [
    {
      does: "what hangs since the morning",
      command: "osbert admin cancel-all --service database --older-than 6h --yes --reason 'the cluster is gone'",
    },
  ]);
}

function withWhich(command: Command, states: readonly string[]): Command {
  return command
    .option("-s, --service <name>", "only of this service, by name or id")
    .option("-l, --plan <name>", "only of this plan, by name or id")
    .addOption(new Option("--state <state>", "only those in this state").choices([...states]))
    .option(
      "--older-than <time>",
      "only those accepted, or failed, longer ago than this, such as 1h",
      parseSecondsOption,
    )
    .option("--failing", "only those whose last attempt failed")
    .option("--dry-run", "show which it would be, and change nothing");
}

/** A page may be empty and still have one behind it. */
const mostRequests = 200;
const headings = ["INSTANCE", "OPERATION", "VERB", "BINDING", "STATE", "RESULT"];

type BulkAct = "retry" | "cancel";
type BulkItem = Shaped<(typeof adminDescriptions)["retryAll"]["answer"]>["items"][number];
const routes = { retry: "retryAll", cancel: "cancelAll" } as const;
const pastTense = { retry: "retried", cancel: "cancelled" } as const;

/** What is done to many must say to which. The broker says so, too, but of an API that nobody typed. */
function checkWhich({ service, plan, platform, state, olderThan, failing }: BulkOptions): void {
  if ([service, plan, platform, state].every((text) => !text) && olderThan === undefined && !failing)
    throw new CommandError("usage", "say which: --service, --plan, --platform, --state, --older-than or --failing");
}

/** Page by page, up to the limit. */
async function run(session: AdminSession, act: BulkAct, options: BulkOptions): Promise<ExitStatus> {
  const { service, plan, state, olderThan, failing, limit, reason } = options;
  const query = {
    service,
    plan,
    state,
    older_than_seconds: olderThan === undefined ? undefined : String(olderThan),
    failing: failing ? "true" : undefined,
  };
  const body = { reason, dry_run: options.dryRun ?? false };
  const items: BulkItem[] = [];
  let next: string | undefined = options.after;
  for (let requests = 0; requests < mostRequests && items.length < limit; requests++) {
    const left = String(Math.min(100, limit - items.length));
    const page = await session.ask(routes[act], {}, { query: { ...query, limit: left, after: next }, body });
    items.push(...page.items);
    next = page.next ?? undefined;
    if (next === undefined) break;
  }
  print(session, items, next, options.dryRun ? act : undefined);
  const isRefused = items.some((item) => item.result === "refused");
  return isRefused ? exitStatuses.failed.status : exitStatuses.succeeded.status;
}

/** `dryRun`: what would have been done. */
function print(
  session: AdminSession,
  items: readonly BulkItem[],
  next: string | undefined,
  dryRun: BulkAct | undefined,
): void {
  const { stdout, stderr } = session.surroundings;
  if (session.json) {
    stdout.write(`${plainJson({ items: [...items], next: next ?? null })}\n`);
    return;
  }
  if (items.length === 0) stdout.write("there are none\n");
  else
    stdout.write(
      `${table(
        headings,
        items.map((item) => row(item, dryRun)),
        stdout.isTTY ? stdout.columns : undefined,
      )}\n`,
    );
  const count = (result: string) => items.filter((item) => item.result === result).length;
  if (dryRun !== undefined) stderr.write(`${items.length} would be ${pastTense[dryRun]}; nothing was changed\n`);
  else if (items.length > 0) stderr.write(`${count("done")} done, ${count("refused")} refused\n`);
  if (next !== undefined) stderr.write(`there are more; go on with --after ${plainText(shellQuote(next), 5_000)}\n`);
}

function row(item: BulkItem, dryRun: BulkAct | undefined): readonly string[] {
  const goesOn = item.goes_on ?? "";
  const isAnew = goesOn !== "" && goesOn !== item.operation;
  return [
    item.instance,
    item.operation,
    item.verb,
    item.binding || "-",
    item.state,
    item.error || (isAnew ? `begun anew as ${goesOn}` : resultOf(item, dryRun)),
  ];
}

function resultOf(item: BulkItem, dryRun: BulkAct | undefined): string {
  return dryRun === undefined ? item.result : `would be ${pastTense[dryRun]}`;
}
