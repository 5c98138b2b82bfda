import {
  type Attributes,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { errorFacts } from "../observe/error-facts.js";
import type { RequestAnswered } from "../observe/event.js";
import type { RequestTracing } from "../observe/request-tracing.js";
import { readTraceparent, writeTraceparent } from "./traceparent.js";

/**
 * One span of an OpenTelemetry tracer for each request, with the room's own attributes. A `traceparent` of the caller is gone on from.
 * No header but those, no body.
 */
export function requestTraces<Event extends RequestAnswered>(
  tracer: Tracer,
  attributesOf: (event: Event) => Attributes,
): RequestTracing<Event> {
  return {
    request({ method, traceparent, tracestate }) {
      const caller = readTraceparent(traceparent, tracestate);
      const parent = caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
      const attributes = { "http.request.method": method.slice(0, 20) };
      const span = tracer.startSpan(method.slice(0, 20), { kind: SpanKind.SERVER, attributes }, parent);
      const inside = trace.setSpan(context.active(), span);
      return {
        trace: writeTraceparent(span.spanContext()),
        run: (work) => context.with(inside, work),
        end(event) {
          span.updateName(event.route ?? "request");
          span.setAttributes({ "http.response.status_code": event.status, ...attributesOf(event) });
          if (event.status >= 500) failSpan(span, event.cause ?? new Error(event.description ?? ""));
          span.end();
        },
      };
    },
  };
}

/** Class and message, as in logs; no stack. */
export function failSpan(span: Span, error: unknown): void {
  const { type, message } = errorFacts(error);
  span.addEvent("exception", { "exception.type": type, "exception.message": message });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** Without those that are empty. */
export function presentAttributes(attributes: Readonly<Record<string, string | number | null>>): Attributes {
  const given: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== "") given[name] = value;
  return given;
}
