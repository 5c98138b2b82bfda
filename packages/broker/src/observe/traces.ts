import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { RetryLater } from "@osbert/journal";
import { errorFacts } from "./error-facts.js";
import type { OperationPlace, RequestAnswered } from "./event.js";
import { readTraceparent, writeTraceparent } from "./traceparent.js";
import type { Tracing } from "./tracing.js";

/**
 * Spans of an OpenTelemetry tracer: one for each request, and below it one for each attempt of the operation that it began and for each
 * of its steps; in the same trace also when another process does them hours later. Authors' functions run inside, so that spans of their
 * own libraries nest. A `traceparent` of the platform is gone on from. Attributes are ids and names; no header but those, no body.
 */
export function traces(tracer: Tracer): Tracing {
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
          span.setAttributes(requestAttributes(event));
          if (event.status >= 500) fail(span, event.cause ?? new Error(event.description ?? ""));
          span.end();
        },
      };
    },

    attempt(about) {
      const asked = readTraceparent(about.trace ?? undefined);
      const parent = asked === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, asked);
      const attributes = operationAttributes(about, about.operation, about.requestId);
      attributes["osbert.attempt"] = about.attempt;
      const span = tracer.startSpan(about.operationKind, { kind: SpanKind.INTERNAL, attributes }, parent);
      // Not in the context of whatever made the engine look: that may have been another request.
      const inside = trace.setSpan(ROOT_CONTEXT, span);
      return {
        run: (work) => context.with(inside, work),
        step(name) {
          const step = tracer.startSpan(name, { attributes: { "osbert.step": name } }, nearest(inside));
          return {
            run: (work) => context.with(trace.setSpan(context.active(), step), work),
            end(error) {
              if (error !== undefined) note(step, error);
              step.end();
            },
          };
        },
        end(how, error) {
          span.setAttribute("osbert.attempt.end", how);
          if (error !== undefined) note(span, error);
          span.end();
        },
      };
    },
  };
}

/** The author's own span around the step, if there is one in this trace. */
function nearest(attempt: Context): Context {
  const active = context.active();
  const isInside = trace.getSpanContext(active)?.traceId === trace.getSpanContext(attempt)?.traceId;
  return isInside ? active : attempt;
}

/** One who asks to be called later has not failed. */
function note(span: Span, error: unknown): void {
  if (error instanceof RetryLater) span.addEvent("waits", { reason: errorFacts(error).message });
  else fail(span, error);
}

/** Class and message, as in logs; no stack. */
function fail(span: Span, error: unknown): void {
  const { type, message } = errorFacts(error);
  span.addEvent("exception", { "exception.type": type, "exception.message": message });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

function requestAttributes(event: RequestAnswered): Attributes {
  const { route, status, errorCode, credential, platform, instance, binding, operation, requestId } = event;
  return present({
    "http.response.status_code": status,
    "osbert.route": route,
    "osbert.error": errorCode,
    "osbert.credential": credential,
    "osbert.platform": platform,
    "osbert.instance": instance,
    "osbert.binding": binding,
    "osbert.service": event.service,
    "osbert.plan": event.plan,
    "osbert.operation": operation,
    "osbert.request": requestId,
  });
}

function operationAttributes(place: OperationPlace, operation: string, requestId: string | null): Attributes {
  const { platform, instance, binding, service, plan } = place;
  return present({
    "osbert.platform": platform,
    "osbert.instance": instance,
    "osbert.binding": binding,
    "osbert.service": service,
    "osbert.plan": plan,
    "osbert.operation": operation,
    "osbert.request": requestId,
  });
}

function present(attributes: Readonly<Record<string, string | number | null>>): Attributes {
  const given: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== "") given[name] = value;
  return given;
}
