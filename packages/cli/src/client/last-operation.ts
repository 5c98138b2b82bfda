import type { LastOperationResponse } from "@osbert/protocol";
import { BrokerAnswerError, OperationFailedError, type WaitOptions } from "@osbert/protocol/client";
import type { Command } from "commander";
import { withExamples } from "../examples-of.js";
import { bearAbsence } from "./bear-absence.js";
import { ofExistingInstance, withBrokerOptions, withPlanOptions } from "./command-options.js";
import { CommandError, type ExitStatus, exitStatuses } from "./exit-status.js";
import { findIds, findServiceId } from "./find-plan.js";
import { plainJson, plainText } from "./plain-text.js";
import { resourceId } from "./resource-id.js";
import { runCommand } from "./run-command.js";
import { parseSecondsOption } from "./seconds-option.js";
import type { BrokerOptions, Session } from "./session.js";
import type { Surroundings } from "./surroundings.js";
import { waitForEnd } from "./wait-for-end.js";

interface Options extends BrokerOptions {
  readonly service?: string;
  readonly plan?: string;
  readonly operation?: string;
  readonly wait?: boolean;
  readonly timeout?: number;
}

/** `osbert last-operation`: how far the last operation on an instance or a binding is. */
export function registerLastOperation(program: Command, surroundings: Surroundings): void {
  const command = program
    .command("last-operation")
    .summary("how far the last operation is")
    .description("Says how far the last operation on an instance or a binding is. The exit status tells it too.")
    .argument("<instance>", "the name you gave it")
    .argument("[binding]", "the name you gave it")
    .option("--operation <text>", "which operation, as the broker called it when it took the order")
    .option("--wait", "wait until it has ended")
    .option("--timeout <time>", "with --wait: no longer than this, such as 90s or 10m", parseSecondsOption)
    .action((instance: string, binding: string | undefined, options: Options) =>
      runCommand(options, surroundings, `look at the last operation on ${binding ?? instance}`, (session) =>
        lastOperation(session, instance, binding, options),
      ),
    );
  withBrokerOptions(withPlanOptions(command, ofExistingInstance));
  withExamples(command, [
    { does: "look once", command: "osbert last-operation my-db" },
    { does: "go on waiting for what --no-wait or Ctrl-C left", command: "osbert last-operation my-db --wait" },
  ]);
}

async function lastOperation(
  session: Session,
  instanceName: string,
  bindingName: string | undefined,
  options: Options,
): Promise<ExitStatus> {
  const instance = resourceId(instanceName, "instance");
  const binding = bindingName === undefined ? undefined : resourceId(bindingName, "binding");
  const subject = binding ?? instance;
  const { client } = session;
  const patiently = <T>(ask: () => Promise<T>): Promise<T> => (options.wait ? bearAbsence(session, ask) : ask());
  const hints = await patiently(() => hintsOf(session, options));
  const asked: WaitOptions = { ...session.call, operation: options.operation, ...hints };
  const look = async (): Promise<LastOperationResponse> => {
    const { body } =
      binding === undefined
        ? await client.instanceLastOperation(instance, asked)
        : await client.bindingLastOperation(instance, binding, asked);
    return body;
  };
  const first = await patiently(look).catch(goneIsGone);
  if (first === "gone" || first.state !== "in progress" || !options.wait) return report(session, subject, first);
  const waited = await waitForEnd(session, {
    what: `waiting for ${subject}`,
    poll: (wait) =>
      binding === undefined ? client.waitForInstance(instance, wait) : client.waitForBinding(instance, binding, wait),
    options: { ...asked, change: "unknown" },
    timeout: options.timeout,
  }).catch((error: unknown) => {
    if (error instanceof OperationFailedError && error.last !== undefined) return error.last;
    throw error;
  });
  if ("state" in waited) return report(session, subject, waited);
  const description = waited.kind === "succeeded" ? waited.description : undefined;
  return report(session, subject, { state: waited.kind, ...(description !== undefined && { description }) });
}

function report(session: Session, subject: string, last: LastOperationResponse | "gone"): ExitStatus {
  const { stdout } = session.surroundings;
  const state: unknown = last === "gone" ? "gone" : last.state;
  const status = statusOf(state);
  const description: unknown = last === "gone" ? undefined : last.description;
  if (session.json) stdout.write(`${plainJson(last === "gone" ? { state } : last)}\n`);
  else {
    const said = typeof description === "string" && description !== "" ? `: ${description}` : "";
    stdout.write(`${plainText(`${subject}: ${String(state)}${said}`)}\n`);
  }
  return status;
}

function statusOf(state: unknown): ExitStatus {
  switch (state) {
    case "succeeded":
    case "gone":
      return exitStatuses.succeeded.status;
    case "failed":
      return exitStatuses.failed.status;
    case "in progress":
      return exitStatuses.inProgress.status;
    default:
      throw new CommandError("unreachable", "the broker's answer is broken: it has no state that a broker may answer");
  }
}

function goneIsGone(error: unknown): "gone" {
  if (error instanceof BrokerAnswerError && error.status === 410) return "gone";
  throw error;
}

/** Names become ids; without any nothing is looked up. */
async function hintsOf(session: Session, { service, plan }: Options): Promise<{ serviceId?: string; planId?: string }> {
  if (service === undefined && plan === undefined) return {};
  const services = await session.services();
  if (plan === undefined) return { serviceId: findServiceId(services, service) };
  const { serviceId, planId } = findIds(services, { service, plan });
  return { serviceId, planId };
}
