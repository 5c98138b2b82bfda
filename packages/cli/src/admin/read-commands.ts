import type { adminDescriptions } from "@osbert/broker/admin";
import { isJsonObject } from "@osbert/protocol";
import type { Shaped } from "@osbert/server/client";
import { type Command, Option } from "commander";
import { exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import { resourceId } from "../client/resource-id.js";
import { parseSecondsOption } from "../client/seconds-option.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { type PageChoice, withAdminOptions, withPageOptions, withPlatformOption } from "./admin-command-options.js";
import type { AdminOptions } from "./admin-session.js";
import { facts, printList } from "./print.js";
import { runAdminCommand } from "./run-admin-command.js";

type Answer<Name extends keyof typeof adminDescriptions> = Shaped<(typeof adminDescriptions)[Name]["answer"]>;
type Instance = Answer<"instance">;
type Operation = Answer<"operations">["items"][number];
type OperationDetails = Answer<"operation">;
type Entry = Answer<"journal">["items"][number];
type Last = Instance["last_operation"];

const done = exitStatuses.succeeded.status;
const theInstance = "the instance's id, as the platform gave it";

interface InstancesOptions extends AdminOptions, PageChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly phase?: string;
}

interface OperationsOptions extends AdminOptions, PageChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly state?: string;
  /** Seconds. */
  readonly olderThan?: number;
  readonly failing?: boolean;
}

type ListOptions = AdminOptions & PageChoice;

/** The admin commands that change nothing. */
export function registerReadCommands(admin: Command, surroundings: Surroundings): void {
  registerInstances(admin, surroundings);
  registerInstance(admin, surroundings);
  registerBindings(admin, surroundings);
  registerBinding(admin, surroundings);
  registerOperations(admin, surroundings);
  registerOperation(admin, surroundings);
  registerJournal(admin, surroundings);
  registerServices(admin, surroundings);
  registerSetAside(admin, surroundings);
}

