import type { AroundAttempt, AroundStep, AttemptFacts } from "@osbert/journal";
import type { OperationPlace, RequestAnswered } from "./event.js";

/** Stands around requests, attempts and steps. `traces` makes one of an OpenTelemetry tracer. It cannot harm what it stands around. */
export interface Tracing {
  request(about: ArrivingRequest): AroundRequest;
  attempt(about: AttemptFacts & OperationPlace): AroundAttempt;
}

export interface ArrivingRequest {
  readonly method: string;
  /** The headers of these names, as they came: they may hold anything. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

export interface AroundRequest extends Pick<AroundStep, "run"> {
  /** Where the request stands, as a traceparent: kept with what it begins. */
  readonly trace: string | null;
  end(event: RequestAnswered): void;
}
