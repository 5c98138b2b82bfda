import type { AroundAttempt, AttemptFacts } from "@osbert/journal";
import type { RequestTracing, AroundRequest as ServerAroundRequest } from "@osbert/server/observe";
import type { RequestAnswered } from "./event.js";
import type { OperationAddress } from "./operation-address.js";

/** Stands around requests, attempts and steps. `traces` makes one of an OpenTelemetry tracer. It cannot harm what it stands around. */
export interface Tracing extends RequestTracing<RequestAnswered> {
  attempt(about: AttemptFacts & OperationAddress): AroundAttempt;
}

/** Stands around a request. */
export interface AroundRequest extends ServerAroundRequest<RequestAnswered> {}
