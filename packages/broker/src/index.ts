export { Permanent, RetryLater } from "@osbert/journal";
export { BrokerError } from "@osbert/protocol";
export type { Answer } from "@osbert/server";
export type { FromSchema, Schema } from "@osbert/server/schemas";
export { type Broker, type BrokerOptions, createBroker } from "./broker.js";
export type { PublishedCatalog } from "./catalog/audience-catalogs.js";
export type { CatalogOptions } from "./catalog/built-service.js";
export { type BrokerCatalog, CatalogError } from "./catalog/catalog.js";
export { buildCatalog } from "./catalog/catalog-builder.js";
export { type FollowedServices, type FollowedServicesOptions, followedServices } from "./catalog/followed-services.js";
export { LayeredMap } from "./catalog/layered-map.js";
export { type PlanInUse, PlansInUseError } from "./catalog/plans-in-use.js";
export type { SchemaDraft } from "./catalog/published-schema.js";
export type {
  AdminRoute,
  AdminRouteRequest,
  AdminRoutes,
  AskFirst,
  Audience,
  Judgement,
  NotKnownYet,
  Refusal,
  ServiceJudge,
  ServiceSource,
  ServiceSourcePorts,
} from "./catalog/service-source.js";
export { type InstanceService, instanceService, type ServiceUse, serviceUse } from "./catalog/service-use.js";
export type { Caller } from "./endpoints/caller.js";
export type { VerbRequest } from "./endpoints/endpoint.js";
export { type Cleanup, type CleanupRule, cleanupRule } from "./operations/cleanup.js";
export { type InstanceAddress, instanceKey } from "./records/instance-key.js";
export type { AsyncMode, AsyncRule, AsyncRules } from "./service/async-rule.js";
export { Failed, type FailedOptions } from "./service/failed.js";
export {
  type BindInput,
  type BindingInfo,
  type BindResult,
  type BindReturn,
  type DeprovisionInput,
  defineService,
  type HookRequest,
  type Hooks,
  type InstanceInfo,
  type PlanDefinition,
  type Prepared,
  type ProvisionInput,
  type ProvisionResult,
  type ProvisionReturn,
  type Service,
  type ServiceDefinition,
  type UnbindInput,
  type UpdateInput,
  type Work,
} from "./service/service.js";
export { defineServiceFunctions, type ServiceFunctions } from "./service/service-functions.js";
export type { Verb } from "./service/verb.js";
