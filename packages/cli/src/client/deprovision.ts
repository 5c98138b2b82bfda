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

/** `osbert deprovision`: the instance and what is in it go. One that is gone already is no error. */
export function registerDeprovision(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("deprovision")
    .summary("delete an instance")
    .description("Deletes an instance with all that is in it, and waits until that is done.")
    .argument("<instance>", "the name you gave it")
    .action((instance: string, options: Options) => deprovision(instance, options, surroundings));
  withBrokerOptions(withWaitOptions(withPlanOptions(command, ofExistingInstance)));
  withExamples(command, [
    { does: "delete the database", command: "osbert deprovision my-db" },
    {
      does: "after a failed provision, of which the broker tells nothing",
      command: "osbert deprovision my-db --service sqlite-database --plan small",
    },
  ]);
}

function deprovision(name: string, options: Options, surroundings: Surroundings): Promise<void> {
  return runCommand(options, surroundings, `deprovision ${name}`, async (session) => {
    const instance = resourceId(name, "instance");
    const { serviceId, planId, offer } = await existingInstance(session, instance, options);
    const leftover = {
      sentence: `${instance} may still exist at the broker`,
      remove: commandLine(session, "deprovision", { instance, serviceId, planId }),
    };
    const { changed, waited } = await carryOut(session, options, {
      ask: (how) => session.client.deprovision(instance, { ...session.call, ...how, serviceId, planId }),
      what: `deprovisioning ${instance}`,
      poll: (wait) => session.client.waitForInstance(instance, wait),
      options: { serviceId, planId, change: "delete" },
      maximumPollingDuration: offer?.plan.maximum_polling_duration,
      leftover,
    });
    const done = changed.status === 410 ? `${instance} was gone already` : `${instance} is deprovisioned`;
    return reportChange(session, { instance, done, serviceId, planId, changed, waited });
  });
}
