import type { Shaped } from "@osbert/server/client";
import type { Command } from "commander";
import { type PageChoice, withAdminOptions, withPageOptions } from "../admin/admin-command-options.js";
import type { AdminOptions } from "../admin/admin-session.js";
import { type ChangeOptions, changeCommand } from "../admin/change-command.js";
import { facts, printList, say } from "../admin/print.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { type descriptions, runEventCommand } from "./event-command.js";

type Answer<Name extends keyof typeof descriptions> = Shaped<(typeof descriptions)[Name]["answer"]>;
type Namespace = Answer<"namespace">;
type ListOptions = AdminOptions & PageChoice;

const theNamespace = ["<namespace>", "the namespace that events flow into"] as const;

/** The commands about namespaces and the flows into them. */
export function registerFlowCommands(events: Command, surroundings: Surroundings): void {
  registerNamespaces(events, surroundings);
  registerShow(events, surroundings);
  registerHistory(events, surroundings);
  registerLook(events, surroundings);
}

function registerNamespaces(events: Command, surroundings: Surroundings): void {
  const command = events
    .command("namespaces")
    .summary("list the namespaces that events flow into")
    .description("Lists the namespaces that have flows, or had some lately, with the state of their Brokers.")
    .action((options: ListOptions) =>
      runEventCommand(options, surroundings, "list the namespaces", async (ask, session) => {
        const row = (item: Answer<"namespaces">["items"][number]) => [
          item.namespace,
          String(item.flows),
          `${item.broker}${item.adopted ? ", not ours" : ""}`,
          item.applications.join(", ") || "-",
        ];
        const headings = ["NAMESPACE", "FLOWS", "BROKER", "APPLICATIONS"];
        const page = (query: object) => ask("namespaces", {}, { query });
        await printList(session, page, options, headings, row, "there are none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "where events flow", command: "osbert events namespaces" }]);
}

function registerShow(events: Command, surroundings: Surroundings): void {
  const command = events
    .command("show")
    .summary("show the flows into a namespace, and why they do not flow")
    .description(
      "Shows the Broker of a namespace, its Subscriptions and its flows. Of a flow that is not ready, the conditions that are not true are told with their reasons.",
    )
    .argument(...theNamespace)
    .action((namespace: string, options: AdminOptions) =>
      runEventCommand(options, surroundings, `show ${namespace}`, async (ask, { json, surroundings: { stdout } }) => {
        const item = await ask("namespace", { namespace });
        stdout.write(json ? `${plainJson(item)}\n` : namespaceText(item));
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "why nothing arrives", command: "osbert events show team-a" }]);
}

function registerHistory(events: Command, surroundings: Surroundings): void {
  const command = events
    .command("history")
    .summary("list what became of the flows into a namespace")
    .description("Lists what became of the flows into a namespace and of its Broker, newest first.")
    .argument(...theNamespace)
    .action((namespace: string, options: ListOptions) =>
      runEventCommand(options, surroundings, `list the history of ${namespace}`, async (ask, session) => {
        const row = (item: Answer<"history">["items"][number]) => [item.at, item.kind, wordsOf(item.what)];
        const page = (query: object) => ask("history", { namespace }, { query });
        await printList(session, page, options, ["AT", "EVENT", "WHAT"], row, "there is none");
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [
    { does: "when it broke, and when it healed", command: "osbert events history team-a --limit 20" },
  ]);
}

function registerLook(events: Command, surroundings: Surroundings): void {
  changeCommand(events, {
    name: "look",
    summary: "have a namespace looked at now",
    description:
      "Has whichever process follows the namespace look at it now, and mend what is not as it has to be. It does so by itself when something changes.",
    arguments: [theNamespace],
    // It is no decision about the namespace, and leaves no line in its history.
    whereReasonStands: "",
    examples: [
      { does: "a policy was corrected", command: "osbert events look team-a --reason 'the policy is corrected'" },
    ],
  }).action((namespace: string, options: ChangeOptions) =>
    runEventCommand(options, surroundings, `look at ${namespace}`, async (ask, session) => {
      const answer = await ask("look", { namespace }, { body: { reason: options.reason } });
      say(session, answer, `namespace ${namespace} is looked at now`);
    }),
  );
}

function namespaceText(item: Namespace): string {
  const text = facts({
    namespace: item.namespace,
    broker: `${item.broker}${item.adopted ? ", was there before and stays" : ""}`,
    "deleted not before": item.linger_until ?? "",
    "kept because": item.kept_because ?? "",
    refused: refusalText(item.refused),
  });
  const flows = item.flows.map(({ application, service, service_name, ready, reason, since, conditions, ...flow }) => {
    // Since when it is so, which stands beside it; the flow itself may be older.
    const readySince = conditions.find(({ type }) => type === "Ready")?.since ?? since;
    return [
      named(flow),
      application,
      withName(service, service_name),
      ready,
      ready === "True" ? "-" : reason,
      readySince,
    ];
  });
  const troubles = item.flows.flatMap(({ conditions, ...flow }) =>
    conditions
      .filter(({ type, status }) => type !== "Ready" && status !== "True")
      .map(({ type, status, reason, message, since }) => [named(flow), type, status, reason, since, message]),
  );
  const wires = item.wires.map((wire) => [
    ...[wire.application, wire.subscription, wire.state, String(wire.holders.length), String(wire.repairs)],
    refusalText(wire.refused) || "-",
  ]);
  return [
    text,
    section(["INSTANCE", "APPLICATION", "SERVICE", "READY", "REASON", "SINCE"], flows),
    section(["INSTANCE", "CONDITION", "STATUS", "REASON", "SINCE", "WHY"], troubles),
    section(["APPLICATION", "SUBSCRIPTION", "STATE", "FLOWS", "REPAIRS", "REFUSED"], wires),
  ].join("");
}

function named({ instance, instance_name }: Pick<Namespace["flows"][number], "instance" | "instance_name">): string {
  return withName(instance, instance_name);
}

function withName(id: string, name: string | null): string {
  return name === null || name === id ? id : `${name} (${id})`;
}

function section(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? "" : `\n${table(headings, rows)}\n`;
}

function refusalText(refused: Namespace["refused"]): string {
  return refused === null ? "" : `${refused.times} times since ${refused.since}: ${refused.message}`;
}

/** What an entry says, without quotes and braces. */
function wordsOf(what: Readonly<Record<string, unknown>>): string {
  const word = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(what)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name}=${word(value)}`)
    .join(" ");
}
