import type { FetchInstanceResponse, ServiceOffering } from "@osbert/protocol";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { bindingOutput } from "./binding-output.js";
import { type FormatChoice, withBrokerOptions, withFormatOptions } from "./command-options.js";
import { type ExitStatus, exitStatuses } from "./exit-status.js";
import { plainJson, plainText } from "./plain-text.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import type { BrokerOptions, Session } from "./session.js";
import type { Surroundings } from "./surroundings.js";

interface Options extends BrokerOptions, FormatChoice {}

/** `osbert fetch`: an instance, or a binding with its credentials, as the broker has it. */
export function registerFetch(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("fetch")
    .summary("show an instance, or a binding's credentials")
    .description("Shows an instance, or prints the credentials of one of its bindings.")
    .argument("<instance>", "the name you gave it")
    .argument("[binding]", "the name you gave it")
    .action((instance: string, binding: string | undefined, options: Options) =>
      runCommand(options, surroundings, `fetch ${binding ?? instance}`, (session) =>
        binding === undefined
          ? fetchInstance(session, resourceId(instance, "instance"))
          : fetchBinding(session, resourceId(instance, "instance"), resourceId(binding, "binding"), options),
      ),
    );
  withBrokerOptions(withFormatOptions(command));
  withExamples(command, [
    { does: "service, plan, parameters and dashboard", command: "osbert fetch my-db" },
    { does: "the credentials of a binding", command: "osbert fetch my-db my-app --format env" },
  ]);
}

async function fetchInstance(session: Session, instance: string): Promise<ExitStatus> {
  const { body: fetched } = await session.client.fetchInstance(instance, session.call);
  const { stdout } = session.surroundings;
  if (session.json) stdout.write(`${plainJson({ instance, ...fetched })}\n`);
  else stdout.write(describe(instance, fetched, await session.services()));
  return exitStatuses.succeeded.status;
}

async function fetchBinding(
  session: Session,
  instance: string,
  binding: string,
  choice: FormatChoice,
): Promise<ExitStatus> {
  const { body: fetched } = await session.client.fetchBinding(instance, binding, session.call);
  const { stdout, stderr } = session.surroundings;
  const { text, lines, data } = bindingOutput(fetched, instance, choice);
  if (session.json) stdout.write(`${plainJson({ instance, binding, ...data })}\n`);
  else {
    for (const line of lines) stderr.write(`${plainText(line)}\n`);
    stdout.write(text);
  }
  return exitStatuses.succeeded.status;
}

function describe(instance: string, fetched: FetchInstanceResponse, services: readonly ServiceOffering[]): string {
  const service = services.find(({ id }) => id === fetched.service_id);
  const plan = service?.plans.find(({ id }) => id === fetched.plan_id);
  const facts: Readonly<Record<string, unknown>> = {
    instance,
    service: service?.name ?? fetched.service_id,
    plan: plan?.name ?? fetched.plan_id,
    dashboard: fetched.dashboard_url,
    parameters: fetched.parameters && plainJson(fetched.parameters, 0),
    maintenance: fetched.maintenance_info?.version,
    metadata: fetched.metadata && plainJson(fetched.metadata, 0),
  };
  return Object.entries(facts)
    .flatMap(([name, value]) => (typeof value === "string" && value !== "" ? [[name, value] as const] : []))
    .map(([name, value]) => `${name.padEnd(11)}  ${plainText(value, 10_000)}\n`)
    .join("");
}
