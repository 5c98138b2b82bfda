import type { MaintenanceInfo, ServicePlan, UpdateRequest } from "@osbert/protocol";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { carryOut } from "./carry-out.js";
import {
  type ParameterChoice,
  type WaitChoice,
  withBrokerOptions,
  withParameterOptions,
  withPlanOptions,
  withWaitOptions,
} from "./command-options.js";
import { instanceToUpdate } from "./existing-instance.js";
import { CommandError } from "./exit-status.js";
import { readParameters } from "./parameters.js";
import { reportChange } from "./report-change.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import type { BrokerOptions } from "./session.js";
import type { Surroundings } from "./surroundings.js";

interface Options extends BrokerOptions, WaitChoice, ParameterChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly fromPlan?: string;
  readonly upgrade?: boolean;
}

/** `osbert update`: another plan, other parameters, or the plan's present maintenance version. */
export function registerUpdate(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("update")
    .summary("change an instance's plan or parameters")
    .description("Changes an instance's plan or parameters and waits until that is done.")
    .argument("<instance>", "the name you gave it")
    .action((instance: string, options: Options) => update(instance, options, surroundings));
  withPlanOptions(command, {
    service: "its service, by name or id, where the broker does not tell",
    plan: "the plan to change to, by name or id",
  }).option("--from-plan <name>", "its present plan, by name or id, where the broker does not tell");
  withParameterOptions(command).option("--upgrade", "bring it to the present maintenance version of its plan");
  withBrokerOptions(withWaitOptions(command));
  withExamples(command, [
    { does: "a larger plan", command: "osbert update my-db --plan large" },
    { does: "another parameter, waiting five minutes at most", command: "osbert update my-db -p size:=5 --timeout 5m" },
  ]);
}

function update(name: string, options: Options, surroundings: Surroundings): Promise<void> {
  return runCommand(options, surroundings, `update ${name}`, async (session) => {
    const instance = resourceId(name, "instance");
    const parameters = await readParameters(options.parameters ?? [], session.read);
    if (parameters === undefined && options.plan === undefined && !options.upgrade)
      throw new CommandError("usage", "say what to change: --plan, -p, -P or --upgrade");
    const { now, plan } = await instanceToUpdate(
      session,
      instance,
      { service: options.service, plan: options.fromPlan },
      options.plan,
    );
    const planAfter = plan ?? now.offer?.plan;
    const maintenance = options.upgrade ? maintenanceOf(planAfter) : undefined;
    const request: UpdateRequest = {
      service_id: now.serviceId,
      ...(plan !== undefined && { plan_id: plan.id }),
      ...(parameters !== undefined && { parameters }),
      ...(maintenance !== undefined && { maintenance_info: maintenance }),
      ...(now.planId !== undefined && { previous_values: { plan_id: now.planId } }),
    };
    // The specification wants the plan before the change in a poll.
    const before = { serviceId: now.serviceId, ...(now.planId !== undefined && { planId: now.planId }) };
    const { changed, waited } = await carryOut(session, options, {
      ask: (how) => session.client.update(instance, request, { ...session.call, ...how }),
      what: `updating ${instance}`,
      poll: (wait) => session.client.waitForInstance(instance, wait),
      options: before,
      maximumPollingDuration: planAfter?.maximum_polling_duration,
    });
    return reportChange(session, {
      instance,
      done: `${instance} is updated`,
      ...before,
      changed,
      waited,
      data: {
        plan_id: planAfter?.id ?? now.planId,
        dashboard_url: changed.body.dashboard_url,
        metadata: changed.body.metadata,
      },
    });
  });
}

function maintenanceOf(plan: ServicePlan | undefined): MaintenanceInfo {
  const version: unknown = plan?.maintenance_info?.version;
  if (typeof version !== "string")
    throw new CommandError(
      "usage",
      "the catalog has no maintenance version for this plan, so there is nothing to upgrade to",
    );
  return { version };
}
