export type {
  BrokerStateChanged,
  ClusterChanged,
  ClusterRefused,
  FlowConditionChanged,
  FlowEvent,
  FlowObserver,
  NamespaceLookedAt,
} from "./flow-event.js";
export { flowMetrics } from "./flow-metrics.js";
export { logFlows } from "./log-flows.js";
export { flowMetricDefinitions } from "./metric-definitions.js";
