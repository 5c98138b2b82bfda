import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { carryOut } from "./carry-out.js";
import { commandLine } from "./command-line.js";
import {
  ofExistingInstance,
  type WaitChoice,
  withBrokerOptions,
  withPlanOptions,
  withWaitOptions,
} from "./command-options.js";
import { existingInstance } from "./existing-instance.js";
import { reportChange } from "./report-change.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import type { BrokerOptions } from "./session.js";
import type { Surroundings } from "./surroundings.js";

interface Options extends BrokerOptions, WaitChoice {
  readonly service?: string;
  readonly plan?: string;
}

/** `osbert unbind`: the binding and its credentials end. One that is gone already is no error. */
export function registerUnbind(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("unbind")
    .summary("end a binding")
    .description("Ends a binding, whose credentials are then worth nothing, and waits until that is done.")
    .argument("<instance>", "the name you gave it")
    .argument("<binding>", "the name you gave it")
    .action((instance: string, binding: string, options: Options) => unbind(instance, binding, options, surroundings));
  withBrokerOptions(withWaitOptions(withPlanOptions(command, ofExistingInstance)));
  withExamples(command, [{ does: "take my-app's credentials back", command: "osbert unbind my-db my-app" }]);
}

function unbind(
  instanceName: string,
  bindingName: string,
  options: Options,
  surroundings: Surroundings,
): Promise<void> {
  return runCommand(options, surroundings, `unbind ${bindingName} from ${instanceName}`, async (session) => {
    const instance = resourceId(instanceName, "instance");
    const binding = resourceId(bindingName, "binding");
    const { serviceId, planId, offer } = await existingInstance(session, instance, options);
    const leftover = {
      sentence: `${binding} may still exist at the broker`,
      remove: commandLine(session, "unbind", { instance, binding, serviceId, planId }),
    };
    const { changed, waited } = await carryOut(session, options, {
      ask: (how) => session.client.unbind(instance, binding, { ...session.call, ...how, serviceId, planId }),
      what: `unbinding ${binding} from ${instance}`,
      poll: (wait) => session.client.waitForBinding(instance, binding, wait),
      options: { serviceId, planId, change: "delete" },
      maximumPollingDuration: offer?.plan.maximum_polling_duration,
      leftover,
    });
    const done = changed.status === 410 ? `${binding} was gone already` : `${binding} is unbound from ${instance}`;
    return reportChange(session, { instance, binding, done, serviceId, planId, changed, waited });
  });
}
