import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { OfferedPlan } from "../catalog/offered-service.js";
import { type Decision, refused } from "../decisions/decision.js";
import { type AsyncMode, asyncRule } from "../service/async-rule.js";
import type { Verb } from "../service/verb.js";
import type { EndpointPorts } from "./endpoint.js";

/** B4: how a request is answered. */
export interface AnswerRule {
  readonly mode: AsyncMode;
  readonly acceptsIncomplete: boolean;
  /** The platform may be answered before the end. */
  readonly mayGoOn: boolean;
  /** So long the end is waited for. */
  readonly waitMs: number;
}

/** What holds for one request: by the plan, else the service, else the broker, and by what the platform accepts. */
export function answerRule(
  ports: EndpointPorts,
  verb: Verb,
  acceptsIncomplete: boolean,
  serviceId: string,
  offered: OfferedPlan | undefined,
): AnswerRule {
  const service = offered ?? ports.catalog().services.get(serviceId);
  const rule = asyncRule(verb, offered?.definition.async, service?.service.async, ports.async);
  // BIND-38: what cannot be fetched has to be in the answer.
  const mustTell = verb === "bind" && service?.offering.bindings_retrievable === false;
  const mode = mustTell && rule.mode === "prefer" ? "never" : rule.mode;
  const mayGoOn = acceptsIncomplete && mode !== "never";
  return { mode, acceptsIncomplete, mayGoOn, waitMs: mayGoOn ? (rule.answerWithinMs ?? 0) : ports.syncTimeoutMs };
}

/** What is only done asynchronously is refused to a platform that does not accept that; nothing has begun then. */
export function withinRule(
  decision: Decision,
  { mode, acceptsIncomplete, mayGoOn }: AnswerRule,
  { isPaused }: EndpointPorts,
  serviceId: string,
): Decision {
  // Nobody can say how long a platform would be kept waiting.
  if (decision.kind === "accepted" && !mayGoOn && isPaused(serviceId))
    return refused("unprocessable", "the service is paused by its operator; ask again when that is over");
  if (!begins(decision) || mode !== "require" || acceptsIncomplete) return decision;
  return refused("async-required", "this is only done asynchronously: ask with accepts_incomplete=true");
}

/** Whether there is an operation to wait for, new or not. */
export function begins({ kind }: Decision): boolean {
  return kind === "accepted" || kind === "repeated";
}

export function readAcceptsIncomplete(query: JsonObject): boolean {
  const value = query.accepts_incomplete;
  if (value === undefined || value === "false" || value === "") return false;
  if (value === "true") return true;
  throw new BrokerError("bad-request", "accepts_incomplete must be true or false");
}
