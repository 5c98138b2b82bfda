import type { AroundAttempt, AttemptFacts } from "@osbert/journal";
import type { RequestTracing, AroundRequest as ServerAroundRequest } from "@osbert/server/observe";
import type { OperationPlace, RequestAnswered } from "./event.js";

/** Stands around requests, attempts and steps. `traces` makes one of an OpenTelemetry tracer. It cannot harm what it stands around. */
export interface Tracing extends RequestTracing<RequestAnswered> {
  attempt(about: AttemptFacts & OperationPlace): AroundAttempt;
}

/** Stands around a request. */
export interface AroundRequest extends ServerAroundRequest<RequestAnswered> {}
