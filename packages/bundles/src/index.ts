// In the order of folders. What is offered: sources of bundles as services for `createBroker`.
export { type MirrorPolicy, mirrorPolicies } from "./catalog/artifact-mirror.js";
export { type BundleServices, bundleServices } from "./catalog/bundle-services.js";
export {
  type BundleServicesOptions,
  type CollectionOptions,
  defaultLimits,
} from "./catalog/bundle-services-options.js";
export type { BundleSource } from "./catalog/bundle-source.js";
export { type OpenBundleSourceOptions, openBundleSource } from "./catalog/open-bundle-source.js";
export { type HiddenText, type OperatorSecret, secretProblem } from "./catalog/operator-secrets.js";
export { PushedStore, pushLimits } from "./catalog/pushed-store.js";
// What a bundle says of itself.
export {
  type Action,
  actions,
  type BundleSpec,
  type ParsedBundle,
  type PlanSpec,
  type SpecProblem,
} from "./formats/bundle-spec.js";
export { parseApb } from "./formats/parse-apb.js";
export { parserVersion } from "./formats/parse-bundle.js";
export { parseOsbertYaml } from "./formats/parse-osbert-yaml.js";
// How a source is read, for whoever makes a `BundleSource` of a source of their own.
export {
  defaultObserveLimits,
  type ObserveLimits,
  type ObserveRequest,
  observeSource,
} from "./observe/observe-source.js";
// What is kept of a source, what a person decides about it (`BundleServices.sources` and `decide`), and what a reading saw and becomes.
export {
  type AdminDecision,
  confirmContent,
  confirmRemoval,
  type Decider,
  disable,
  drain,
  enable,
  hold,
  release,
  removePushed,
  restore,
  withdraw,
} from "./reconcile/admin-decisions.js";
export type { Collectable, Collection, CollectRules } from "./reconcile/collect.js";
export { type KnowingReader, type KnownRef, type KnownRefs, knownRefs } from "./reconcile/known-digests.js";
export { type ReconcileFacts, reconcile } from "./reconcile/next-state.js";
export { type ChannelRef, type Observation, type RefSeen, type Revision, specId } from "./reconcile/observation.js";
export { type EventCode, eventCodes, type ReconcileEvent } from "./reconcile/reconcile-event.js";
export type {
  HeldRemoval,
  SourceData,
  SourceHealth,
  SpecRecord,
  SpecState,
  StoredSource,
} from "./reconcile/records.js";
export { newSource } from "./reconcile/records.js";
// The guard against mass removals, for whoever follows something else that can be emptied by mistake.
export { type GuardRuling, guardRemovals, type Removal } from "./reconcile/removal-guard.js";
export { defaultRules, type Grace, type Rules } from "./reconcile/rules.js";
// What runs bundles, and what whoever writes a runner of another kind needs; its suite is in `@osbert/bundles/testing`.
export { exitCodes, noOutput, readOutput } from "./runners/action-output.js";
export { type ContainerRunnerOptions, openContainerRunner, pullFailure } from "./runners/container-runner.js";
export { namePlace } from "./runners/jobs/name-place.js";
export { limitJobs } from "./runners/limit-jobs.js";
export { openProcessRunner, type ProcessRunnerOptions } from "./runners/process-runner.js";
export { addressSecrets, redact, secretParts } from "./runners/redact.js";
export type { Job, JobLimits, JobOperation, JobSecrets, JobState, KnownJob, Runner } from "./runners/runner.js";
export { type RunnersByArtifact, runnerByArtifact } from "./runners/runner-by-artifact.js";
export { checkJobId, RunnerError, type RunnerFailure, runnerFailures } from "./runners/runner-error.js";
// Which sources, and what of them: the settings, checked.
export { type CompiledSelection, compileSelection } from "./selection/compile-selection.js";
export { parseSources, type SourceSettings } from "./selection/parse-sources.js";
export type { NamedTags, NamePattern, Selection, TagRule } from "./selection/selection.js";
export type { ParsedSources, SettingFault, SourceConfig } from "./selection/source-config.js";

// Where bundles lie, and what whoever writes a source of another kind needs.
export { bundleLabels, bundleMediaTypes } from "./sources/bundle-media-types.js";
export { readLayoutEntrypoint } from "./sources/image-layout.js";
export { type LabelBundle, labelBundle } from "./sources/label-bundle.js";
export {
  type CredentialsPlace,
  credentialsProblem,
  openSource,
  type SecretPlace,
  type SignaturePlace,
  type SourceConnection,
  type SourcePorts,
  type TlsPlace,
} from "./sources/open-source.js";
export type { PushedBundles } from "./sources/push-source.js";
export { SignatureKeyError } from "./sources/signature-keys.js";
export type { Artifact, BundleFormat, Digest, ReadBundle, Ref, Source } from "./sources/source.js";
export { SourceError, type SourceFailure } from "./sources/source-error.js";
export { defaultSourceLimits, type SourceLimits } from "./sources/source-limits.js";
