import { defineResource } from "@osbert/journal";

/**
 * An instance with its bindings is one resource of the journal. What is wanted of it are the open operations of that resource, in their
 * order; what it is are its data and parts. Texts of JSON that users or brokers wrote (parameters, credentials) are kept as they were
 * written: a number beyond 2^53 must not change on its way through.
 */
export type InstanceShape = {
  data: InstanceData;
  parts: {
    readonly [id: `binding/${string}`]: BindingRecord;
    /** Written ahead of every call of an operation; goes with its end. */
    readonly [id: `call/${string}`]: CallMark;
    /** By the hash of an idempotency key. */
    readonly [id: `asked/${string}`]: AskedBefore;
    /** What a delete has stopped. */
    readonly interrupted: InterruptedIntent;
  };
  operations: {
    create: { input: CreateInput; result: CreateResult };
    update: { input: UpdateInput; result: UpdateResult };
    delete: { input: DeleteInput; result: DeleteResult };
    bind: { input: BindInput; result: BindResult };
    unbind: { input: UnbindInput; result: DeleteResult };
    adopt: { input: AdoptInput; result: CreateResult };
  };
  brief: IntentBrief;
};

export const instances = defineResource<InstanceShape>();

export const phases = [
  "pending",
  "creating",
  "ready",
  "updating",
  "deleting",
  "delete-rejected",
  "halted",
  "failed",
  "unmanaged",
  "gone",
  "abandoned",
] as const;
export type Phase = (typeof phases)[number];

export interface PlanRef {
  readonly id: string;
  readonly name: string;
}

/** What an instance is, as far as its broker has confirmed it. */
export interface AppliedState {
  readonly plan: PlanRef;
  /** JSON text of all parameters that were applied, later ones over earlier ones, key by key. */
  readonly parameters: string | null;
  /** Of maintenance_info. */
  readonly maintenance: string | null;
}

export interface InstanceData {
  /** Stable over attempts to create it; shown to users. */
  readonly id: string;
  readonly broker: string;
  readonly offering: PlanRef;
  /** Who wanted it. */
  readonly createdBy: string;
  readonly createdAt: number;
  readonly phase: Phase;
  /** The id at the broker. Each attempt to create it anew after an orphan has a new one. `null`: nothing was sent yet. */
  readonly osbId: string | null;
  /** Ids that it had before at the broker: never used again. The last 20. */
  readonly formerOsbIds: readonly string[];
  readonly applied: AppliedState | null;
  /** The plan that the last create named at the broker: a delete before its answer is known must name it, too. */
  readonly askedPlan?: PlanRef;
  /** The id that is being adopted: a claim, so that nobody else adopts it meanwhile, and the ledger does not delete it. */
  readonly adoptingId?: string | null;
  /** The id under which it was adopted: what the ledger has of it from before is over. */
  readonly adoptedId?: string;
  /** An id to which the broker answered 409: while it is the instance's, nothing is deleted under it, because it may be another's (E10-63). */
  readonly conflictId?: string;
  /** Of one that is unmanaged: the URL of its broker, which was removed. What it has there is its own, by whatever name that is registered (E10-62). */
  readonly leftAtUrl?: string;
  /** Of which create nobody heard the answer, and when: although it was found out that the instance exists, it may be made once more (E8). */
  readonly lostCreate?: { readonly osbId: string; readonly at: number };
  readonly dashboardUrl: string | null;
  /** What the active call asks for, for whoever looks: which operation, since when. */
  readonly attempt: { readonly operation: string; readonly call: string; readonly since: number } | null;
  /** "certain", or the operation of which nobody knows what it did. */
  readonly uncertainSince: { readonly operation: string; readonly at: number } | null;
  /** The broker's last word on it. */
  readonly usable: boolean;
  /** What failed and has not been corrected: its paths hold back what depends on them. */
  readonly failures: readonly FailedIntent[];
  readonly lastDelete: RefusedDelete | null;
  readonly policy: InstancePolicy;
  readonly lock: InstanceLock | null;
  /** Raised with each intent, control and outcome: the entity tag. */
  readonly revision: number;
  /** The last 20 of those, for whoever acted on an older one. */
  readonly changes: readonly RevisionChange[];
  /** Bindings that exist at the broker, or may. */
  readonly bindings: number;
  /**
   * Since when what is queued waits for nothing but its broker: something else was let go then, or has ended, or a freeze was over. Deadlines count
   * from there. Of an instance that was kept before there was this, they count from when something was accepted.
   */
  readonly waitsSince?: number;
  /** Why operations of the queue are held: one is, as long as it has a reason here. By operation. */
  readonly held: { readonly [operation: string]: readonly HoldReason[] };
  /** What people held and a delete has let go before itself: held again if the delete comes to nothing. By operation. */
  readonly waivedHolds?: InstanceData["held"];
}

