export type { Readiness } from "@osbert/server";
export type { RefusedCaller } from "@osbert/server/authentication";
export type { MetricDefinition } from "@osbert/server/metrics";
export type { ArrivingRequest, Logger, LogOptions, StderrLevel } from "@osbert/server/observe";
export type { InstanceAddress } from "../records/instance-key.js";
export type { BrokerBacklog, ServiceBacklog } from "./backlog.js";
export type {
  BrokerEvent,
  CatalogWarning,
  NamedInRequest,
  Observer,
  PassedOverByForce,
  RequestAnswered,
} from "./event.js";
export { logTo } from "./log-to.js";
export { metricDefinitions } from "./metric-definitions.js";
export { type Measured, type Metrics, type MetricsOptions, metrics } from "./metrics.js";
export type { OperationAddress } from "./operation-address.js";

export { traces } from "./traces.js";
export type { AroundRequest, Tracing } from "./tracing.js";
