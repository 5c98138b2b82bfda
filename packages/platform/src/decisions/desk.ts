import { PlatformError } from "../errors.js";
import { instanceLabels } from "../records/instance-labels.js";
import type {
  AppliedState,
  AskedBefore,
  HoldReason,
  InstanceData,
  IntentBrief,
  IntentInput,
  IntentName,
} from "../records/instance-record.js";
import { brokerLane } from "../records/keys.js";
import type { PreflightReport } from "../records/preflight-report.js";
import { intentBrief } from "./intent-brief.js";
import { broughtBy, lookAtRoom } from "./kept-parameters.js";
import type { PreflightIntent } from "./preflight.js";
import { project } from "./project.js";
import {
  type Holds,
  holdChange,
  holdsOf,
  type InstanceChange,
  type InstanceResource,
  phaseOf,
  type QueuedOperation,
  queueOf,
} from "./queue-state.js";
import { nextRevision } from "./revision.js";

/** Who asks, and what is known besides the instance. Everything that is chance, time or another's copy comes in here. */
export interface Request {
  readonly by: string;
  /** A hash of what is asked for. */
  readonly asked: string;
  readonly ifMatch: number | null;
  /** Where the request is remembered, if it has an idempotency key: by the hash of that and of who asks. */
  readonly keyPart: `asked/${string}` | null;
  readonly dryRun: boolean;
  readonly intent: Omit<IntentInput, "op" | "catalog">;
  /** The number of the catalog that is looked at. */
  catalogOf(broker: string): number;
  /** What operations of the instance were given, as far as it was read. By operation. `null`: it does not matter here. */
  readonly inputs: Inputs | null;
  /** A new id, which nothing has had before. */
  readonly newId: string;
  /** Looks ahead, at the instance as it will be. */
  preflight(intent: PreflightIntent, desk: Desk, offered: Offered): PreflightReport;
}

/** Which offering of which broker. */
export type Offered = Pick<InstanceData, "broker" | "offering">;

export type Inputs = ReadonlyMap<string, { readonly by: string; readonly input: unknown }>;

/** Everything that one request about one instance is decided from. */
export interface Desk {
  readonly request: Request;
  readonly resource: InstanceResource | undefined;
  /** `undefined`: there is none, or it is gone. */
  readonly data: InstanceData | undefined;
  readonly queue: readonly QueuedOperation[];
  readonly holds: Holds;
  /** What the instance will be when all that is open has succeeded. */
  readonly desired: AppliedState | null;
  readonly now: number;
}

/** What becomes of a request. What is refused is thrown, as a `PlatformError`. */
export type Admission =
  | { readonly kind: "accepted" }
  | { readonly kind: "done" }
  | { readonly kind: "repeated"; readonly operation: string }
  /** The request came before, with the same key: its operation is found by the entries. */
  | { readonly kind: "asked before"; readonly asked: AskedBefore }
  | { readonly kind: "unchanged" }
  | { readonly kind: "dry run"; readonly report: PreflightReport; readonly desired: AppliedState | null }
  /** Inputs of open operations are missing. */
  | { readonly kind: "read more" };

export interface Admitting {
  readonly result: Admission;
  readonly change?: InstanceChange;
}

/** Everything on one desk; `undefined` if inputs must be read first. */
export function deskOf(resource: InstanceResource | undefined, now: number, request: Request): Desk | undefined {
  const data = resource?.data;
  const isThere = data != null && data.phase !== "gone" && data.phase !== "abandoned";
  if (resource === undefined || !isThere)
    return { request, resource, data: undefined, queue: [], holds: {}, desired: null, now };
  const queue = queueOf(resource);
  const { inputs } = request;
  if (inputs !== null && queue.some(({ id }) => !inputs.has(id))) return undefined;
  const desired = inputs === null ? data.applied : desiredOf(data.applied, queue, inputs);
  return { request, resource, data, queue, holds: holdsOf(data, queue), desired, now };
}

/** What the instance will be when the open operations have succeeded; of those alone whose inputs are given. */
export function desiredOf(
  applied: AppliedState | null,
  queue: readonly Pick<QueuedOperation, "id" | "kind" | "cancelled">[],
  inputs: Inputs,
): AppliedState | null {
  const intents = queue.flatMap(({ id, kind, cancelled }) => {
    const found = inputs.get(id);
    return cancelled || found === undefined ? [] : [{ id, kind, input: found.input }];
  });
  return project(applied, intents);
}

/** Who asked for an open operation. */
export function authorOf({ request }: Pick<Desk, "request">, operation: string): string | undefined {
  return request.inputs?.get(operation)?.by;
}

export function mustExist({ data }: Desk): InstanceData {
  if (data === undefined) throw new PlatformError("not-found", "there is no such instance");
  return data;
}

