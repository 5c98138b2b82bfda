export { flowDescriptions } from "./descriptions.js";
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
