import type { Context, ProvisionRequest } from "@osbert/protocol";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { carryOut } from "./carry-out.js";
import { commandLine } from "./command-line.js";
import {
  type ParameterChoice,
  type WaitChoice,
  withBrokerOptions,
  withParameterOptions,
  withPlanOptions,
  withWaitOptions,
} from "./command-options.js";
import { findPlan } from "./find-plan.js";
import { parseDocument, readParameters } from "./parameters.js";
import { reportChange } from "./report-change.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import type { BrokerOptions } from "./session.js";
import type { Surroundings } from "./surroundings.js";

interface Options extends BrokerOptions, WaitChoice, ParameterChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly organization: string;
  readonly space: string;
  readonly context?: string;
}

/** `osbert provision`: a new instance, whose id is the name that the user gives it. */
export function registerProvision(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("provision")
    .summary("make an instance of a service")
    .description("Makes an instance of a service and waits until it is there. Its name is its id at the broker.")
    .argument("<instance>", "how you call it")
    .action((instance: string, options: Options) => provision(instance, options, surroundings));
  withPlanOptions(command, {
    service: "the service, by name or id; not needed where there is only one",
    plan: "the plan, by name or id; not needed where there is only one",
  });
  withParameterOptions(command)
    .option("--organization <id>", "organization_guid, for brokers that look at it", "osbert")
    .option("--space <id>", "space_guid, for brokers that look at it", "osbert")
    .option("--context <json>", "the platform's context as JSON, @file or @-");
  withBrokerOptions(withWaitOptions(command));
  withExamples(command, [
    {
      does: "a small database, with two parameters: a text and a number",
      command: "osbert provision my-db --service sqlite-database --plan small -p language=de -p size:=3",
    },
    {
      does: "parameters from a file, one of them replaced",
      command: "osbert provision my-db -P @parameters.json -p backup.hour:=4",
    },
    {
      does: "parameters with a secret, which must not stand on a command line",
      command: "pass show my-db | osbert provision my-db -P @-",
    },
  ]);
}

function provision(name: string, options: Options, surroundings: Surroundings): Promise<void> {
  return runCommand(options, surroundings, `provision ${name}`, async (session) => {
    const instance = resourceId(name, "instance");
    const parameters = await readParameters(options.parameters ?? [], session.read);
    const context =
      options.context === undefined
        ? undefined
        : ((await parseDocument(options.context, session.read, "--context")) as unknown as Context);
    const { service, plan } = findPlan(await session.services(), options);
    const ids = { serviceId: service.id, planId: plan.id };
    const leftover = {
      sentence: `${instance} may exist at the broker all the same`,
      remove: commandLine(session, "deprovision", { instance, ...ids }),
    };
    const request: ProvisionRequest = {
      service_id: service.id,
      plan_id: plan.id,
      organization_guid: options.organization,
      space_guid: options.space,
      ...(parameters !== undefined && { parameters }),
      ...(context !== undefined && { context }),
    };
    const { changed, waited } = await carryOut(session, options, {
      ask: (how) => session.client.provision(instance, request, { ...session.call, ...how }),
      what: `provisioning ${instance}`,
      poll: (wait) => session.client.waitForInstance(instance, wait),
      options: { ...ids, change: "create" },
      maximumPollingDuration: plan.maximum_polling_duration,
      leftover,
    });
    const { dashboard_url: dashboard, metadata } = changed.body;
    return reportChange(session, {
      instance,
      done: `${instance} is provisioned: ${service.name}, ${plan.name}`,
      ...ids,
      changed,
      waited,
      data: { dashboard_url: dashboard, metadata },
      lines: typeof dashboard === "string" && dashboard !== "" ? [`dashboard: ${dashboard}`] : [],
    });
  });
}
