export type { AdoptedInstance, AdoptOutcome } from "../decisions/adopt.js";
export type { InstanceAddress } from "../records/instance-key.js";
export {
  type AdminEndpoints,
  type AdminOptions,
  type AdminRequest,
  adminEndpoints,
} from "./admin-api.js";
export type { Audit, AuditEntry } from "./audit.js";
export type { BulkItem, BulkTarget } from "./bulk-action.js";
export { adminDescriptions } from "./descriptions.js";
export type { EntryView, OperationDetails, StepView } from "./entry-view.js";
export { type BulkFilter, Operator } from "./operator.js";
export type { OperatorAttribution } from "./operator-attribution.js";
export type { InstanceFilter, OperationFilter, PageRequest } from "./operator-queries.js";
export type { Pause } from "./pauses.js";
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
