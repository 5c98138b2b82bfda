import type { AroundStep } from "@osbert/journal";
import type { RequestAnswered } from "./event.js";

/** Stands around requests. It cannot harm what it stands around. */
export interface RequestTracing<Event extends RequestAnswered = RequestAnswered> {
  request(about: ArrivingRequest): AroundRequest<Event>;
}

export interface ArrivingRequest {
  readonly method: string;
  /** The headers of these names, as they came: they may hold anything. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

export interface AroundRequest<Event extends RequestAnswered = RequestAnswered> extends Pick<AroundStep, "run"> {
  /** Where the request stands, as a traceparent: kept with what it begins. */
  readonly trace: string | null;
  end(event: Event): void;
}
