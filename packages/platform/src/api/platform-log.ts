import type { JournalEvent } from "@osbert/journal";
import { errorFacts, type Line, type Logger, logLines, type Observe, requestLine } from "@osbert/server/observe";
import type { ApiRequestAnswered } from "./seen-api-request.js";

/** Everything about a platform that is worth telling: its requests, its operations, its store. Nothing in it has a parameter or a credential. */
export type PlatformEvent = ApiRequestAnswered | JournalEvent;

/** One line for each thing that happens, with the ids of request and operation. What a user does wrong is `info`. */
export function platformLog(logger: Logger): Observe<PlatformEvent> & { readonly logs: true } {
  return logLines(logger, lineOf);
}

function lineOf(event: PlatformEvent): Line | undefined {
  switch (event.kind) {
    case "request answered":
      return requestLine(event, idsOf(event, "requestId", "space", "instance", "binding", "broker"));
    case "accepted":
      return { level: "debug", message: `${event.operationKind} accepted`, fields: operationOf(event) };
    case "settled": {
      const { outcome, tookMs, message: why, settleError: error } = event;
      const fields = { ...operationOf(event), outcome, tookMs, ...(why !== null && { why }) };
      if (error === undefined)
        return { level: outcome === "failed" ? "warn" : "info", message: `${event.operationKind} ${outcome}`, fields };
      const message = `${event.operationKind} ${outcome}, but what that means could not be kept`;
      return { level: "error", message, fields: { ...fields, error: errorFacts(error) }, error };
    }
    case "retrying": {
      const { error } = event;
      const fields = { ...operationOf(event), attempt: event.attempt, error: errorFacts(error) };
      return { level: "warn", message: `${event.operationKind} failed and is tried again`, fields, error };
    }
    case "abandoned": {
      const message = `${event.operationKind} did not stop when told to, and was given up`;
      return { level: "warn", message, fields: { ...operationOf(event), why: event.why } };
    }
    case "unknown kind":
      return { level: "warn", message: `this process cannot do ${event.operationKind}`, fields: operationOf(event) };
    case "lease lost":
      return { level: "warn", message: "another process has taken over", fields: idsOf(event, "key") };
    case "taken over":
      return {
        level: "info",
        message: "went on with what a dead process left",
        fields: { resources: event.resources },
      };
    case "set aside": {
      const fields = { ...idsOf(event, "key"), error: errorFacts(event.error) };
      return { level: "error", message: "a record cannot be read and was set aside", fields, error: event.error };
    }
    case "store failed": {
      const fields = { doing: event.doing, error: errorFacts(event.error) };
      return { level: "error", message: "the store does not answer", fields, error: event.error };
    }
    case "store answered again":
      return { level: "info", message: "the store answers again", fields: { doing: event.doing } };
    case "presence lost":
      return { level: "warn", message: "the store no longer vouches for this process", fields: {} };
    case "archive failed": {
      const fields = { ...idsOf(event, "key"), error: errorFacts(event.error) };
      return { level: "error", message: "old entries cannot be kept elsewhere; they stay", fields, error: event.error };
    }
    case "attempt started":
    case "step finished":
    case "waiting":
    case "cancel requested":
    case "pruned":
      return undefined;
  }
}

function operationOf(event: object): object {
  return idsOf(event, "requestId", "key", "operation");
}

/** The ids by which lines of one story are found. */
function idsOf(event: object, ...names: readonly string[]): object {
  const all = event as Readonly<Record<string, unknown>>;
  return Object.fromEntries(names.map((name) => [name, all[name]]).filter(([, value]) => typeof value === "string"));
}
