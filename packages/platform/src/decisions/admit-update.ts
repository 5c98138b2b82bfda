import { PlatformError } from "../errors.js";
import type {
  AppliedState,
  CreateInput,
  InstanceData,
  IntentName,
  PathChange,
  UpdateInput,
} from "../records/instance-record.js";
import { cancelReasons } from "./cancel-reasons.js";
import { type Corrected, correctFailures } from "./correct-failures.js";
import { isRelated } from "./dependence.js";
import {
  type Admitting,
  askedBefore,
  authorOf,
  carried,
  checkConcurrency,
  checkMatch,
  checkNotDeleting,
  checkRoom,
  type Desk,
  decided,
  desiredOf,
  intentOf,
  lockOn,
  lookAhead,
  mustExist,
} from "./desk.js";
import { difference, touchedPaths } from "./difference.js";
import type { PreflightIntent } from "./preflight.js";
import { applyText, mergeParameters } from "./project.js";
import { overtakable, type QueuedOperation, withoutHold } from "./queue-state.js";

export interface WantedUpdate {
  readonly op: Extract<IntentName, "update" | "refresh" | "upgrade">;
  /** Of an upgrade without a maintenance version: the plan has none. */
  readonly text: UpdateInput["text"];
  /** Operations that must have succeeded before it. */
  readonly after: readonly string[];
  /** Of an upgrade: no version was named. */
  readonly latest?: boolean;
  /** Of the create that failed, if one did: what is corrected. */
  readonly failedCreate: CreateInput | null;
}

/** Named in `after`. */
const mostAfter = 5;

/** A change of plan, parameters or maintenance version: taken as the difference to what the instance will be, sent as it was said. */
export function admitUpdate(desk: Desk, wanted: WantedUpdate): Admitting {
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  const data = mustExist(desk);
  checkMatch(desk);
  checkNotDeleting(desk);
  if (wanted.op === "upgrade" && wanted.text.maintenance === null)
    throw new PlatformError("invalid", "the plan has no maintenance version");
  const folded = foldable(desk, wanted);
  if (folded !== undefined) return foldIntoCreate(desk, data, wanted, folded);
  if (data.applied === null && !hasCreate(desk)) return correctCreate(desk, data, wanted);
  checkConcurrency(desk);
  const swallowed = coalescable(desk, wanted);
  return swallowed === undefined
    ? queueUpdate(desk, data, wanted, desk.desired, undefined)
    : coalesce(desk, data, wanted, swallowed);
}

function queueUpdate(
  desk: Desk,
  data: InstanceData,
  wanted: WantedUpdate,
  before: AppliedState | null,
  swallowed: QueuedOperation | undefined,
): Admitting {
  const { op, text, after } = wanted;
  const { queue } = desk;
  if (before === null) throw new PlatformError("invalid", "there is nothing to update");
  const desired = applyText(before, text);
  const ahead = lookAhead(desk, toLookAt(wanted, desired), desired, data);
  if (ahead !== undefined) return { result: ahead };
  const changed = difference(before, desired);
  const cancelSwallowed = swallowed === undefined ? [] : [{ operation: swallowed.id, reason: cancelReasons.coalesced }];
  if (changed.length === 0 && op !== "refresh") return unchanged(desk, data, wanted, swallowed);
  checkRoom(desk, swallowed === undefined ? 1 : 0);
  checkAfter(desk, after);
  const paths = changed.map(({ path }) => path);
  // What it says is so already is corrected, too.
  const said = op === "refresh" ? [] : touchedPaths(text);
  const correction = correctFailures(data, [...new Set([...paths, ...said])], desk);
  const dropped = supersededBy(desk, correction, paths);
  const ending = new Set([...dropped.map(({ id }) => id), ...(swallowed === undefined ? [] : [swallowed.id])]);
  const freed = withoutHold(correction.holds, (_reason, id) => ending.has(id));
  const heldFor = lockOn(desk, false) ?? heldBehind(desk, after);
  const brief = {
    op,
    summary: summaryOf(op, changed),
    paths,
    plan: desired.plan.id,
    ...(after.length > 0 && { after }),
  };
  const latest = wanted.latest === true ? { latest: true } : {};
  const input: UpdateInput = { ...carried(desk, op), text, difference: changed, ...latest };
  // What a correction frees goes behind it, and it goes behind what waits for nothing (E5).
  const runnable = queue.filter(
    ({ id, held, started, cancelled }) => !held && !started && !cancelled && !ending.has(id),
  );
  const goesBefore = correction.touched.size > 0 && heldFor === undefined;
  const order = [...overtakable(queue).filter(({ id }) => !ending.has(id)), ...runnable].map(({ id }) => id);
  return decided(
    desk,
    {
      data: { ...data, failures: correction.failures },
      holds: freed,
      summary: brief.summary,
      ending,
    },
    {
      cancel: [...cancelSwallowed, ...dropped.map(({ id }) => ({ operation: id, reason: cancelReasons.superseded }))],
      accept: [{ ...intentOf(desk, "update", brief, heldFor), input, ...(goesBefore && { place: "front" as const }) }],
      ...(goesBefore && order.length > 0 && { order }),
    },
  );
}

