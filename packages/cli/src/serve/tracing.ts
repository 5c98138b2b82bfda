import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace-node";
import { type Tracing, traces } from "@osbert/broker/observe";
import type { Logger } from "pino";

export interface SentTraces {
  readonly tracing: Tracing;
  /** Sends what is left, for a few seconds at most. */
  readonly end: () => Promise<void>;
}

const lastSendingMs = 5_000;

/**
 * Traces that are sent to a collector, in batches, off the way of requests. One that does not answer loses them, and nothing else; that
 * it does not is told once, and that it does again.
 */
export function sendTraces(endpoint: string, log: Logger): SentTraces {
  const exporter = new OTLPTraceExporter({ url: endpoint, timeoutMillis: lastSendingMs });
  tellOfTrouble(exporter, endpoint, log);
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  // So that spans of the services' own libraries nest below those of their steps.
  provider.register();
  return {
    tracing: traces(provider.getTracer("osbert")),
    end: () => provider.shutdown().catch(() => undefined),
  };
}

function tellOfTrouble(exporter: SpanExporter, endpoint: string, log: Logger): void {
  const send = exporter.export.bind(exporter);
  const where = placeOf(endpoint);
  let lost = 0;
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      const failed = result.error !== undefined || result.code !== sent;
      if (failed && lost === 0)
        log.warn(
          { endpoint: where, error: whyOf(result.error) },
          "traces cannot be sent; until they can, they are lost",
        );
      if (!failed && lost > 0) log.info({ endpoint: where, lost }, "traces are sent again");
      lost = failed ? lost + spans.length : 0;
      done(result);
    });
}

/** ExportResultCode.SUCCESS of OpenTelemetry. */
const sent = 0;

/** Without what may be secret in a URL: a user's name and password, a token in the query. */
function placeOf(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).origin + new URL(endpoint).pathname : "tracing.endpoint";
}

/** Several addresses of one name fail together, as an error without a message. */
function whyOf(error: unknown): string {
  const { message = "", code = "" } = (error ?? {}) as { readonly message?: string; readonly code?: string | number };
  return message || String(code) || "no answer";
}
