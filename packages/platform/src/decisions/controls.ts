import { PlatformError } from "../errors.js";
import type { InstanceData, InstanceLock, InstancePolicy } from "../records/instance-record.js";
import { cascadeOf } from "./admit-delete.js";
import { dependents } from "./dependence.js";
import { type Admitting, checkMatch, checkNotDeleting, type Desk, decided, mustExist } from "./desk.js";
import { goneOnWith } from "./interrupted.js";
import {
  type Holds,
  type InstanceChange,
  phaseOf,
  type QueuedOperation,
  withHold,
  withoutHold,
} from "./queue-state.js";
import { unwaiveHolds } from "./waived-holds.js";

/** What people do to a queue. Controls act at once, in one commit, and each leaves its line in the journal. */
export type Control =
  | { readonly action: "cancel"; readonly operation: string }
  | { readonly action: "hold"; readonly operation: string; readonly reason: string }
  | { readonly action: "release"; readonly operation: string }
  | { readonly action: "lock"; readonly lock: InstanceLock }
  | { readonly action: "unlock"; readonly at?: number }
  | { readonly action: "restore" }
  | { readonly action: "set policy"; readonly policy: Partial<InstancePolicy> };

export function control(desk: Desk, asked: Control): Admitting {
  const data = mustExist(desk);
  checkMatch(desk);
  switch (asked.action) {
    case "cancel":
      return cancel(desk, data, asked.operation);
    case "hold": {
      const operation = openOperation(desk, asked.operation);
      if (operation.started) throw tooLate(operation, "it has begun, and cannot be held any more");
      // What is held stands aside: the delete would go out with the binding still there.
      if (operation.kind === "unbind") checkNotDeleting(desk);
      if (named(operation.id, desk.queue).some(({ cancelled, held }) => !cancelled && !held))
        throw new PlatformError("busy", "something is to come after it, and would come before it: hold that first");
      const reason = { kind: "user" as const, by: desk.request.by, message: asked.reason };
      const others = withoutHold(desk.holds, ({ kind }, id) => kind === "user" && id === operation.id);
      return controlled(desk, asked.action, { data, holds: withHold(others, [operation.id], reason) }, operation.id);
    }
    case "release": {
      const operation = openOperation(desk, asked.operation);
      // A lock and a delete hold everything, and are not for one operation to leave.
      const holds = withoutHold(
        desk.holds,
        ({ kind }, id) => id === operation.id && (kind === "user" || kind === "failure"),
      );
      const [left] = holds[operation.id] ?? [];
      if (left !== undefined)
        throw new PlatformError(left.kind === "lock" ? "locked" : "deleting", `it stays held: ${toldReason(left)}`);
      return controlled(desk, asked.action, { data, holds }, operation.id);
    }
    case "lock":
      return lock(desk, data, asked.lock);
    case "unlock": {
      if (data.lock === null || (asked.at !== undefined && data.lock.at !== asked.at))
        return { result: { kind: "unchanged" } };
      const holds = withoutHold(desk.holds, ({ kind }) => kind === "lock");
      return controlled(desk, asked.action, { data: { ...data, lock: null }, holds });
    }
    case "restore":
      return restore(desk, data);
    case "set policy":
      return controlled(desk, asked.action, {
        data: { ...data, policy: { ...data.policy, ...asked.policy } },
        holds: desk.holds,
      });
  }
}

export function toldReason(reason: Holds[string][number]): string {
  switch (reason.kind) {
    case "failure":
    case "lock":
      return reason.message;
    case "delete":
      return "a delete goes before it";
    case "user":
      return `${reason.by}: ${reason.message}`;
  }
}

/** E10-31: an entry that was not sent stays in the journal and is never sent; what counted on it waits for someone. */
function cancel(desk: Desk, data: InstanceData, id: string): Admitting {
  const operation = openOperation(desk, id);
  if (operation.kind === "delete") return restore(desk, data);
  if (operation.sent) throw tooLate(operation, "the broker has been asked, and cannot be stopped"); // E10-32
  // As with hold.
  if (operation.kind === "unbind") checkNotDeleting(desk);
  const makesIt = operation.kind === "create" || operation.kind === "adopt";
  // Where an earlier one failed, what waits has outlived that, and this: it is for those who asked for it to say. With an id, something was sent
  // by an earlier one that this one goes on with: only a delete finds out what became of it.
  const isNothingThere = data.applied === null && data.osbId === null;
  if (makesIt && isNothingThere && data.failures.length === 0) return forget(desk, data, id);
  const behind = desk.queue.slice(desk.queue.indexOf(operation) + 1);
  const waiting = behind.filter(({ started, cancelled }) => !started && !cancelled);
  const { paths, plan } = operation.brief;
  const counted = makesIt
    ? waiting
    : operation.kind === "update"
      ? dependents({ operation: id, paths, plan }, waiting)
      : named(id, waiting);
  const without = withoutHold(desk.holds, (_reason, held) => held === id);
  const message = `${operation.brief.summary} was cancelled by ${desk.request.by}`;
  const holds = withHold(
    without,
    counted.map((one) => one.id),
    { kind: "failure", operation: id, message },
  );
  const change = { cancel: [{ operation: id, reason: `cancelled by ${desk.request.by}` }] };
  // Without a create, what may be there is as after one that failed: it is corrected, retried or deleted.
  const failure = {
    operation: id,
    op: operation.brief.op,
    paths: ["*"],
    class: "cancelled",
    message,
    repeatable: true,
  };
  const left =
    makesIt && data.applied === null && data.failures.length === 0
      ? { ...data, failures: [{ ...failure, at: desk.now }] }
      : data;
  return controlled(desk, "cancel", { data: left, holds, ending: new Set([id]) }, id, change);
}

