import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from "@opentelemetry/api";

/** Longer ones may be dropped, says the specification of trace contexts; they come from anywhere. */
const longestTraceState = 512;

/** Reads a W3C `traceparent`; `undefined` if it is none. */
export function readTraceparent(text: string | undefined, state?: string): SpanContext | undefined {
  const match = text === undefined || text.length > 200 ? null : pattern.exec(text.trim());
  if (match === null) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", rest = ""] = match;
  // Of a later version only the fields that this one knows are read; "ff" is none.
  if (version === "ff" || (version === "00" && rest !== "")) return undefined;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  const context = { traceId, spanId, traceFlags, isRemote: true };
  if (!isSpanContextValid(context)) return undefined;
  const given = state !== undefined && state.length <= longestTraceState ? state.trim() : "";
  return given === "" ? context : { ...context, traceState: createTraceState(given) };
}

export function writeTraceparent(context: SpanContext): string | null {
  if (!isSpanContextValid(context)) return null;
  const flags = context.traceFlags & TraceFlags.SAMPLED ? "01" : "00";
  return `00-${context.traceId}-${context.spanId}-${flags}`;
}

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
