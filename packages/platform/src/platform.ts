import type { Attribution, Page } from "@osbert/journal";
import type { ServiceOffering } from "@osbert/protocol";
import type { BrokerAuthentication, BrokerHealth, BrokerLimits } from "./records/broker-record.js";
import type { CampaignData, StartCampaign, TargetRecord, TargetState } from "./records/campaign-record.js";
import type { Freeze } from "./records/freeze-record.js";
import type {
  AppliedState,
  BindingPhase,
  DeleteMode,
  FailedIntent,
  HoldReason,
  InstanceLock,
  InstancePolicy,
  IntentName,
  PathChange,
  Phase,
  PlanRef,
  RefusedDelete,
} from "./records/instance-record.js";
import type { InstanceRef } from "./records/keys.js";
import type { OrphanData } from "./records/orphan-record.js";
import type { PreflightReport } from "./records/preflight-report.js";
import type { Quota } from "./records/quota-record.js";
import type { RotationData } from "./records/rotation-record.js";
import type { Visibility } from "./records/visibility-record.js";

export type { StartCampaign };

/** Who asks for a change, and how it is to be taken. */
export interface Asking {
  readonly by: Attribution;
  /** Goes to the broker as the originating identity, with the word of the platform's profile before it. */
  readonly identity?: { readonly [name: string]: unknown };
  readonly idempotencyKey?: string;
  /** The revision that the caller has seen. */
  readonly ifMatch?: number;
  /** Answers the report and the simulated end; changes nothing. */
  readonly dryRun?: boolean;
}

/** What came of a wanted change. */
export type Admitted =
  | { readonly kind: "accepted"; readonly operation: string; readonly instance: InstanceView }
  /** The same request came before. */
  | { readonly kind: "repeated"; readonly operation: string; readonly instance: InstanceView }
  | { readonly kind: "unchanged"; readonly instance: InstanceView }
  | { readonly kind: "dry run"; readonly report: PreflightReport; readonly desired: AppliedState | null };

export interface CreateInstance {
  readonly broker?: string;
  /** Names or ids. */
  readonly offering: string;
  readonly plan: string;
  /** JSON text of an object. */
  readonly parameters?: string;
  readonly policy?: Partial<InstancePolicy>;
}

export interface UpdateInstance {
  readonly plan?: string;
  readonly parameters?: string;
  /** Operations that must have succeeded before it. */
  readonly after?: readonly string[];
}

export interface DeleteInstance {
  readonly mode?: DeleteMode;
  /** With `after`. */
  readonly after?: string;
  readonly cascade?: boolean;
  /** Sends the DELETE beside an active update. */
  readonly now?: boolean;
  /** Needed by `abandon`. */
  readonly reason?: string;
}

export interface CreateBinding {
  readonly name: string;
  readonly parameters?: string;
  readonly appGuid?: string;
}

/** Everything about an instance in one read. `desired` is what it will be if all that is queued succeeds. */
export interface InstanceView {
  readonly id: string;
  readonly space: string;
  readonly name: string;
  readonly broker: string;
  readonly offering: PlanRef;
  readonly osbId: string | null;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly phase: Phase;
  readonly usable: boolean;
  readonly certainty: { readonly certain: boolean; readonly since?: number; readonly operation?: string };
  readonly dashboardUrl: string | null;
  readonly applied: AppliedState | null;
  readonly inFlight: { readonly operation: string; readonly call: string; readonly since: number } | null;
  readonly desired: AppliedState | null;
  readonly queue: readonly QueuedIntent[];
  readonly failures: readonly FailedIntent[];
  readonly lastDelete: RefusedDelete | null;
  readonly lock: InstanceLock | null;
  readonly policy: InstancePolicy;
  readonly bindings: readonly BindingView[];
  readonly revision: number;
}

export interface QueuedIntent {
  readonly operation: string;
  readonly op: IntentName;
  readonly summary: string;
  readonly author: string;
  readonly acceptedAt: number;
  readonly ageMs: number;
  readonly position: number;
  readonly state: "running" | "waiting" | "queued" | "held" | "paused" | "cancelling";
  readonly description: string | null;
  readonly heldFor: string | null;
  /** What kinds of reasons those are. What only a delete holds goes on, or ends, by itself. */
  readonly heldBy: readonly HoldReason["kind"][];
  readonly difference: readonly PathChange[];
  readonly overrides: readonly string[];
}

/** What became of one wanted change, or what is known of it while it is open. */
export type OperationView =
  | { readonly operation: string; readonly state: "open"; readonly intent: QueuedIntent }
  | {
      readonly operation: string;
      readonly state: "succeeded" | "failed" | "cancelled";
      /** Why it failed, or was cancelled. */
      readonly message: string | null;
    };

/** Without its credentials, which have a read of their own. */
export interface BindingView {
  readonly id: string;
  readonly name: string;
  readonly osbId: string;
  readonly phase: BindingPhase;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly appGuid: string | null;
  readonly expiresAt: string | null;
  readonly renewBefore: string | null;
  readonly predecessor: string | null;
  /** Its `id`: the name may be another's by now. */
  readonly predecessorId?: string;
  readonly successor: string | null;
  readonly message: string | null;
}

