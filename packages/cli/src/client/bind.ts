import type { BindRequest, FetchBindingResponse } from "@osbert/protocol";
import type { Hints } from "@osbert/protocol/client";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { bearAbsence } from "./bear-absence.js";
import { bindingOutput } from "./binding-output.js";
import { carryOut } from "./carry-out.js";
import { commandLine } from "./command-line.js";
import {
  type FormatChoice,
  ofExistingInstance,
  type ParameterChoice,
  type WaitChoice,
  withBrokerOptions,
  withFormatOptions,
  withParameterOptions,
  withPlanOptions,
  withWaitOptions,
} from "./command-options.js";
import { existingInstance } from "./existing-instance.js";
import { mayLeave } from "./open-outcome.js";
import { readParameters } from "./parameters.js";
import { reportChange } from "./report-change.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import type { BrokerOptions, Session } from "./session.js";
import type { Surroundings } from "./surroundings.js";

interface Options extends BrokerOptions, WaitChoice, ParameterChoice, FormatChoice {
  readonly service?: string;
  readonly plan?: string;
  readonly app?: string;
  readonly rotate?: string;
}

/** `osbert bind`: a new binding, and its credentials on the standard output. */
export function registerBind(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("bind")
    .summary("make a binding and print its credentials")
    .description("Makes a binding to an instance, waits until it is there and prints its credentials.")
    .argument("<instance>", "the name you gave it")
    .argument("<binding>", "how you call the binding")
    .action((instance: string, binding: string, options: Options) => bind(instance, binding, options, surroundings));
  withParameterOptions(withPlanOptions(command, ofExistingInstance))
    .option("--app <id>", "app_guid, for services that bind to an application")
    .option("--rotate <binding>", "make it the successor of that binding, which stays valid for a while");
  withBrokerOptions(withWaitOptions(withFormatOptions(command)));
  withExamples(command, [
    { does: "credentials as JSON", command: "osbert bind my-db my-app" },
    {
      does: "credentials as variables of this shell: MY_DB_URI and so on",
      command: 'eval "$(osbert bind my-db my-app --format env)"',
    },
  ]);
}

function bind(instanceName: string, bindingName: string, options: Options, surroundings: Surroundings): Promise<void> {
  return runCommand(options, surroundings, `bind ${bindingName} to ${instanceName}`, async (session) => {
    const instance = resourceId(instanceName, "instance");
    const binding = resourceId(bindingName, "binding");
    const parameters = await readParameters(options.parameters ?? [], session.read);
    const { serviceId, planId, offer } = await existingInstance(session, instance, options);
    const request: BindRequest =
      options.rotate === undefined
        ? {
            service_id: serviceId,
            plan_id: planId,
            ...(parameters !== undefined && { parameters }),
            ...(options.app !== undefined && { app_guid: options.app, bind_resource: appResource(options.app) }),
          }
        : // All else is the predecessor's.
          { predecessor_binding_id: resourceId(options.rotate, "binding") };
    const leftover = {
      sentence: `${binding} may exist at the broker all the same`,
      remove: commandLine(session, "unbind", { instance, binding, serviceId, planId }),
    };
    const { changed, waited } = await carryOut(session, options, {
      ask: (how) => session.client.bind(instance, binding, request, { ...session.call, ...how }),
      what: `binding ${binding} to ${instance}`,
      poll: (wait) => session.client.waitForBinding(instance, binding, wait),
      options: { serviceId, planId, change: "create" },
      maximumPollingDuration: offer?.plan.maximum_polling_duration,
      leftover,
    });
    // The answer that accepted the order carries no credentials: those who answer so must let the binding be fetched.
    const made: FetchBindingResponse | undefined =
      waited.kind !== "succeeded"
        ? undefined
        : changed.kind === "done"
          ? changed.body
          : await fetchMade(session, instance, binding, { serviceId, planId });
    const { text, lines, data } = await mayLeave(leftover, async () => bindingOutput(made ?? {}, instance, options));
    return reportChange(session, {
      instance,
      binding,
      done: `${binding} is bound to ${instance}`,
      serviceId,
      planId,
      changed,
      waited,
      data: made === undefined ? {} : data,
      lines,
      output: text,
    });
  });
}

function appResource(app: string): NonNullable<BindRequest["bind_resource"]> {
  return { app_guid: app } as unknown as NonNullable<BindRequest["bind_resource"]>;
}

async function fetchMade(
  session: Session,
  instance: string,
  binding: string,
  hints: Hints,
): Promise<FetchBindingResponse> {
  try {
    const { body } = await bearAbsence(session, () =>
      session.client.fetchBinding(instance, binding, { ...session.call, ...hints }),
    );
    return body;
  } catch (error) {
    session.surroundings.stderr.write(
      `${binding} is bound to ${instance}, but its credentials could not be fetched; try osbert fetch\n`,
    );
    throw error;
  }
}
