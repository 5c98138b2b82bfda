export type { Registry } from "prom-client";
export { countRequest, type RequestMetrics } from "./count-request.js";
export { type MetricDefinition, type MetricSet, metricRegistry, metricSet, metricsTable } from "./metric-set.js";
