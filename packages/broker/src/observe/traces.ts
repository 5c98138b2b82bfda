import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { RetryLater } from "@osbert/journal";
import { errorFacts } from "@osbert/server/observe";
import { failSpan, presentAttributes, readTraceparent, requestTraces } from "@osbert/server/traces";
import type { RequestAnswered } from "./event.js";
import type { OperationAddress } from "./operation-address.js";
import type { Tracing } from "./tracing.js";

/**
 * Spans of an OpenTelemetry tracer: one for each request, and below it one for each attempt of the operation that it began and for each
 * of its steps; in the same trace also when another process does them hours later. Authors' functions run inside, so that spans of their
 * own libraries nest. A `traceparent` of the platform is gone on from. Attributes are ids and names; no header but those, no body.
 */
export function traces(tracer: Tracer): Tracing {
  return {
    ...requestTraces(tracer, requestAttributes),

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
  else failSpan(span, error);
}

function requestAttributes(event: RequestAnswered): Attributes {
  const { route, errorCode, credential, platform, instance, binding, operation, requestId } = event;
  return presentAttributes({
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

function operationAttributes(address: OperationAddress, operation: string, requestId: string | null): Attributes {
  const { platform, instance, binding, service, plan } = address;
  return presentAttributes({
    "osbert.platform": platform,
    "osbert.instance": instance,
    "osbert.binding": binding,
    "osbert.service": service,
    "osbert.plan": plan,
    "osbert.operation": operation,
    "osbert.request": requestId,
  });
}
