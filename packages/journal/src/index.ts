export { type Around, type AroundAttempt, type AroundStep, type AttemptFacts, runInside } from "./around.js";
export { type Clock, systemClock } from "./clock.js";
export type { Backlog, LaneOfBacklog } from "./decisions/backlog.js";
export { type Backoff, defaultBackoff } from "./decisions/backoff.js";
export type { KindRules } from "./decisions/kind.js";
export type { LaneRule } from "./decisions/lane-shares.js";
export { type Archive, defaultRetention, type EndedAt, type Retention } from "./decisions/retention.js";
export {
  defineResource,
  type ResourceShape,
  type ResourceType,
  type TypedChange,
  type TypedDecide,
  type TypedDecision,
  type TypedInput,
  type TypedKind,
  type TypedListedOperation,
  type TypedNewOperation,
  type TypedOpenOperation,
  type TypedOperation,
  type TypedOperationChange,
  type TypedOutcome,
  type TypedPart,
  type TypedParts,
  type TypedResource,
  type TypedResult,
} from "./define-resource.js";
export type {
  EffectOptions,
  Look,
  Operation,
  OperationKind,
  PollOptions,
  Step,
  StepOptions,
  TransactEffectOptions,
} from "./engine/operation-kind.js";
export type { OperationKinds } from "./engine/runner.js";
export { Interrupted, JournalError, type JournalErrorCode, journalErrors, Permanent, RetryLater } from "./errors.js";
export type { Followed, FollowedChange, FollowedOptions } from "./followed.js";
export type { BacklogBounds, Journal, JournalOptions, SharedLaneRules, TransactOptions } from "./journal.js";
export type { Json, Jsonified, ReturnsJson } from "./json.js";
export { limits } from "./limits.js";
export { isKeepable } from "./names.js";
export { type CrashPoint, crashPoints, type JournalEvent, type Observe, type OperationFacts } from "./observe.js";
export { observedStore, type StoreAnswered, type StoreCallName } from "./observed-store.js";
export { openJournal } from "./open-journal.js";
export type {
  Actor,
  AskedOperation,
  Attribution,
  CancelRequest,
  Failure,
  FinishedOperation,
  ListedOperation,
  Mode,
  NewOperation,
  OpenOperation,
  OperationState,
  Outcome,
  PollPlace,
} from "./operation.js";
export type { Page, Part, PartPage } from "./page.js";
export type { EntryPage, KeyPage, OperationPage, OperationStatus, ResourceQuery, WorkQuery } from "./reader.js";
export type {
  Cancellation,
  CancelOthers,
  Decide,
  Decision,
  Entry,
  Resource,
  ResourceChange,
  Transacted,
} from "./resource.js";
export { type Label, type Store, setAsideLabel } from "./store.js";