/** One line of an instance's journal. */
export interface JournalLine {
  readonly seq: number;
  readonly at: number;
  readonly family: "intent" | "control" | "decision" | "attempt" | "outcome" | "orphan" | "observation";
  readonly kind: string;
  readonly operation: string | null;
  readonly by: string;
  readonly cause: number | string | null;
  readonly requestId: string | null;
  /** One sentence. */
  readonly summary: string;
  readonly payload: unknown;
}

export interface Instances {
  create(ref: InstanceRef, wanted: CreateInstance, asking: Asking): Promise<Admitted>;
  update(ref: InstanceRef, wanted: UpdateInstance, asking: Asking): Promise<Admitted>;
  delete(ref: InstanceRef, wanted: DeleteInstance, asking: Asking): Promise<Admitted>;
  /** Sends the text of the last update again. */
  refresh(ref: InstanceRef, asking: Asking): Promise<Admitted>;
  /** To the maintenance version that the catalog has now, or the one given. */
  upgrade(ref: InstanceRef, version: string | undefined, asking: Asking): Promise<Admitted>;
  adopt(ref: InstanceRef, wanted: CreateInstance & { readonly osbId: string }, asking: Asking): Promise<Admitted>;
  bind(ref: InstanceRef, wanted: CreateBinding, asking: Asking): Promise<Admitted>;
  unbind(ref: InstanceRef, binding: string, asking: Asking): Promise<Admitted>;
  rotate(ref: InstanceRef, binding: string, successor: string | undefined, asking: Asking): Promise<Admitted>;
  /** JSON text of what the broker answered to the bind. */
  credentials(ref: InstanceRef, binding: string): Promise<string>;