/** Why an operation of the queue stands aside. Each reason goes by itself; the operation goes on when none is left. */
export type HoldReason =
  /** It depends on what failed, or on what depends on that. */
  | { readonly kind: "failure"; readonly operation: string; readonly message: string }
  /** A delete goes before it, and ends it if the broker agrees. */
  | { readonly kind: "delete" }
  | { readonly kind: "lock"; readonly message: string }
  | { readonly kind: "user"; readonly by: string; readonly message: string };

export interface FailedIntent {
  readonly operation: string;
  readonly op: IntentName;
  readonly paths: readonly string[];
  readonly class: string;
  readonly message: string;
  readonly at: number;
  readonly repeatable: boolean;
}

export interface RefusedDelete {
  readonly operation: string;
  readonly by: string;
  readonly at: number;
  readonly message: string;
  /** `rejected`: the broker would not begin. `failed`: it began, and nobody knows what is left. `blocked`: a binding could not be unbound. */
  readonly how: "rejected" | "failed" | "blocked";
}

export interface RevisionChange {
  readonly revision: number;
  readonly at: number;
  readonly by: string;
  readonly summary: string;
}

export interface InstancePolicy {
  readonly onFailure: "auto" | "halt" | "continue";
  readonly concurrency: "queue" | "reject" | "replace";
  readonly orphans: "mitigate" | "confirm" | "hold";
}

export interface InstanceLock {
  readonly by: string;
  readonly at: number;
  readonly reason: string;
  /** `queue`: intents are accepted and wait; `reject`: they are refused. */
  readonly effect: "queue" | "reject";
  readonly deletesExempt: boolean;
  readonly until: number | null;
}

export type IntentName =
  | "create"
  | "update"
  | "delete"
  | "bind"
  | "unbind"
  | "rotate"
  | "refresh"
  | "upgrade"
  | "adopt";

/** One touched path with what was there before, as an RFC 6901 pointer below `/plan`, `/parameters` or `/maintenance`. */
export interface PathChange {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  /** JSON texts. */
  readonly old?: string;
  readonly value?: string;
}

/** What every intent carries. */
export interface IntentInput {
  readonly op: IntentName;
  /** The originating identity of its author, as it was when it was admitted: on each call for it, polls included (P-ID-04). */
  readonly identity: { readonly platform: string; readonly value: { readonly [name: string]: unknown } } | null;
  /** The catalog that was looked at. */
  readonly catalog: number;
  /** Sent as `context`. */
  readonly context: { readonly [name: string]: unknown };
}

export interface CreateInput extends IntentInput {
  readonly osbId: string;
  readonly plan: PlanRef;
  readonly parameters: string | null;
  readonly maintenance: string | null;
  /** It was sent with that id before, by one that a delete has stopped: what became of it is found out first. */
  readonly resumed?: boolean;
}

export interface UpdateInput extends IntentInput {
  /** Exactly what the user said: this is sent, and nothing else (P-UPD-03). A refresh says nothing, and sends the parameters that are applied by then. */
  readonly text: {
    readonly plan: PlanRef | null;
    readonly parameters: string | null;
    readonly maintenance: string | null;
  };
  readonly difference: readonly PathChange[];
  /** Of an upgrade: the version is that of the catalog as it was, and the one of now does as well (E10-52). */
  readonly latest?: boolean;
}

export const deleteModes = ["drain", "after", "preempt", "abandon"] as const;
export type DeleteMode = (typeof deleteModes)[number];

export interface DeleteInput extends IntentInput {
  readonly mode: DeleteMode;
  readonly reason: string | null;
}

export interface BindInput extends IntentInput {
  /** The binding's name, which is unique in its instance. */
  readonly binding: string;
  readonly osbId: string;
  readonly parameters: string | null;
  readonly appGuid: string | null;
  /** OSB id of the binding that this one replaces (P-ROT-02). */
  readonly predecessor: string | null;
}

export interface UnbindInput extends IntentInput {
  readonly binding: string;
}

export interface AdoptInput extends IntentInput {
  readonly osbId: string;
  readonly plan: PlanRef;
}

