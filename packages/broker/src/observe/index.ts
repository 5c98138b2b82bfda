export type { Readiness } from "@osbert/server";
export type { RefusedCaller } from "@osbert/server/authentication";
export type { ArrivingRequest } from "@osbert/server/observe";
export type { BrokerBacklog, ServiceBacklog } from "./backlog.js";
export type {
  BrokerEvent,
  CatalogWarning,
  InstancePlace,
  NamedInRequest,
  Observer,
  OperationPlace,
  PassedOverByForce,
  RequestAnswered,
} from "./event.js";
export { type Logger, type LogOptions, logTo } from "./log-to.js";
export { type MetricDefinition, metricDefinitions } from "./metric-definitions.js";
export { type Measured, type Metrics, type MetricsOptions, metrics } from "./metrics.js";

export type { StderrLevel } from "./stderr-log.js";
export { traces } from "./traces.js";
export type { AroundRequest, Tracing } from "./tracing.js";