  cancel(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView>;
  retry(ref: InstanceRef, operation: string, asking: Asking): Promise<Admitted>;
  hold(ref: InstanceRef, operation: string, reason: string, asking: Asking): Promise<InstanceView>;
  release(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView>;
  lock(
    ref: InstanceRef,
    lock: Pick<InstanceLock, "reason"> & Partial<InstanceLock>,
    asking: Asking,
  ): Promise<InstanceView>;
  unlock(ref: InstanceRef, asking: Asking): Promise<InstanceView>;
  /** Undoes a delete that has not been sent, or was refused. */
  restore(ref: InstanceRef, asking: Asking): Promise<InstanceView>;
  setPolicy(ref: InstanceRef, policy: Partial<InstancePolicy>, asking: Asking): Promise<InstanceView>;

  read(ref: InstanceRef): Promise<InstanceView | undefined>;
  /** What became of one operation, also of an instance that is gone. `undefined`: there was none, or nobody remembers it. */
  operation(ref: InstanceRef, operation: string): Promise<OperationView | undefined>;
  /** What it will be after one operation of the queue. */
  after(ref: InstanceRef, operation: string): Promise<AppliedState | null>;
  list(query: InstanceQuery): Promise<Page<InstanceSummary>>;
  journal(
    ref: InstanceRef,
    page?: { readonly after?: number; readonly before?: number; readonly limit?: number },
  ): Promise<readonly JournalLine[]>;
  /** Lines after a number as they come, until the signal. */
  follow(ref: InstanceRef, after: number, signal: AbortSignal): AsyncIterable<JournalLine>;
}

export interface InstanceQuery {
  readonly space?: string;
  readonly broker?: string;
  readonly phase?: Phase;
  readonly after?: string;
  readonly limit?: number;
}

export type InstanceSummary = Pick<
  InstanceView,
  "id" | "space" | "name" | "broker" | "offering" | "phase" | "usable" | "applied" | "revision"
> & { readonly open: number; readonly bindings: number };

export interface RegisterBroker {
  readonly url: string;
  readonly authentication: BrokerAuthentication;
  readonly ca?: string;
  readonly clientCertificate?: { readonly certificate: string; readonly key: string };
  readonly limits?: Partial<BrokerLimits>;
  readonly quirks?: { readonly notFoundMeansGone?: boolean };
  readonly relistMs?: number;
}

/** A broker as it is told: never with its secrets. */
export interface BrokerView {
  readonly name: string;
  readonly url: string;
  readonly authentication: BrokerAuthentication["kind"];
  readonly limits: BrokerLimits;
  readonly relistMs: number;
  readonly registeredBy: string;
  readonly registeredAt: number;
  readonly health: BrokerHealth;
  readonly catalog: {
    readonly revision: number;
    readonly readAt: number | null;
    readonly fault: string | null;
    readonly offerings: number;
  };
  readonly waiting: boolean;
}

/** What a broker offers, for a marketplace. */
export interface OfferedService {
  readonly broker: string;
  readonly offering: ServiceOffering;
  readonly leftAt: number | null;
  readonly plansLeft: readonly string[];
}

/** Offerings behind a place: in the order of brokers, names and ids. */
export interface OfferingQuery {
  readonly broker?: string;
  readonly name?: string;
  readonly after?: { readonly broker: string; readonly name: string; readonly id: string };
}

export interface Brokers {
  /** Resolves when the catalog was read once, or could not be. */
  register(name: string, wanted: RegisterBroker, asking: Asking): Promise<BrokerView>;
  /** New address, credentials, limits: what is not said stays. Operations under way go on with them. */
  change(name: string, wanted: Partial<RegisterBroker>, asking: Asking): Promise<BrokerView>;
  /** Refused while it has instances, or the ledger says that something may be left there, unless forced: then they stay as unmanaged, and in the ledger. */
  remove(name: string, options: { readonly force?: boolean }, asking: Asking): Promise<void>;
  relist(name: string, asking: Asking): Promise<BrokerView>;
  read(name: string): Promise<BrokerView | undefined>;
  list(): Promise<readonly BrokerView[]>;
  offerings(broker?: string): readonly OfferedService[];
  /** Those that a user may mean by an id or a name: found by it, however many there are. */
  offeringsCalled(idOrName: string, broker?: string): readonly OfferedService[];
  /** In order, as they are asked for: whoever takes a page looks at no more than that. */
  offeringsBehind(query: OfferingQuery): Iterable<OfferedService>;
}

export interface Orphans {
  list(query: {
    readonly broker?: string;
    readonly space?: string;
    readonly state?: OrphanData["state"];
    readonly after?: string;
    readonly limit?: number;
  }): Promise<Page<OrphanView>>;
  /** A held one is mitigated now; an open one hurries. */
  mitigate(key: string, asking: Asking): Promise<OrphanView>;
  dismiss(key: string, reason: string, asking: Asking): Promise<OrphanView>;
}

export type OrphanView = OrphanData & { readonly key: string };

/** Changes of many instances at once that are held back: for an incident, a move, a night of the year. */
export interface Freezes {
  list(): readonly Freeze[];
  freeze(wanted: WantedFreeze, asking: Asking): Promise<Freeze>;
  thaw(id: string, asking: Asking): Promise<void>;
}

export type WantedFreeze = Pick<Freeze, "reason"> & Partial<Omit<Freeze, "id" | "by" | "at">>;

/** How many instances and bindings spaces may have. What is there stays when a quota is lowered (E10-50). */
export interface Quotas {
  list(): readonly Quota[];
  /** A new one, or in place of the one that has the name. */
  set(name: string, wanted: WantedQuota, asking: Asking): Promise<Quota>;
  remove(name: string, asking: Asking): Promise<void>;
  /** Those that hold in a space, with how many instances or bindings count for each now. */
  usage(space: string): Promise<readonly QuotaUsage[]>;
}

export type WantedQuota = Pick<Quota, "limit"> &
  Partial<Pick<Quota, "counts" | "space" | "broker" | "offering" | "plan">>;

export type QuotaUsage = Quota & { readonly used: number };

/** Offerings and plans that are offered in some spaces only. Instances that are there already stay and can be changed. */
export interface Visibilities {
  list(): readonly Visibility[];
  /** A new one, or in place of the one that has the name. */
  set(name: string, wanted: WantedVisibility, asking: Asking): Promise<Visibility>;
  remove(name: string, asking: Asking): Promise<void>;
}

export type WantedVisibility = Pick<Visibility, "broker" | "offering" | "spaces"> & Partial<Pick<Visibility, "plan">>;

/** Bindings that expire, or are to be renewed: each is replaced on time, and the old one kept for a while. */
export interface Rotations {
  /** What comes next, soonest first. */
  due(query: {
    readonly space?: string;
    readonly after?: string;
    readonly limit?: number;
  }): Promise<Page<RotationView>>;
}

export type RotationView = RotationData;

/** The upgrade of many instances to the maintenance version that the catalog has now (E10-53). */
export interface Campaigns {
  start(wanted: StartCampaign, asking: Asking): Promise<CampaignView>;
  read(id: string): Promise<CampaignView | undefined>;
  list(page?: { readonly after?: string; readonly limit?: number }): Promise<Page<CampaignView>>;
  /** What became of its instances, or will; those in one state, in the order of their names. */
  targets(
    id: string,
    query: { readonly state: TargetState; readonly after?: string; readonly limit?: number },
  ): Promise<Page<CampaignTarget>>;
  /** What has not begun never does. */
  cancel(id: string, asking: Asking): Promise<CampaignView>;
  /** Those that failed once more. It also goes on with one that stopped. */
  retry(id: string, asking: Asking): Promise<CampaignView>;
}

export type CampaignView = Omit<CampaignData, "identity" | "cursor">;

export type CampaignTarget = TargetRecord & { readonly space: string; readonly instance: string };

/** The platform without HTTP: everything that the API can do. */
export interface Platform {
  readonly brokers: Brokers;
  readonly instances: Instances;
  readonly orphans: Orphans;
  readonly freezes: Freezes;
  readonly quotas: Quotas;
  readonly visibilities: Visibilities;
  readonly rotations: Rotations;
  readonly campaigns: Campaigns;
  /** Begins to play queues against brokers. */
  start(): Promise<void>;
  stop(): Promise<void>;
}