/** Of a create or an adoption: what the broker has confirmed, so that whoever settles it needs nothing else. */
export interface CreateResult {
  readonly osbId: string;
  readonly applied: AppliedState;
  readonly dashboardUrl: string | null;
}

export interface UpdateResult {
  /** What is applied now that was not before. */
  readonly text: UpdateInput["text"];
  /** `null`: the broker says nothing of it, so that it stays as it was (P-UPD-10). */
  readonly dashboardUrl: string | null;
}

export interface DeleteResult {
  /** `false`: there was nothing at the broker to delete. */
  readonly asked: boolean;
}

/** Credentials are in the binding's part, never in an entry. */
export interface BindResult {
  readonly expiresAt: string | null;
  readonly renewBefore: string | null;
}

export const bindingPhases = ["binding", "bound", "failed", "unbinding", "unbind-rejected"] as const;
export type BindingPhase = (typeof bindingPhases)[number];

export interface BindingRecord {
  readonly id: string;
  readonly osbId: string;
  readonly phase: BindingPhase;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly parameters: string | null;
  readonly appGuid: string | null;
  /** JSON text of everything that the broker answered to the bind: credentials, drains, mounts, endpoints. A secret. */
  readonly answer: string | null;
  readonly expiresAt: string | null;
  readonly renewBefore: string | null;
  /** Names of the binding that this one replaces, and of the one that replaces it. */
  readonly predecessor: string | null;
  readonly successor: string | null;
  /** The `id` of the one that this one replaces: its name may be another's by now. */
  readonly predecessorId?: string;
  readonly message: string | null;
  /** As `conflictId` of an instance. */
  readonly conflictId?: string;
  /** As `lostCreate` of an instance. */
  readonly lostBind?: { readonly osbId: string; readonly at: number };
}

/**
 * Written before each call that changes something at a broker. `look` is the number of the look of the poll that makes the call: whoever finds a
 * mark with the number of the look that it begins knows that an earlier process may have sent it and never heard the answer.
 */
export interface CallMark {
  readonly call: string;
  readonly look: number;
  readonly at: number;
  /** Attempts at this call of which nobody knows what they did, and when the first of them was made. */
  readonly lost: number;
  readonly firstAt: number;
  /** The same answer to poll after poll, where it is none that ends them. */
  readonly repeated?: {
    readonly status: number;
    readonly error?: string;
    readonly times: number;
    readonly since: number;
  };
}

/** A request with an idempotency key. Its operation is the first one accepted after that entry for the same request: an id is not known before it is kept. */
export interface AskedBefore {
  /** A hash of what was asked for. */
  readonly body: string;
  readonly after: number;
  readonly at: number;
  /** It has no operation: it was done with the commit that remembers it. */
  readonly done?: true;
}

/**
 * What was under way when a delete went before it, with all that it was given. The delete is sent at once, so that it has to end here; if the
 * broker refuses the delete, or someone takes it back, it is gone on with. Goes with the instance.
 */
export interface InterruptedIntent {
  readonly intent:
    | { readonly kind: "create"; readonly input: CreateInput }
    | { readonly kind: "adopt"; readonly input: AdoptInput }
    | { readonly kind: "update"; readonly input: UpdateInput };
  readonly brief: IntentBrief;
  /** For a create of which nothing is at the broker any more: its own id is never used again. */
  readonly nextOsbId: string;
}

/** What an open operation tells of itself in a word (at most 1,024 bytes): all that is decided about a queue is decided from these. */
export type IntentBrief = {
  readonly op: IntentName;
  readonly summary: string;
  /** Paths that it writes; `*`: too many to name, so that it depends on every one. */
  readonly paths: readonly string[];
  /** Operations that must have succeeded before it. */
  readonly after?: readonly string[];
  /** The id of the plan for which it was made: of the instance as it was to be then. */
  readonly plan?: string;
  readonly binding?: string;
  /** Of a delete. */
  readonly mode?: DeleteMode;
  /** Of a delete and the unbinds that go with it: which cascade. One that takes the place of a weaker one goes on with its cascade. */
  readonly cascade?: string;
  /** Its author, shortened. */
  readonly by: string;
  /** A hash of what was asked for, to know the same request again. Empty: it goes with something that was. */
  readonly asked: string;
  /** Why it was held from the beginning. */
  readonly heldFor?: HoldReason;
  /** It goes on with what a delete had stopped: `by` is who asked for that. */
  readonly resumed?: boolean;
};
