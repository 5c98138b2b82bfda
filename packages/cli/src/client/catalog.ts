import { isBindable, isPlanUpdateable, type ServiceOffering, type ServicePlan } from "@osbert/protocol";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { withBrokerOptions } from "./command-options.js";
import { exitStatuses } from "./exit-status.js";
import { findService } from "./find-plan.js";
import { plainJson, plainText } from "./plain-text.js";
import { runCommand } from "./run-command.js";
import { schemaParameters } from "./schema-parameters.js";
import type { BrokerOptions } from "./session.js";
import type { Surroundings } from "./surroundings.js";
import { table } from "./table.js";

/** `osbert catalog`: what the broker offers, as a table, or one service in full. */
export function registerCatalog(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("catalog")
    .summary("what the broker offers")
    .description("Lists the services and plans that the broker offers, or shows one service with its parameters.")
    .argument("[service]", "one service, by name or id")
    .action((name: string | undefined, options: BrokerOptions) =>
      runCommand(options, surroundings, "read the catalog", async (session) => {
        const services = await session.services();
        const chosen = name === undefined ? undefined : findService(services, name);
        const { stdout } = surroundings;
        if (session.json) stdout.write(`${plainJson(chosen ?? { services })}\n`);
        else
          stdout.write(
            chosen === undefined
              ? `${overview(services, stdout.isTTY ? stdout.columns : undefined)}\n`
              : details(chosen),
          );
        return exitStatuses.succeeded.status;
      }),
    );
  withBrokerOptions(command);
  withExamples(command, [
    { does: "all services and plans", command: "osbert catalog" },
    { does: "one service with the parameters of its plans", command: "osbert catalog sqlite-database" },
  ]);
}

function overview(services: readonly ServiceOffering[], width: number | undefined): string {
  const rows = [...services]
    .sort(byName)
    .flatMap((service) =>
      service.plans.map((plan) => [
        service.name,
        plan.name,
        yesNo(plan.free ?? true),
        yesNo(isBindable(service, plan)),
        textOf(plan.description) || textOf(service.description),
      ]),
    );
  return rows.length === 0
    ? "the broker offers nothing"
    : table(["SERVICE", "PLAN", "FREE", "BINDABLE", "DESCRIPTION"], rows, width);
}

/** The same on every machine, whatever its language. */
function byName(one: ServiceOffering, other: ServiceOffering): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0;
}

function details(service: ServiceOffering): string {
  const lines = [
    ...facts("", {
      service: service.name,
      id: service.id,
      description: service.description,
      tags: listOf(service.tags),
      requires: listOf(service.requires),
    }),
    ...service.plans.flatMap((plan) => planDetails(service, plan)),
  ];
  return `${lines.join("\n")}\n`;
}

function planDetails(service: ServiceOffering, plan: ServicePlan): string[] {
  return [
    "",
    ...facts("", {
      plan: plan.name,
      id: plan.id,
      description: plan.description,
      free: yesNo(plan.free ?? true),
      bindable: yesNo(isBindable(service, plan)),
      updateable: yesNo(isPlanUpdateable(service, plan)),
      maintenance: plan.maintenance_info?.version,
    }),
    ...parameters("provision", plan.schemas?.service_instance?.create?.parameters),
    ...parameters("update", plan.schemas?.service_instance?.update?.parameters),
    ...parameters("bind", plan.schemas?.service_binding?.create?.parameters),
  ];
}

function parameters(verb: string, schema: unknown): string[] {
  const found = schemaParameters(schema);
  if (found.length === 0) return [];
  const rows = found.map(({ name, type, required, description }) => [name, type, yesNo(required), description]);
  const lines = table(["NAME", "TYPE", "REQUIRED", "DESCRIPTION"], rows).split("\n");
  return [`  parameters of ${verb}`, ...lines.map((line) => `    ${line}`)];
}

function facts(indent: string, all: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(all).flatMap(([name, value]) =>
    typeof value === "string" && value !== "" ? [`${indent}${name.padEnd(11)}  ${plainText(value)}`] : [],
  );
}

function yesNo(value: unknown): string {
  return value === true ? "yes" : "no";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string").join(", ") : "";
}
