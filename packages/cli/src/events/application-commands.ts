import type { Shaped } from "@osbert/server/client";
import { type Command, Option } from "commander";
import { type PageChoice, withAdminOptions, withPageOptions } from "../admin/admin-command-options.js";
import type { AdminOptions } from "../admin/admin-session.js";
import { type ChangeOptions, changeCommand } from "../admin/change-command.js";
import { printList, say } from "../admin/print.js";
import { plainJson, plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { table } from "../client/table.js";
import { withExamples } from "../examples-of.js";
import { type descriptions, runEventCommand } from "./event-command.js";

type Applications = Shaped<(typeof descriptions)["applications"]["answer"]>;

interface ConfirmOptions extends ChangeOptions {
  readonly of: string;
  readonly observation: string;
}

/** The commands about what applications offer. */
export function registerApplicationCommands(events: Command, surroundings: Surroundings): void {
  registerApplications(events, surroundings);
  registerFindings(events, surroundings);
  registerConfirm(events, surroundings);
  registerImport(events, surroundings);
}

function registerApplications(events: Command, surroundings: Surroundings): void {
  const command = events
    .command("applications")
    .summary("list the applications and what they offer")
    .description(
      "Lists the applications that are known, with their services. A removal that is held because it may be a mistake is told, with what `osbert events confirm` takes.",
    )
    .action((options: AdminOptions & PageChoice) =>
      runEventCommand(options, surroundings, "list the applications", async (ask, session) => {
        let last: Applications | undefined;
        const row = (item: Applications["items"][number]) => [
          item.name,
          item.kind,
          item.services.map(serviceText).join(", ") || "-",
          remarksOf(item) || "-",
        ];
        const page = async (query: object) => {
          last = await ask("applications", {}, { query });
          return last;
        };
        await printList(session, page, options, ["APPLICATION", "KIND", "SERVICES", "REMARKS"], row, "there are none");
        for (const line of last === undefined ? [] : troubleOf(last)) surroundings.stderr.write(`${plainText(line)}\n`);
      }),
    );
  withAdminOptions(withPageOptions(command));
  withExamples(command, [{ does: "what is offered", command: "osbert events applications" }]);
}

function registerFindings(events: Command, surroundings: Surroundings): void {
  const command = events
    .command("findings")
    .summary("list what is wrong with applications")
    .description("Lists what is wrong with applications, and what of them is not offered as they say.")
    .action((options: AdminOptions) =>
      runEventCommand(options, surroundings, "list the findings", async (ask, { json, surroundings: { stdout } }) => {
        const answer = await ask("findings", {});
        const rows = answer.items.map(({ level, application, path, message }) => [level, application, path, message]);
        const text = rows.length === 0 ? "there are none" : table(["LEVEL", "APPLICATION", "PLACE", "FINDING"], rows);
        stdout.write(json ? `${plainJson(answer)}\n` : `${text}\n`);
      }),
    );
  withAdminOptions(command);
  withExamples(command, [{ does: "why a service is not offered", command: "osbert events findings" }]);
}

function registerConfirm(events: Command, surroundings: Surroundings): void {
  changeCommand(events, {
    name: "confirm",
    summary: "let a removal go that is held",
    description:
      "Lets a removal of many applications or grants go that is held because it may be a mistake. Instances of what was removed stay, and can be deleted.",
    options: (command) =>
      command
        .addOption(
          new Option("--of <what>", "what was removed").choices(["applications", "grants"]).makeOptionMandatory(),
        )
        .requiredOption("--observation <id>", "which one, as `osbert events applications` tells it"),
    examples: [
      {
        does: "they were removed on purpose",
        command: "osbert events confirm --of applications --observation 7-1a2b3c --reason 'removed on purpose'",
      },
    ],
  }).action((options: ConfirmOptions) =>
    runEventCommand(options, surroundings, `confirm the removal of ${options.of}`, async (ask, session) => {
      const { reason, of: what, observation } = options;
      const answer = await ask("confirmRemoval", {}, { body: { reason, what, observation } });
      say(session, answer, `the removal of ${what} is confirmed`);
    }),
  );
}

function registerImport(events: Command, surroundings: Surroundings): void {
  changeCommand(events, {
    name: "import",
    summary: "take over what the application broker has left",
    description:
      "Takes over the instances of Kyma's application broker: its ServiceInstances, with the Subscriptions and Brokers that are there. Nothing is written to the cluster, and nothing is provisioned anew; done twice, it is done once.",
    options: (command) => command.option("--dry-run", "only tell what would be done"),
    examples: [
      { does: "see what would be done", command: "osbert events import --dry-run --reason 'before we change over'" },
      { does: "do it", command: "osbert events import --reason 'the application broker is gone'" },
    ],
  }).action((options: ChangeOptions & { readonly dryRun?: true }) =>
    runEventCommand(options, surroundings, "import", async (ask, { json, surroundings: { stdout } }) => {
      const body = { reason: options.reason, dry_run: options.dryRun === true };
      const answer = await ask("importFlows", {}, { body });
      const rows = answer.instances.map(({ namespace, name, id, application, outcome }) => [
        ...[namespace, name, id, application ?? "-", outcome],
      ]);
      const instances =
        rows.length === 0
          ? "there are no instances"
          : table(["NAMESPACE", "NAME", "INSTANCE", "EVENTS OF", "OUTCOME"], rows);
      const found = answer.findings.map(({ level, object, message }) => [level, object, message]);
      const findings = found.length === 0 ? "" : `\n${table(["FINDING", "OBJECT", "WHY"], found)}\n`;
      stdout.write(json ? `${plainJson(answer)}\n` : `${instances}\n${findings}`);
    }),
  );
}

function serviceText({ name, events, apis, removed_at }: Applications["items"][number]["services"][number]): string {
  const has = [...(events ? ["events"] : []), ...(apis > 0 ? [`${apis} ${apis === 1 ? "API" : "APIs"}`] : [])];
  return `${name} (${[...has, ...(removed_at === null ? [] : ["gone"])].join(", ")})`;
}

function remarksOf({ removed_at, findings }: Applications["items"][number]): string {
  const count = findings.length;
  return [
    ...(removed_at === null ? [] : [`gone since ${removed_at}`]),
    ...(count === 0 ? [] : [`${count} ${count === 1 ? "finding" : "findings"}`]),
  ].join("; ");
}

function troubleOf({ state, why, is_known, held }: Applications): readonly string[] {
  const removals = Object.entries(held).flatMap(([what, removal]) =>
    removal === null || removal.confirmed !== null
      ? []
      : [
          `the removal of ${removal.count} of ${removal.of} ${what} is held; if it is right: osbert events confirm --of ${what} --observation ${removal.observation} --reason …`,
        ],
  );
  return [
    ...(is_known ? [] : ["nothing is known of applications yet"]),
    ...(state === "current"
      ? []
      : [`the process that was asked does not see the cluster now (${state}): ${why ?? ""}`]),
    ...removals,
  ];
}
