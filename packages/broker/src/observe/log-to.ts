import {
  errorFacts,
  type Line,
  type Logger,
  type LogOptions,
  logLines,
  type News,
  requestLine,
} from "@osbert/server/observe";
import { bugLineOf } from "./bug.js";
import type { BrokerEvent, Observer } from "./event.js";
import { failedStep } from "./failed-step.js";

/**
 * One line for each thing that happens, with the ids of request, operation, instance and binding. What a platform does wrong is `info`,
 * what goes wrong here `error`, what is tried again `warn`; polls, steps and stacks are `debug`. No header, parameter, credential, state
 * or result is ever logged; of an error its class and message are, as the platform is told them.
 *
 * What looks like a bug in a service is told once more when it has failed three times, as `error`, with the place in the author's files.
 *
 * Requests that are not let in (401, 429) are gathered, as one line for each network and minute; each of them is `debug`, as is what is
 * refused before it is known who asks.
 */
export function logTo(logger: Logger, options: LogOptions = {}): Observer {
  return logLines<BrokerEvent>(logger, lineOf, { ...options, mayBeLoud, bugs: { lineOf: bugLineOf, varies } });
}

/** What fails for one instance as for another, and later as before, is the same. */
export const varies: ReadonlySet<string> = new Set([
  ...["requestId", "operation", "platform", "instance", "binding"],
  ...["attempt", "until", "tookMs", "running"],
]);

/** Whether the line of such an event may be a warning or an error. Those that are named here never are, and every operation and poll makes some. */
export function mayBeLoud({ kind, status = 500, outcome, settleError }: News): boolean {
  switch (kind) {
    case "request answered":
      return status >= 400;
    case "settled":
      return outcome === "failed" || settleError !== undefined;
    default:
      return !quietKinds.has(kind);
  }
}

const quietKinds: ReadonlySet<string> = new Set([
  "accepted",
  "attempt started",
  "step finished",
  "waiting",
  "store answered",
]);

/** `undefined`: nothing. */
export function lineOf(event: BrokerEvent): Line | undefined {
  switch (event.kind) {
    case "request answered":
      return requestLine(event, idsOf(event));
    case "catalog warning":
      return { level: "warn", message: `catalog: ${event.path} ${event.message}`, fields: {} };
    case "catalog refused": {
      const message = "the source of services gave what cannot be offered; what was offered before stays";
      return { level: "error", message, fields: {}, error: event.error };
    }
    case "accepted":
      return { level: "info", message: `${event.operationKind} accepted`, fields: idsOf(event) };
    case "attempt started": {
      const fields = { ...idsOf(event), attempt: event.attempt };
      return { level: "debug", message: `${event.operationKind} begins`, fields };
    }
    case "step finished": {
      const fields = { ...idsOf(event), step: event.step, tookMs: event.tookMs };
      return { level: "debug", message: `${event.operationKind} has done a step`, fields };
    }
    case "waiting": {
      const fields = { ...idsOf(event), until: timeOf(event.until) };
      return { level: "debug", message: `${event.operationKind} waits`, fields };
    }
    case "retrying": {
      const { error, attempt, until } = event;
      const step = failedStep(error);
      const fields = {
        ...idsOf(event),
        ...(step !== null && { step }),
        attempt,
        until: timeOf(until),
        error: errorFacts(error),
      };
      return { level: "warn", message: `${event.operationKind} failed and is tried again`, fields, error };
    }
    case "settled": {
      const { outcome, tookMs, message: why, settleError: error } = event;
      const fields = { ...idsOf(event), outcome, tookMs, ...(why !== null && { why }) };
      if (error !== undefined) {
        const message = `${event.operationKind} ${outcome}, but what that means for the instance could not be kept`;
        return { level: "error", message, fields: { ...fields, error: errorFacts(error) }, error };
      }
      return { level: outcome === "failed" ? "warn" : "info", message: `${event.operationKind} ${outcome}`, fields };
    }
    case "passed over": {
      const fields = { ...idsOf(event), passedOver: event.calls };
      return { level: "warn", message: "deleted by force; what did not end well was passed over", fields };
    }
    case "cancel requested":
      return { level: "info", message: "a cancel was asked for", fields: idsOf(event) };
    case "abandoned": {
      const fields = { ...idsOf(event), why: event.why };
      return { level: "warn", message: `${event.operationKind} did not stop when told to, and was given up`, fields };
    }
    case "unknown kind":
      return { level: "warn", message: `this process cannot do ${event.operationKind}`, fields: idsOf(event) };
    case "lease lost": {
      const fields = { ...idsOf(event), running: event.running };
      return { level: "warn", message: "another process has taken over", fields };
    }
    case "taken over":
      return {
        level: "info",
        message: "went on with what a dead process left",
        fields: { resources: event.resources },
      };
    case "set aside": {
      const fields = { ...idsOf(event), error: errorFacts(event.error) };
      return { level: "error", message: "a record cannot be read and was set aside", fields, error: event.error };
    }
    case "pruned":
      return {
        level: "debug",
        message: "old entries were removed",
        fields: { ...idsOf(event), entries: event.entries },
      };
    case "archive failed": {
      const fields = { ...idsOf(event), entries: event.entries, error: errorFacts(event.error) };
      const message = "old entries cannot be kept elsewhere; they stay, and it is tried again later";
      return { level: "error", message, fields, error: event.error };
    }
    case "store failed": {
      const fields = { doing: event.doing, error: errorFacts(event.error) };
      return { level: "error", message: "the store does not answer", fields, error: event.error };
    }
    case "store answered again":
      return { level: "info", message: "the store answers again", fields: { doing: event.doing } };
    case "presence lost":
      return { level: "warn", message: "the store no longer vouches for this process", fields: {} };
    case "store answered":
      return undefined;
  }
}

/** The ids by which lines of one story are found. */
function idsOf(event: object): object {
  const ids: Record<string, string> = {};
  for (const name of ["requestId", "operation", "platform", "instance", "binding", "service", "plan"]) {
    const value: unknown = (event as Readonly<Record<string, unknown>>)[name];
    if (typeof value === "string" && value !== "") ids[name] = value;
  }
  return ids;
}

function timeOf(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? String(ms) : time.toISOString();
}
