export {
  type AnswerClass,
  answerClasses,
  type Call,
  type ClassifiedAnswer,
  classify,
  type NextStep,
  orphanOfFailedOperation,
  type Received,
} from "./answer-classes.js";
export {
  type Catalog,
  type DashboardClient,
  type InputSchema,
  isBindable,
  isPlanUpdateable,
  type PlanSchemas,
  type Requirement,
  type ServiceOffering,
  type ServicePlan,
} from "./catalog/catalog.js";
export type { Finding } from "./catalog/check.js";
export { checkCatalog, checkOffering, checkUnique, type OfferingIds } from "./catalog/check-catalog.js";
export { isSemanticVersion } from "./catalog/semantic-version.js";
export {
  type CloudFoundryContext,
  type Context,
  isVolatileContextField,
  type KubernetesContext,
  type OtherContext,
  stableContext,
} from "./context.js";
export { BrokerError, type BrokerErrorCode, type BrokerErrorOptions, brokerErrors, type ErrorBody } from "./errors.js";
export {
  type ApiVersion,
  apiVersion,
  headerNames,
  isSupported,
  type OriginatingIdentity,
  parseApiVersion,
  parseOriginatingIdentity,
  printOriginatingIdentity,
} from "./headers.js";
export { canonicalJson, hasInfinity, isDeeperThan, isJsonObject, type Json, type JsonObject } from "./json.js";
export {
  type Binding,
  type BindingMetadata,
  type BindRequest,
  type BindResource,
  type BindResponse,
  type DeleteResponse,
  type Endpoint,
  type FetchBindingResponse,
  type FetchInstanceResponse,
  type InstanceMetadata,
  type LastOperationResponse,
  longestOperation,
  type MaintenanceInfo,
  type OperationState,
  type PreviousValues,
  type ProvisionRequest,
  type ProvisionResponse,
  type UpdateRequest,
  type UpdateResponse,
  type VolumeMount,
} from "./messages.js";
export { type Draft04Schema, draft04, type Loss, toDraft04 } from "./schemas/to-draft-04.js";
