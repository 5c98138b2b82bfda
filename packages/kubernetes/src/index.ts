export { type AccessRule, type EventAccess, type EventAccessOptions, eventAccess } from "./access/event-access.js";
export type { ApiCredentialsInput, GatewayUrl, SecretData } from "./applications/api-credentials.js";
export type {
  ApiEntry,
  Application,
  ApplicationKind,
  ApplicationService,
  CredentialsType,
  SecretPlace,
} from "./applications/application.js";
export type { Applications, ApplicationsChange } from "./applications/applications.js";
export type { AppliedChange } from "./applications/follow-applications.js";
export { type ApplicationFinding, type CatalogMapping, kymaRevisions } from "./applications/offer-applications.js";
export type { ReconcileRules } from "./applications/reconcile-applications.js";
export type { FoundService, Wiring, WiringFunctions, WiringPorts } from "./applications/wiring.js";
export type {
  ApplyOptions,
  CallOptions,
  Cluster,
  ListOptions,
  LogOptions,
  PatchOperation,
  Preconditions,
  RemoveOptions,
  Watch,
  WatchChange,
  WatchOptions,
  WatchState,
} from "./cluster/cluster.js";
export { ClusterError, type ClusterFailure, clusterFailures } from "./cluster/cluster-error.js";
export type { ClusterEvent } from "./cluster/cluster-event.js";
export type { ClusterObject, ObjectKind, ObjectMetadata, ObjectPlace } from "./cluster/cluster-object.js";
export type { ClusterAccess } from "./cluster/credentials.js";
export { type OpenClusterOptions, openCluster } from "./cluster/open-cluster.js";
export { type ExecOptions, type ExecResult, openPodExec, type PodExec } from "./cluster/pod-exec.js";
export type { WatchPace } from "./cluster/watch-pace.js";
export { type EventServices, type EventServicesOptions, openEventServices } from "./events/event-services.js";
export { defaultFlowSettings, type FlowSettings, type Readiness } from "./flows/flow-settings.js";
export {
  type ImportedInstance,
  type ImportFlowsOptions,
  type ImportReport,
  importFlows,
} from "./import/import-flows.js";
export type { ImportFinding, PredecessorMapping } from "./import/plan-import.js";
export { openJobRunner } from "./jobs/job-runner.js";
export { type JobRunnerEvent, type JobRunnerOptions, jobRunnerDefaults } from "./jobs/job-runner-options.js";
export { jobRunnerRules, type RoleRule, sandboxRules, sandboxRunnerRules } from "./jobs/runner-roles.js";
export { imageStreamSource } from "./streams/image-stream-source.js";
export { createWiring, type WiringOptions } from "./wiring/create-wiring.js";