/**
 * The same request, told by its key (E2) or by how soon it came after itself (E10-34: a double click). Looked at before anything else, so that a request whose answer
 * was lost is answered alike, also when the instance is gone since.
 */
export function askedBefore(desk: Desk): Admission | undefined {
  const { request, resource, queue, now } = desk;
  const noted = request.keyPart === null ? undefined : resource?.parts.get(request.keyPart);
  if (noted !== undefined) {
    if (noted.body !== request.asked)
      throw new PlatformError("idempotency-conflict", "the idempotency key was used for another request");
    return noted.done === true ? { kind: "done" } : { kind: "asked before", asked: noted };
  }
  // What is being called off is not meant: who asks again after that means it.
  const last = queue
    .filter(({ cancelled }) => !cancelled)
    .reduce<QueuedOperation | undefined>(
      (newest, one) => (newest === undefined || one.acceptedAt >= newest.acceptedAt ? one : newest),
      undefined,
    );
  const isDouble =
    request.keyPart === null &&
    last?.brief.asked === request.asked &&
    authorOf(desk, last.id) === request.by &&
    now - last.acceptedAt <= doubleClickMs;
  return isDouble ? { kind: "repeated", operation: last.id } : undefined;
}

const doubleClickMs = 5_000;

/** For a request that cannot be taken any more: it is refused, unless it was taken before. */
export function repeatedOr(refusal: PlatformError): (desk: Desk) => Admitting {
  return (desk) => {
    const known = askedBefore(desk);
    if (known === undefined) throw refusal;
    return { result: known };
  };
}

/** The caller has seen the instance as it is, or is told what happened since. */
export function checkMatch({ request: { ifMatch }, data }: Desk): void {
  if (ifMatch === null || data?.revision === ifMatch) return;
  const changes = data?.changes.filter(({ revision }) => revision > ifMatch) ?? [];
  throw new PlatformError("stale", "the instance was changed meanwhile", {
    details: { revision: data?.revision ?? null, changes },
  });
}

/** Open intents of one instance: so many that a person still sees what they lead to. */
export const mostOpen = 50;

export function checkRoom({ queue }: Desk, more = 1): void {
  if (queue.length + more <= mostOpen) return;
  throw new PlatformError("too-many", `the instance has ${queue.length} open changes; ${mostOpen} are allowed`, {
    details: { open: queue.map(({ id, brief }) => ({ operation: id, op: brief.op, by: brief.by })) },
  });
}

/** `reject` is the way of Cloud Foundry: nothing waits. */
export function checkConcurrency({ data, queue }: Desk): void {
  if (data?.policy.concurrency !== "reject" || queue.length === 0) return;
  throw new PlatformError("busy", "another change is open, and changes are not queued here", {
    details: { open: queue.map(({ id, brief }) => ({ operation: id, op: brief.op, by: brief.by })) },
  });
}

export function checkNotDeleting({ queue }: Desk): void {
  const open = queue.find(({ kind, cancelled }) => kind === "delete" && !cancelled);
  if (open === undefined) return;
  throw new PlatformError("deleting", `the instance is being deleted by ${open.brief.by}`, {
    details: { operation: open.id },
  });
}

/** Why a new intent waits from the beginning. One that is not to wait is refused. */
export function lockOn({ data, now }: Desk, isDelete: boolean): HoldReason | undefined {
  const lock = data?.lock;
  if (lock == null || (lock.until !== null && lock.until <= now) || (isDelete && lock.deletesExempt)) return undefined;
  const message = `it is locked by ${lock.by}: ${lock.reason}`;
  if (lock.effect === "queue") return { kind: "lock", message };
  throw new PlatformError("locked", message, { details: { by: lock.by, until: lock.until } });
}

/** E6: what is found stands in the way, or is the answer where only that was asked for. */
export function lookAhead(
  desk: Desk,
  intent: PreflightIntent,
  desired: AppliedState | null,
  offered: Offered,
): Admission | undefined {
  const report = withRoom(desk, intent, desk.request.preflight(intent, desk, offered));
  if (desk.request.dryRun) return { kind: "dry run", report, desired };
  if (report.ok) return undefined;
  const faults = report.findings.filter(({ severity }) => severity === "error").map(({ message }) => message);
  throw new PlatformError("preflight-failed", faults.join("; "), { details: { report } });
}

/** Whether there is room for what is said is told by all that was said before, which is on the desk alone. */
function withRoom({ data, queue, request }: Desk, intent: PreflightIntent, report: PreflightReport): PreflightReport {
  if (intent.op !== "create" && intent.op !== "update") return report;
  const open = queue.map(({ id, kind }) => broughtBy(kind, request.inputs?.get(id)?.input));
  const found = lookAtRoom({ applied: data?.applied?.parameters ?? null, open }, intent.parameters);
  return found.length === 0 ? report : { ok: false, findings: [...report.findings, ...found] };
}