/** It is so already. Whatever failed to make it otherwise is corrected by that, too. */
function unchanged(
  desk: Desk,
  data: InstanceData,
  { text }: WantedUpdate,
  swallowed: QueuedOperation | undefined,
): Admitting {
  const { touched, failures, ...correction } = correctFailures(data, touchedPaths(text), desk);
  if (touched.size === 0 && swallowed === undefined) return { result: { kind: "unchanged" } };
  const ending = new Set(swallowed === undefined ? [] : [swallowed.id]);
  const holds = withoutHold(correction.holds, (_reason, id) => ending.has(id));
  const { change } = decided(
    desk,
    { data: { ...data, failures }, holds, summary: "it stays as it is", ending },
    { cancel: [...ending].map((operation) => ({ operation, reason: cancelReasons.coalesced })) },
  );
  return { result: { kind: "unchanged" }, change };
}

/** In `replace`: an update that has not been sent is swallowed by the next one of the same author, and never by another's (E2, P-ID-05). */
function coalescable(desk: Desk, { op, text, after }: WantedUpdate): QueuedOperation | undefined {
  const { data, queue, request } = desk;
  if (data?.policy.concurrency !== "replace" || op !== "update" || text.plan !== null || after.length > 0)
    return undefined;
  const last = queue.at(-1);
  if (last === undefined || last.kind !== "update" || last.brief.op !== "update") return undefined;
  const isSameAuthor = authorOf(desk, last.id) === request.by;
  const isBare = !last.started && !last.held && !last.cancelled && !last.brief.paths.includes("/plan");
  return isSameAuthor && isBare && last.brief.after === undefined ? last : undefined;
}

function coalesce(desk: Desk, data: InstanceData, wanted: WantedUpdate, swallowed: QueuedOperation): Admitting {
  const { text } = inputOf<UpdateInput>(desk, swallowed);
  const others = desk.queue.filter(({ id }) => id !== swallowed.id);
  const before = desiredOf(data.applied, others, desk.request.inputs ?? new Map());
  const merged = { ...wanted.text, parameters: mergeParameters(text.parameters, wanted.text.parameters) };
  return queueUpdate(desk, data, { ...wanted, text: merged }, before, swallowed);
}

/** E10-2: nothing was sent, and it is the same author's: one call does for both. */
function foldable(desk: Desk, { op, after }: WantedUpdate): QueuedOperation | undefined {
  const { queue, request } = desk;
  const [create, ...others] = queue;
  if (create?.kind !== "create" || others.length > 0 || op !== "update" || after.length > 0) return undefined;
  // It goes on with what an earlier one sent, and must send the same.
  if (desk.data?.osbId != null) return undefined;
  const isSameAuthor = authorOf(desk, create.id) === request.by;
  return isSameAuthor && !create.started && !create.held && !create.cancelled ? create : undefined;
}

function foldIntoCreate(desk: Desk, data: InstanceData, wanted: WantedUpdate, create: QueuedOperation): Admitting {
  return createAnew(desk, data, wanted, inputOf<CreateInput>(desk, create), create);
}

