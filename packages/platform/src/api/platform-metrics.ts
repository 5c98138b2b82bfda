import { countRequest, type MetricDefinition, metricRegistry, metricSet, type Registry } from "@osbert/server/metrics";
import type { Observe } from "@osbert/server/observe";
import type { PlatformEvent } from "./platform-log.js";

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;
const workBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400] as const;

/** Every metric of a platform. No label holds a name that somebody chose. */
export const platformMetricDefinitions = {
  requests: {
    name: "osbert_platform_requests_total",
    type: "counter",
    labels: ["route", "status"],
    help: "Requests that were answered.",
  },
  requestDuration: {
    name: "osbert_platform_request_duration_seconds",
    type: "histogram",
    labels: ["route"],
    help: "Time from a request to its answer; of a journal that is followed, to the beginning of it.",
    buckets: requestBuckets,
  },
  refused: {
    name: "osbert_platform_requests_refused_total",
    type: "counter",
    labels: ["status", "user"],
    help: "Requests that were not let in, by whether they had a known user name.",
  },
  accepted: {
    name: "osbert_platform_operations_accepted_total",
    type: "counter",
    labels: ["kind"],
    help: "Operations that were accepted.",
  },
  operations: {
    name: "osbert_platform_operations_total",
    type: "counter",
    labels: ["kind", "outcome"],
    help: "Operations that ended.",
  },
  operationDuration: {
    name: "osbert_platform_operation_duration_seconds",
    type: "histogram",
    labels: ["kind", "outcome"],
    help: "Time from the acceptance of an operation to its end, waits included.",
    buckets: workBuckets,
  },
  retries: {
    name: "osbert_platform_operation_retries_total",
    type: "counter",
    labels: ["kind"],
    help: "Attempts that failed and are tried again.",
  },
  storeFailures: {
    name: "osbert_platform_store_failures_total",
    type: "counter",
    labels: [],
    help: "Times that the store began not to answer.",
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** Prometheus metrics of one platform. */
export interface PlatformMetrics {
  readonly observe: Observe<PlatformEvent>;
  readonly contentType: string;
  scrape(): Promise<string>;
  readonly registry: Registry;
}

export function platformMetrics(options: { readonly process?: boolean } = {}): PlatformMetrics {
  const registry = metricRegistry({ process: options.process ?? true });
  const all = metricSet(platformMetricDefinitions, registry);
  const observe = (event: PlatformEvent): void => {
    switch (event.kind) {
      case "request answered":
        countRequest(all, event, { route: event.route ?? "none" });
        break;
      case "accepted":
        all.accepted.inc({ kind: event.operationKind });
        break;
      case "settled": {
        const labels = { kind: event.operationKind, outcome: event.outcome };
        all.operations.inc(labels);
        all.operationDuration.observe(labels, event.tookMs / 1_000);
        break;
      }
      case "retrying":
        all.retries.inc({ kind: event.operationKind });
        break;
      case "store failed":
        all.storeFailures.inc();
        break;
      case "attempt started":
      case "step finished":
      case "waiting":
      case "cancel requested":
      case "abandoned":
      case "unknown kind":
      case "lease lost":
      case "taken over":
      case "set aside":
      case "pruned":
      case "archive failed":
      case "store answered again":
      case "presence lost":
        break;
    }
  };
  return { observe, registry, contentType: registry.contentType, scrape: () => registry.metrics() };
}
