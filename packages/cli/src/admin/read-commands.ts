import { isJsonObject, type JsonObject } from "@osbert/protocol";
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
import { listAt, nameAt, objectAt, textAt } from "./answer-fields.js";
import { facts, printList, segment } from "./print.js";
import { runAdminCommand } from "./run-admin-command.js";

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
        const row = (item: JsonObject) => [
          textAt(item, "id"),
          textAt(item, "platform") || "-",
          nameAt(item, "service"),
          nameAt(item, "plan"),
          textAt(item, "phase"),
          textAt(item, "bindings"),
          textAt(item, "open_operations"),
          lastOf(item),
        ];
        await printList(session, "/instances", options, { service, plan, phase }, headings, row, "there are none");
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
        const item = await session.ask("GET", `/instances/${segment(resourceId(instance, "instance"))}`);
        const { stdout } = surroundings;
        if (session.json) stdout.write(`${plainJson(item)}\n`);
        else stdout.write(`${instanceText(item)}${operationsText(listAt(item, "operations"))}`);
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
        const path = `/instances/${segment(resourceId(instance, "instance"))}/bindings`;
        const headings = ["BINDING", "PHASE", "APP", "EXPIRES", "LAST OPERATION"];
        const row = (item: JsonObject) => [
          textAt(item, "id"),
          textAt(item, "phase"),
          textAt(item, "app_guid") || "-",
          textAt(item, "expires_at") || "-",
          lastOf(item),
        ];
        await printList(session, path, options, {}, headings, row, "it has none");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(withPlatformOption(command)));
  withExamples(command, [{ does: "who is bound", command: "osbert admin bindings my-db" }]);
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
        await printList(session, "/operations", options, query, operationHeadings, operationRow, "none is open");
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
        const path = `/instances/${segment(resourceId(instance, "instance"))}/operations/${segment(operation)}`;
        const item = await session.ask("GET", path);
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
        const path = `/instances/${segment(resourceId(instance, "instance"))}/journal`;
        await printList(session, path, options, {}, entryHeadings, entryRow, "it is empty");
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
        const row = (item: JsonObject) => {
          const paused = objectAt(item, "paused");
          const since = textAt(paused, "at");
          return [
            textAt(item, "name") || "-",
            textAt(item, "id"),
            since || "-",
            textAt(paused, "by"),
            textAt(paused, "reason"),
          ];
        };
        const headings = ["SERVICE", "ID", "PAUSED SINCE", "BY", "REASON"];
        await printList(session, "/services", { limit: 500 }, {}, headings, row, "there are none");
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
        const row = (item: JsonObject) => [textAt(item, "instance"), textAt(item, "platform") || "-"];
        await printList(session, "/set-aside", options, {}, ["INSTANCE", "PLATFORM"], row, "nothing was set aside");
        return done;
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "what has to be mended", command: "osbert admin set-aside" }]);
}

function instanceText(item: JsonObject): string {
  return facts({
    instance: textAt(item, "id"),
    platform: textAt(item, "platform"),
    service: nameAt(item, "service"),
    plan: nameAt(item, "plan"),
    phase: textAt(item, "phase"),
    bindings: textAt(item, "bindings"),
    organization: textAt(item, "organization_guid"),
    space: textAt(item, "space_guid"),
    maintenance: textAt(item, "maintenance_version"),
    parameters: Object.keys(objectAt(item, "parameters")).join(", "),
    state: Object.keys(objectAt(item, "state")).join(", "),
    "last operation": lastOf(item),
  });
}

function operationsText(operations: readonly JsonObject[]): string {
  if (operations.length === 0) return "\nno operation is open\n";
  return `\n${table(operationHeadings, operations.map(operationRow))}\n`;
}

function operationText(item: JsonObject): string {
  const open = objectAt(item, "open");
  const head = facts({
    operation: textAt(item, "id"),
    verb: textAt(item, "verb"),
    binding: textAt(item, "binding"),
    state: textAt(item, "state"),
    message: textAt(item, "message"),
    description: textAt(open, "description"),
    "accepted at": textAt(open, "accepted_at"),
    "next attempt": textAt(open, "next_attempt_at"),
    deadline: textAt(open, "deadline_at"),
    attempts: textAt(open, "attempts"),
    "last error": textAt(open, "last_error"),
  });
  const passedOver = passedOverText(item);
  const steps = listAt(item, "steps").map((step) => [
    textAt(step, "at"),
    textAt(step, "name"),
    `${textAt(step, "result_bytes")} bytes`,
  ]);
  const stepsText = steps.length === 0 ? "" : `\n${table(["DONE AT", "STEP", "RESULT"], steps)}\n`;
  const entries = listAt(item, "entries");
  const entriesText = entries.length === 0 ? "" : `\n${table(entryHeadings, entries.map(entryRow))}\n`;
  return `${head}${passedOver}${stepsText}${entriesText}`;
}

/** What a forced deletion did not wait for. */
export function passedOverText(item: JsonObject): string {
  const passed = listAt(item, "passed_over").map((one) => [textAt(one, "call"), textAt(one, "error")]);
  return passed.length === 0 ? "" : `\n${table(["PASSED OVER", "ERROR"], passed)}\n`;
}

const operationHeadings = ["INSTANCE", "OPERATION", "VERB", "BINDING", "STATE", "SINCE", "ATTEMPTS", "SAYS"];

function operationRow(item: JsonObject): readonly string[] {
  return [
    textAt(item, "instance"),
    textAt(item, "id"),
    textAt(item, "verb"),
    textAt(item, "binding") || "-",
    textAt(item, "state"),
    textAt(item, "accepted_at"),
    textAt(item, "attempts"),
    textAt(item, "last_error") || textAt(item, "description"),
  ];
}

const entryHeadings = ["SEQ", "AT", "WHO", "ENTRY", "OPERATION", "WHY", "DETAILS"];

function entryRow(item: JsonObject): readonly string[] {
  const actor = objectAt(item, "actor");
  return [
    textAt(item, "seq"),
    textAt(item, "at"),
    `${textAt(actor, "type")} ${textAt(actor, "subject")}`,
    textAt(item, "kind"),
    textAt(item, "operation") || "-",
    textAt(item, "cause") || "-",
    Object.entries(objectAt(item, "details"))
      .map(([name, value]) => `${name}=${detail(value)}`)
      .join(" "),
  ];
}

function detail(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) || isJsonObject(value) ? plainText(plainJson(value, 0), 200) : String(value);
}

function lastOf(item: JsonObject): string {
  const last = objectAt(item, "last_operation");
  if (textAt(last, "verb") === "") return "-";
  const description = textAt(last, "description");
  return `${textAt(last, "verb")} ${textAt(last, "state")}${description === "" ? "" : `: ${description}`}`;
}
