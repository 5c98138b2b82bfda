export type { InstanceAddress } from "../records/instance-key.js";
export type { Act } from "./act.js";
export {
  type AdminEndpoints,
  type AdminOptions,
  type AdminRequest,
  adminEndpoints,
} from "./admin-api.js";
export type { Audit, AuditEntry } from "./audit.js";
export type { BulkItem, BulkTarget } from "./bulk.js";
export { adminDescriptions } from "./descriptions.js";
export type { EntryView, OperationDetails, StepView } from "./entry-view.js";
export { type BulkFilter, Operator } from "./operator.js";
export type { Pause } from "./pauses.js";
export type { InstanceFilter, OperationFilter, PageAsk } from "./reading.js";
export { type AdminRouteName, adminRoutes } from "./routes.js";
export type {
  BindingView,
  InstanceSummary,
  InstanceView,
  LastView,
  Masked,
  Named,
  OperationView,
  ServiceView,
} from "./views.js";
