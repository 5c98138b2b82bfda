export { eventDescriptions, flowDescriptions } from "./descriptions.js";
export { type EventRouteName, eventRoutes } from "./event-routes.js";
export { type FlowRouteName, flowRoutes } from "./flow-routes.js";
export type {
  ConditionView,
  FlowView,
  HistoryView,
  NamespaceSummary,
  NamespaceView,
  RefusalView,
  WireView,
} from "./flow-views.js";
