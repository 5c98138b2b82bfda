import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { type Tracing, traces } from "@osbert/broker/observe";

export interface SentTraces {
  readonly tracing: Tracing;
  /** Sends what is left, for a few seconds at most. */
  readonly end: () => Promise<void>;
}

const lastSendingMs = 5_000;

/** Traces that are sent to a collector, in batches, off the way of requests. One that does not answer loses them, and nothing else. */
export function sendTraces(endpoint: string): SentTraces {
  const exporter = new OTLPTraceExporter({ url: endpoint, timeoutMillis: lastSendingMs });
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  // So that spans of the services' own libraries nest below those of their steps.
  provider.register();
  return {
    tracing: traces(provider.getTracer("osbert")),
    end: () => provider.shutdown().catch(() => undefined),
  };
}
