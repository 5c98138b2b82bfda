import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, ROOT_CONTEXT } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";

/** What a test looks at of a span. */
export interface SeenSpan {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  readonly parent: string | null;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
}

export function seenSpan(span: ReadableSpan): SeenSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    trace: traceId,
    id: spanId,
    parent: span.parentSpanContext?.spanId ?? null,
    attributes: span.attributes,
    failed: span.status.code === 2,
  };
}

/** As SDKs register one: the context follows promises. */
export function followContext(): void {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (inside, work, self, ...args) => storage.run(inside, () => work.call(self as never, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
}