function registerInstances(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("instances")
    .summary("list instances")
    .description(
      "Lists the instances that the broker knows, in the order of their ids. Those that are gone are listed only with --phase gone.",
    )
    .option("-s, --service <name>", "only of this service, by name or id")
    .option("-l, --plan <id>", "only of this plan, by id")
    .addOption(
      new Option("--phase <phase>", "only those in this phase").choices([
        "creating",
        "ready",
        "failed",
        "deleting",
        "gone",
      ]),
    )
    .action((options: InstancesOptions) =>
      runAdminCommand(options, surroundings, "list the instances", async (session) => {
        const { service, plan, phase } = options;
        const headings = ["INSTANCE", "PLATFORM", "SERVICE", "PLAN", "PHASE", "BINDINGS", "OPEN", "LAST OPERATION"];
        const row = (item: Answer<"instances">["items"][number]) => [
          item.id,
          item.platform || "-",
          nameOf(item.service),
          nameOf(item.plan),
          item.phase,
          String(item.bindings),
          String(item.open_operations),
          lastText(item.last_operation),
        ];
        const filter = { service, plan, phase };
        const ask = (page: object) => session.ask("instances", {}, { query: { ...filter, ...page } });
        await printList(session, ask, options, headings, row, "there are none");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(withPlatformOption(command)));
  withExamples(command, [
    { does: "all of one service", command: "osbert admin instances --service database" },
    { does: "those whose provision failed", command: "osbert admin instances --phase failed" },
  ]);
}

function registerInstance(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("instance")
    .summary("show an instance and its open operations")
    .description("Shows an instance with its open operations. Values of parameters and state are masked.")
    .argument("<instance>", theInstance)
    .action((instance: string, options: AdminOptions) =>
      runAdminCommand(options, surroundings, `show ${instance}`, async (session) => {
        const item = await session.ask("instance", { instance: resourceId(instance, "instance") });
        const { stdout } = surroundings;
        if (session.json) stdout.write(`${plainJson(item)}\n`);
        else stdout.write(`${instanceText(item)}${operationsText(item.operations)}`);
        return done;
      }),
    );
  withAdminOptions(withPlatformOption(command));
  withExamples(command, [
    { does: "what is known of it, and what is being done", command: "osbert admin instance my-db" },
  ]);
}

function registerBindings(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("bindings")
    .summary("list the bindings of an instance")
    .description("Lists the bindings of an instance. Credentials are masked.")
    .argument("<instance>", theInstance)
    .action((instance: string, options: ListOptions) =>
      runAdminCommand(options, surroundings, `list the bindings of ${instance}`, async (session) => {
        const headings = ["BINDING", "PHASE", "APP", "EXPIRES", "LAST OPERATION"];
        const row = (item: Answer<"bindings">["items"][number]) => [
          item.id,
          item.phase,
          item.app_guid || "-",
          item.expires_at || "-",
          lastText(item.last_operation),
        ];
        const values = { instance: resourceId(instance, "instance") };
        const ask = (query: object) => session.ask("bindings", values, { query });
        await printList(session, ask, options, headings, row, "it has none");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(withPlatformOption(command)));
  withExamples(command, [{ does: "who is bound", command: "osbert admin bindings my-db" }]);
}

function registerBinding(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("binding")
    .summary("show a binding and what is being done to it")
    .description(
      "Shows a binding with the operation that is at work on it, or with the last one. Credentials are masked.",
    )
    .argument("<instance>", theInstance)
    .argument("<binding>", "the binding's id, as the platform gave it")
    .action((instance: string, binding: string, options: AdminOptions) =>
      runAdminCommand(options, surroundings, `show ${binding}`, async (session) => {
        const values = { instance: resourceId(instance, "instance"), binding: resourceId(binding, "binding") };
        const item = await session.ask("binding", values);
        const { stdout } = surroundings;
        const text = facts({
          binding: item.id,
          phase: item.phase,
          app: item.app_guid ?? "",
          expires: item.expires_at ?? "",
          "last operation": item.last_operation === null ? "" : lastText(item.last_operation),
        });
        if (session.json) stdout.write(`${plainJson(item)}\n`);
        else stdout.write(`${text}${operationsText(item.operation === null ? [] : [item.operation])}`);
        return done;
      }),
    );
  withAdminOptions(withPlatformOption(command));
  withExamples(command, [{ does: "why it is not there yet", command: "osbert admin binding my-db my-app" }]);
}

function registerOperations(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("operations")
    .summary("list open operations")
    .description("Lists the open operations of all instances: what runs, waits, is queued, held or paused.")
    .option("-s, --service <name>", "only of this service, by name or id")
    .option("-l, --plan <name>", "only of this plan, by name or id")
    .addOption(
      new Option("--state <state>", "only those in this state").choices([
        "running",
        "waiting",
        "queued",
        "held",
        "paused",
        "cancelling",
      ]),
    )
    .option("--older-than <time>", "only those accepted longer ago than this, such as 1h", parseSecondsOption)
    .option("--failing", "only those whose last attempt failed")
    .action((options: OperationsOptions) =>
      runAdminCommand(options, surroundings, "list the operations", async (session) => {
        const { service, plan, state, olderThan, failing } = options;
        const query = {
          service,
          plan,
          state,
          older_than_seconds: olderThan === undefined ? undefined : String(olderThan),
          failing: failing ? "true" : undefined,
        };
        const ask = (page: object) => session.ask("operations", {}, { query: { ...query, ...page } });
        await printList(session, ask, options, operationHeadings, operationRow, "none is open");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(withPlatformOption(command)));
  withExamples(command, [
    { does: "what hangs or fails", command: "osbert admin operations --older-than 1h" },
    { does: "what is tried again and again", command: "osbert admin operations --failing --service database" },
  ]);
}

function registerOperation(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("operation")
    .summary("show an operation, its steps and its story")
    .description(
      "Shows one operation of an instance, open or ended: its steps with their times, and its journal. Results are masked.",
    )
    .argument("<instance>", theInstance)
    .argument("<operation>", "the operation's id")
    .action((instance: string, operation: string, options: AdminOptions) =>
      runAdminCommand(options, surroundings, `show operation ${operation}`, async (session) => {
        const item = await session.ask("operation", { instance: resourceId(instance, "instance"), operation });
        const { stdout } = surroundings;
        stdout.write(session.json ? `${plainJson(item)}\n` : operationText(item));
        return done;
      }),
    );
  withAdminOptions(withPlatformOption(command));
  withExamples(command, [
    { does: "how far it got, and what went wrong", command: "osbert admin operation my-db 12-0f3c2a" },
  ]);
}

function registerJournal(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("journal")
    .summary("show the journal of an instance")
    .description("Shows what was asked of an instance and what happened, newest first: who, when, why.")
    .argument("<instance>", theInstance)
    .action((instance: string, options: ListOptions) =>
      runAdminCommand(options, surroundings, `show the journal of ${instance}`, async (session) => {
        const values = { instance: resourceId(instance, "instance") };
        const ask = (query: object) => session.ask("journal", values, { query });
        await printList(session, ask, options, entryHeadings, entryRow, "it is empty");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(withPlatformOption(command)));
  withExamples(command, [{ does: "the last ten entries", command: "osbert admin journal my-db --limit 10" }]);
}

function registerServices(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("services")
    .summary("list services and which of them are paused")
    .description("Lists the services that the broker offers, and which of them are paused, by whom and why.")
    .action((options: AdminOptions) =>
      runAdminCommand(options, surroundings, "list the services", async (session) => {
        const row = ({ id, name, paused }: Answer<"services">["items"][number]) => [
          name || "-",
          id,
          paused?.at || "-",
          paused?.by ?? "",
          paused?.reason ?? "",
        ];
        const headings = ["SERVICE", "ID", "PAUSED SINCE", "BY", "REASON"];
        const ask = (query: object) => session.ask("services", {}, { query });
        await printList(session, ask, { limit: 500 }, headings, row, "there are none");
        return done;
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "what is paused", command: "osbert admin services" }]);
}

function registerSetAside(admin: Command, surroundings: Surroundings): void {
  const command = admin
    .command("set-aside")
    .summary("list instances that cannot be read")
    .description(
      "Lists instances that were set aside because what is stored of them cannot be read; the log has told why.",
    )
    .action((options: ListOptions) =>
      runAdminCommand(options, surroundings, "list what was set aside", async (session) => {
        const row = (item: Answer<"setAside">["items"][number]) => [item.instance, item.platform || "-"];
        const ask = (query: object) => session.ask("setAside", {}, { query });
        await printList(session, ask, options, ["INSTANCE", "PLATFORM"], row, "nothing was set aside");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "what has to be mended", command: "osbert admin set-aside" }]);
}

function instanceText(item: Instance): string {
  return facts({
    instance: item.id,
    platform: item.platform,
    service: nameOf(item.service),
    plan: nameOf(item.plan),
    phase: item.phase,
    bindings: String(item.bindings),
    organization: item.organization_guid ?? "",
    space: item.space_guid ?? "",
    maintenance: item.maintenance_version ?? "",
    parameters: Object.keys(item.parameters ?? {}).join(", "),
    state: Object.keys(item.state ?? {}).join(", "),
    "last operation": lastText(item.last_operation),
  });
}

function operationsText(operations: readonly Operation[]): string {
  if (operations.length === 0) return "\nno operation is open\n";
  return `\n${table(operationHeadings, operations.map(operationRow))}\n`;
}

function operationText(item: OperationDetails): string {
  const { open, steps, entries } = item;
  const head = facts({
    operation: item.id,
    verb: item.verb,
    binding: item.binding ?? "",
    state: item.state,
    message: item.message ?? "",
    description: open?.description ?? "",
    "accepted at": open?.accepted_at ?? "",
    "next attempt": open?.next_attempt_at ?? "",
    deadline: open?.deadline_at ?? "",
    attempts: open === null ? "" : String(open.attempts),
    "last error": open?.last_error ?? "",
  });
  const rows = steps.map(({ at, name, result_bytes: bytes }) => [at, name, `${bytes} bytes`]);
  const stepsText = rows.length === 0 ? "" : `\n${table(["DONE AT", "STEP", "RESULT"], rows)}\n`;
  const entriesText = entries.length === 0 ? "" : `\n${table(entryHeadings, entries.map(entryRow))}\n`;
  return `${head}${passedOverText(item)}${stepsText}${entriesText}`;
}

/** What a forced deletion did not wait for. */
export function passedOverText({ passed_over: passedOver }: Pick<OperationDetails, "passed_over">): string {
  const rows = passedOver.map(({ call, error }) => [call, error]);
  return rows.length === 0 ? "" : `\n${table(["PASSED OVER", "ERROR"], rows)}\n`;
}

const operationHeadings = ["INSTANCE", "OPERATION", "VERB", "BINDING", "STATE", "SINCE", "ATTEMPTS", "SAYS"];

function operationRow(item: Operation): readonly string[] {
  return [
    item.instance,
    item.id,
    item.verb,
    item.binding || "-",
    item.state,
    item.accepted_at,
    String(item.attempts),
    item.last_error || (item.description ?? ""),
  ];
}

const entryHeadings = ["SEQ", "AT", "WHO", "ENTRY", "OPERATION", "WHY", "DETAILS"];

function entryRow(item: Entry): readonly string[] {
  return [
    String(item.seq),
    item.at,
    `${item.actor.type} ${item.actor.subject}`,
    item.kind,
    item.operation || "-",
    String(item.cause ?? "") || "-",
    Object.entries(item.details)
      .map(([name, value]) => `${name}=${detail(value)}`)
      .join(" "),
  ];
}

function detail(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) || isJsonObject(value) ? plainText(plainJson(value, 0), 200) : String(value);
}

/** A service or plan by its name, or else its id. */
function nameOf({ id, name }: Instance["service"]): string {
  return name || id;
}

function lastText(last: Last): string {
  if (last === null) return "-";
  return `${last.verb} ${last.state}${last.description ? `: ${last.description}` : ""}`;
}