type Accepted = NonNullable<InstanceChange["accept"]>[number];

/** What every operation of an instance has in common. */
export function intentOf<Kind extends Accepted["kind"]>(
  { request, data }: Pick<Desk, "request" | "data">,
  kind: Kind,
  brief: Omit<IntentBrief, "by" | "asked"> & Partial<Pick<IntentBrief, "asked">>,
  heldFor: HoldReason | undefined,
): {
  readonly kind: Kind;
  readonly brief: IntentBrief;
  readonly lane: string;
  readonly held?: boolean;
} {
  const { by, asked } = request;
  const whole = intentBrief({ by, asked, ...brief, ...(heldFor !== undefined && { heldFor }) });
  const lane = brokerLane(data?.broker ?? "");
  return heldFor === undefined ? { kind, brief: whole, lane } : { kind, brief: whole, lane, held: true };
}

/** What every intent carries. */
export function carried({ request, data }: Pick<Desk, "request" | "data">, op: IntentName): IntentInput {
  const { identity, context } = request.intent;
  return { op, identity, context, catalog: request.catalogOf(data?.broker ?? "") };
}

export interface Deciding {
  readonly data: InstanceData;
  readonly holds: Holds;
  readonly summary: string;
  /** Operations that end with this commit. */
  readonly ending?: ReadonlySet<string>;
}

/**
 * The commit of a request: the revision goes up, the phase is that of the queue as it is now, holds are what their reasons say, and the key of
 * the request is remembered with it.
 */
export function decided(
  { request, resource, queue, now }: Desk,
  { data, holds, summary, ending = nothingEnds }: Deciding,
  change: Omit<InstanceChange, "data" | "hold" | "release"> = {},
): Admitting & { readonly change: InstanceChange } {
  const left = ending.size === 0 ? queue : queue.filter(({ id }) => !ending.has(id));
  const { revision, changes } = nextRevision(data, now, request.by, summary);
  const expected = [...left, ...expectedOf(change)];
  const isDone = (change.accept?.length ?? 0) === 0;
  const asked: AskedBefore = { body: request.asked, after: resource?.seq ?? 0, at: now, ...(isDone && { done: true }) };
  const parts =
    request.keyPart === null
      ? change.parts
      : { ...change.parts, [request.keyPart]: asked, ...forgotten(resource, now) };
  const moved = holdChange(left, holds);
  const after = { ...data, revision, changes, held: holds, phase: phaseOf(data, expected, holds) };
  return {
    result: { kind: "accepted" },
    change: {
      data: moved.release === undefined ? after : { ...after, waitsSince: now },
      ...missingLabels(resource, data),
      ...change,
      ...moved,
      ...(parts !== change.parts && { parts }),
    },
  };
}

const nothingEnds: ReadonlySet<string> = new Set();

/** One whose broker was removed before unmanaged instances were labelled is found by its broker from its next change on. */
function missingLabels(resource: InstanceResource | undefined, data: InstanceData): Pick<InstanceChange, "labels"> {
  if (data.phase !== "unmanaged" || resource === undefined) return {};
  // One that is being adopted has its broker's label.
  const { broker, unmanaged } = resource.labels;
  return broker === undefined && unmanaged === undefined ? { labels: instanceLabels(data) } : {};
}

/** Operations that are accepted with a change count for the phase, unless they are held. */
export function expectedOf({ accept = [] }: Omit<InstanceChange, "data">): readonly QueuedOperation[] {
  return accept
    .filter(({ held }) => held !== true)
    .map(({ kind, part, brief }) => ({
      id: "",
      kind,
      part: part ?? null,
      acceptedAt: 0,
      brief,
      held: false,
      started: false,
      isFixed: false,
      sent: false,
      cancelled: false,
    }));
}

const keysKeptMs = 24 * 60 * 60 * 1_000;
const keysKept = 200;

/** Idempotency keys that are too old to be asked with again. */
function forgotten(resource: InstanceResource | undefined, now: number): { readonly [id: `asked/${string}`]: null } {
  const noted = [...(resource?.parts ?? [])].filter(([id]) => id.startsWith("asked/")) as [
    `asked/${string}`,
    AskedBefore,
  ][];
  const byAge = noted.sort(([, one], [, other]) => other.at - one.at);
  const old = byAge.filter(([, { at }], index) => index >= keysKept || now - at > keysKeptMs);
  return Object.fromEntries(old.map(([id]) => [id, null]));
}