/** The desk has the inputs of all that is open. */
function inputOf<Input>({ request }: Desk, { id }: QueuedOperation): Input {
  return request.inputs?.get(id)?.input as Input;
}

/** A create that failed is corrected by an update: both together are a new create, and what waited behind the old one waits behind that. */
function correctCreate(desk: Desk, data: InstanceData, wanted: WantedUpdate): Admitting {
  if (wanted.failedCreate === null)
    throw new PlatformError(
      "too-late",
      "the instance could not be created, and nobody knows any more how it was wanted",
    );
  const input = { ...wanted.failedCreate, osbId: desk.request.newId };
  return createAnew(desk, data, wanted, input, undefined);
}

function createAnew(
  desk: Desk,
  data: InstanceData,
  { text }: WantedUpdate,
  before: CreateInput,
  folded: QueuedOperation | undefined,
): Admitting {
  const wanted = applyText(before, text);
  if (folded !== undefined && difference(before, wanted).length === 0) return { result: { kind: "unchanged" } };
  const ahead = lookAhead(
    { ...desk, data: undefined },
    { op: "create", plan: wanted.plan.id, parameters: wanted.parameters },
    wanted,
    data,
  );
  if (ahead !== undefined) return { result: ahead };
  const heldFor = lockOn(desk, false);
  const brief = {
    op: "create" as const,
    summary: `create ${data.offering.name} ${wanted.plan.name}`,
    paths: ["*"],
    plan: wanted.plan.id,
  };
  const input: CreateInput = { ...carried(desk, "create"), osbId: before.osbId, ...wanted };
  const ending = new Set(folded === undefined ? [] : [folded.id]);
  return decided(
    desk,
    { data, holds: desk.holds, summary: brief.summary, ending },
    {
      cancel: [...ending].map((operation) => ({ operation, reason: cancelReasons.folded })),
      accept: [{ ...intentOf(desk, "create", brief, heldFor), input, place: "front" }],
    },
  );
}

function hasCreate({ queue }: Desk): boolean {
  return queue.some(({ kind, cancelled }) => !cancelled && (kind === "create" || kind === "adopt"));
}

/** Held ones that would write what this one writes now: they carry an older will. */
function supersededBy(
  { queue, holds }: Desk,
  { touched }: Corrected,
  paths: readonly string[],
): readonly QueuedOperation[] {
  return queue.filter(
    ({ id, kind, held, brief, cancelled }) =>
      held &&
      !cancelled &&
      kind === "update" &&
      (holds[id] ?? []).some((reason) => reason.kind === "failure" && touched.has(reason.operation)) &&
      brief.paths.some((path) => paths.some((own) => isRelated(own, path))),
  );
}

function checkAfter({ queue, data }: Desk, after: readonly string[]): void {
  if (after.length > mostAfter)
    throw new PlatformError("invalid", `at most ${mostAfter} operations are named in after`);
  for (const id of after) {
    if (data?.failures.some(({ operation }) => operation === id))
      throw new PlatformError("invalid", `operation ${id} has failed`);
    if (!queue.some((operation) => operation.id === id))
      throw new PlatformError("invalid", `there is no open operation ${id}`);
  }
}

/** What it is to come after waits for someone: so does it. */
function heldBehind({ queue, holds }: Desk, after: readonly string[]) {
  const before = queue.find(({ id, held }) => held && after.includes(id));
  if (before === undefined) return undefined;
  const root = holds[before.id]?.find((reason) => reason.kind === "failure");
  const message = `it is to come after ${before.id}, which is held`;
  return { kind: "failure" as const, operation: root?.operation ?? before.id, message };
}

function toLookAt({ op, text }: WantedUpdate, desired: AppliedState): PreflightIntent {
  if (op === "refresh") return { op };
  if (op === "upgrade")
    return { op, version: text.maintenance ?? "", ...(text.plan !== null && { plan: desired.plan.id }) };
  return { op, plan: text.plan?.id ?? null, parameters: text.parameters };
}

function summaryOf(op: IntentName, changed: readonly PathChange[]): string {
  if (op === "refresh") return "refresh";
  // Names of members, never values: those may be secret.
  return `${op} ${changed.map(({ path }) => path).join(", ")}`;
}