/** A create that was never sent: nothing is there, and what is queued behind it has nothing to change. */
function forget(desk: Desk, data: InstanceData, operation: string): Admitting {
  const gone: InstanceData = { ...data, phase: "gone", bindings: 0 };
  const ending = new Set(desk.queue.map(({ id }) => id));
  const change = {
    cancel: { others: true, reason: `cancelled by ${desk.request.by}` },
    labels: {},
    gone: true,
  } as const;
  return controlled(desk, "cancel", { data: gone, holds: {}, ending }, operation, change);
}

/** The end of a lock looks for it once, when its time has come: one that came later would hold the queue for ever. */
export function checkLockEnd(until: number | null, now: number): void {
  if (until !== null && !(Number.isSafeInteger(until) && until > now))
    throw new PlatformError("invalid", "a lock ends at a time that is still to come");
}

function lock(desk: Desk, data: InstanceData, wanted: InstanceLock): Admitting {
  // Once more: the commit may have taken longer than there was time.
  checkLockEnd(wanted.until, desk.now);
  const message = `it is locked by ${wanted.by}: ${wanted.reason}`;
  const isMeant = ({ kind, started, cancelled }: QueuedOperation) =>
    !started && !cancelled && !(wanted.deletesExempt && (kind === "delete" || kind === "unbind"));
  const others = withoutHold(desk.holds, ({ kind }) => kind === "lock");
  const ids = desk.queue.filter(isMeant).map(({ id }) => id);
  const holds = withHold(others, ids, { kind: "lock", message });
  return controlled(desk, "lock", { data: { ...data, lock: wanted }, holds });
}

/** Undoes a delete, as long as nothing was sent for it (E10-30); of one that was refused, it clears the memory. */
function restore(desk: Desk, data: InstanceData): Admitting {
  const open = desk.queue.find(({ kind, cancelled }) => kind === "delete" && !cancelled);
  if (open === undefined) {
    if (data.lastDelete === null) return { result: { kind: "unchanged" } };
    const { operation } = data.lastDelete;
    if (phaseOf(data, desk.queue, desk.holds) === "delete-rejected" && data.applied === null)
      throw new PlatformError("too-late", "its create was stopped for the delete: delete it again, or abandon it");
    const freed = withoutHold(desk.holds, (reason) => reason.kind === "failure" && reason.operation === operation);
    return controlled(desk, "restore", { data: { ...data, lastDelete: null }, holds: freed });
  }
  if (open.brief.mode === "abandon") throw tooLate(open, "everything else was ended for it");
  if (open.sent) throw tooLate(open, "the broker has been asked to delete it");
  // What it held goes on in its old order: behind it, if a runner still has to hear that it is called off.
  const cascade = cascadeOf(open);
  const cascaded = desk.queue.filter((one) => one.kind === "unbind" && !one.started && cascadeOf(one) === cascade);
  const ending = new Set([open, ...cascaded].map(({ id }) => id));
  const freed = withoutHold(desk.holds, ({ kind }, id) => kind === "delete" || ending.has(id));
  const left = desk.queue.filter(({ id }) => !ending.has(id));
  const reason = `restored by ${desk.request.by}`;
  const change = {
    cancel: [...ending].map((operation) => ({ operation, reason })),
    ...goneOnWith(desk.resource, data),
  };
  return controlled(desk, "restore", { ...unwaiveHolds(data, freed, left), ending }, open.id, change);
}

function controlled(
  desk: Desk,
  action: Control["action"],
  {
    data,
    holds,
    ending,
  }: { readonly data: InstanceData; readonly holds: Holds; readonly ending?: ReadonlySet<string> },
  operation?: string,
  change: Pick<InstanceChange, "cancel" | "labels" | "gone" | "accept" | "parts"> = {},
): Admitting {
  const entry = { kind: "control", payload: { action }, ...(operation !== undefined && { operation }) };
  const summary = operation === undefined ? action : `${action} ${operation}`;
  return decided(
    desk,
    { data, holds, summary, ...(ending !== undefined && { ending }) },
    { ...change, entries: [entry] },
  );
}

function openOperation({ queue }: Desk, id: string): QueuedOperation {
  const found = queue.find((operation) => operation.id === id && !operation.cancelled);
  if (found === undefined) throw new PlatformError("not-found", `there is no open operation ${id}`);
  return found;
}

function named(id: string, queue: readonly QueuedOperation[]): readonly QueuedOperation[] {
  return queue.filter(({ brief }) => brief.after?.includes(id) === true);
}

function tooLate({ brief }: QueuedOperation, why: string): PlatformError {
  return new PlatformError("too-late", `${brief.summary}: ${why}`);
}
