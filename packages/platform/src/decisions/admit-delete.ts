import { PlatformError } from "../errors.js";
import {
  type DeleteInput,
  type DeleteMode,
  deleteModes,
  type InstanceData,
  instances,
} from "../records/instance-record.js";
import { type BindingPart, nameOfBinding } from "./binding-part.js";
import { cancelReasons } from "./cancel-reasons.js";
import {
  type Admitting,
  askedBefore,
  carried,
  checkMatch,
  type Desk,
  decided,
  intentOf,
  lockOn,
  lookAhead,
  mustExist,
} from "./desk.js";
import { interruptedBy } from "./interrupted.js";
import { leaveBindings } from "./leave-bindings.js";
import { type Holds, overtakable, type QueuedOperation, withHold, withoutHold } from "./queue-state.js";
import { waiveHolds } from "./waived-holds.js";

export interface WantedDelete {
  readonly mode: DeleteMode;
  /** With `after`. */
  readonly after: string | null;
  readonly cascade: boolean;
  readonly now: boolean;
  readonly reason: string | null;
}

/** Bindings that one delete takes along. */
const mostCascaded = 100;
/** What has nothing to do with a broker need not wait for one. */
export const localLane = "platform";

/**
 * A delete. What is queued is held while it goes before it, and never dropped: the broker may refuse (E5). It is taken however much is open, and
 * in whatever state the instance is: nothing may trap it (E10-28).
 */
export function admitDelete(desk: Desk, wanted: WantedDelete): Admitting {
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  const data = mustExist(desk);
  const open = desk.queue.find(({ kind, cancelled }) => kind === "delete" && !cancelled);
  // The second one is the same wish: an older revision does not stand in its way. What was sent cannot go any sooner (E10-30).
  const isSooner = open !== undefined && isStronger(wanted.mode, open.brief.mode ?? "preempt");
  if (open !== undefined && (!isSooner || (open.sent && wanted.mode !== "abandon")))
    return { result: { kind: "repeated", operation: open.id } };
  checkMatch(desk);
  const { mode, reason } = wanted;
  if (mode === "abandon" && (reason === null || reason.trim() === ""))
    throw new PlatformError("invalid", "to abandon an instance a reason is needed");
  const bindings = openBindings(desk, wanted);
  if (mode !== "abandon" && bindings.length > 0 && !wanted.cascade)
    throw new PlatformError("has-bindings", `the instance has bindings: ${bindings.map(nameOfBinding).join(", ")}`, {
      details: { bindings: bindings.map(nameOfBinding) },
    });
  if (bindings.length > mostCascaded && mode !== "abandon")
    throw new PlatformError(
      "too-many",
      `at most ${mostCascaded} bindings go with an instance; unbind the others first`,
    );
  const ahead = lookAhead(desk, { op: "delete", isLocal: mode === "abandon" }, null, data);
  if (ahead !== undefined) return { result: ahead };
  return mode === "abandon" ? abandon(desk, data, wanted) : accept(desk, data, wanted, bindings, open);
}

/**
 * E10-29: nothing is asked of the broker any more, so that nothing waits for it: all that is open ends with this commit, or is told to stop. What
 * may be at the broker is written into the ledger by the operation itself; until then the bindings stay as they are.
 */
function abandon(desk: Desk, data: InstanceData, { mode, reason }: WantedDelete): Admitting {
  const { queue, resource } = desk;
  // It does what it does at once, or not at all.
  const locked = lockOn(desk, true);
  if (locked?.kind === "lock") throw new PlatformError("locked", locked.message);
  const open = queue.filter(({ cancelled }) => !cancelled);
  const brief = { op: "delete" as const, summary: "delete (abandon)", paths: [], mode };
  const input: DeleteInput = { ...carried(desk, "delete"), mode, reason };
  const left = leaveBindings(resource, queue, cancelReasons.abandoned);
  return decided(
    desk,
    {
      data: { ...data, lastDelete: null, bindings: left.bindings },
      holds: {},
      summary: brief.summary,
      ending: new Set(open.map(({ id }) => id)),
    },
    {
      cancel: open.map(({ id }) => ({ operation: id, reason: cancelReasons.abandoned })),
      accept: [
        {
          ...intentOf(desk, "delete", brief, undefined),
          input,
          place: "front",
          lane: localLane,
          deadlineMs: null,
        },
      ],
      parts: left.parts,
    },
  );
}

function accept(
  desk: Desk,
  data: InstanceData,
  wanted: WantedDelete,
  bindings: readonly BindingPart[],
  weaker: QueuedOperation | undefined,
): Admitting {
  const { queue } = desk;
  const { mode, reason } = wanted;
  const ends = queue.filter((operation) => isEndedBy(operation, wanted));
  const ending = new Set([...ends, ...(weaker === undefined ? [] : [weaker])].map(({ id }) => id));
  const heldFor = lockOn(desk, true);
  const others = queue.filter(({ id, started, cancelled }) => !started && !cancelled && !ending.has(id));
  // Bindings first (P-DEL-01), also those that someone has asked to end before: the delete waits for them, and they for nobody.
  const firstOf = others.filter(({ kind }) => kind === "unbind");
  const before = beforeDelete(queue, others, wanted);
  const behind = others.filter((operation) => !before.includes(operation) && !firstOf.includes(operation));
  const free = withoutHold(
    desk.holds,
    ({ kind }, id) => ending.has(id) || kind === "delete" || firstOf.some((one) => one.id === id),
  );
  const holds: Holds = withHold(
    withHold(
      free,
      behind.map(({ id }) => id),
      { kind: "delete" },
    ),
    heldFor === undefined ? [] : firstOf.map(({ id }) => id),
    heldFor ?? { kind: "delete" },
  );
  const sent = overtakable(queue).filter(({ id }) => !ending.has(id));
  const order = [...new Set([...sent, ...before, ...firstOf])].map(({ id }) => id);
  const unbinds = bindings.filter(
    (part) => !queue.some((open) => open.kind === "unbind" && open.part === part && !open.cancelled),
  );
  // A number that no other commit has. What was kept without one is told by what was asked for.
  const cascade = weaker === undefined ? `${desk.resource?.seq ?? 0}` : cascadeOf(weaker);
  const brief = {
    op: "delete" as const,
    summary: `delete (${mode})`,
    paths: [],
    mode,
    cascade,
    ...(wanted.after !== null && { after: [wanted.after] }),
  };
  const input: DeleteInput = { ...carried(desk, "delete"), mode, reason };
  // An adoption makes nothing at a broker.
  const isUnsent = data.osbId === null && !queue.some(({ kind, started }) => started && kind === "create");
  const isLocal = isUnsent && data.applied === null;
  const place = mode === "drain" ? ("back" as const) : ("front" as const);
  return decided(
    desk,
    {
      data: waiveHolds({ ...data, lastDelete: null }, desk.holds, firstOf, weaker),
      holds,
      summary: brief.summary,
      ending,
    },
    {
      cancel: [...ending].map((operation) => ({
        operation,
        reason: operation === weaker?.id ? cancelReasons.escalated : cancelReasons.deleting,
      })),
      accept: inOrder(place, [
        {
          ...intentOf(desk, "delete", brief, heldFor),
          input,
          place,
          ...(isLocal && { lane: localLane }),
          deadlineMs: null,
        },
        ...unbinds.map((part) => unbindOf(desk, part, cascade, place, heldFor)),
      ]),
      ...(place === "front" && order.length > 0 && { order }),
      parts: { ...Object.assign({}, ...unbinds.map((part) => unbinding(desk, part))), ...interruptedBy(desk, ends) },
    },
  );
}

/** In front, each goes before what was accepted before it: the delete, which is named first, comes last (P-DEL-01). */
function inOrder<Item>(place: "front" | "back", [first, ...others]: readonly Item[]): readonly Item[] {
  return first === undefined ? [] : place === "front" ? [first, ...others] : [...others, first];
}

/** Which cascade a delete, or an unbind that goes with one, belongs to. */
export function cascadeOf({ brief }: QueuedOperation): string {
  return brief.cascade ?? brief.asked;
}

function unbindOf(
  desk: Desk,
  part: BindingPart,
  cascade: string,
  place: "front" | "back",
  heldFor: ReturnType<typeof lockOn>,
) {
  const binding = nameOfBinding(part);
  const brief = { op: "unbind" as const, summary: `unbind ${binding}`, paths: [], binding, cascade, asked: "" };
  // Exclusive: the bind may still be under way, and must be over before. Nobody has asked for it by itself: who asks for the delete again does not mean this.
  const common = {
    ...intentOf(desk, "unbind", brief, heldFor),
    mode: "exclusive" as const,
    place,
    part,
    deadlineMs: null,
  };
  return { ...common, input: { ...carried(desk, "unbind"), binding } };
}

function unbinding({ resource }: Desk, part: BindingPart) {
  const record = resource?.parts.get(part);
  return record === undefined ? {} : instances.part(part, { ...record, phase: "unbinding" });
}

/**
 * A create that is under way is told to stop, because the DELETE goes out at once (E10-23). An update that is under way is waited for, unless it is
 * said not to. Both are gone on with if the broker refuses. What has not begun waits.
 */
function isEndedBy({ kind, started, cancelled }: QueuedOperation, { mode, now }: WantedDelete): boolean {
  if (!started || cancelled || mode === "drain" || mode === "after") return false;
  return kind === "create" || kind === "adopt" || (kind === "update" && now);
}

function isStronger(mode: DeleteMode, than: DeleteMode): boolean {
  return deleteModes.indexOf(mode) > deleteModes.indexOf(than);
}

/** Bindings that exist at the broker or may come to: one whose bind has not begun is held with the rest, unless the delete comes after it. */
function openBindings({ resource, queue }: Desk, wanted: WantedDelete): readonly BindingPart[] {
  const binds = queue.filter(({ kind, started }) => kind === "bind" && !started);
  const before = beforeDelete(queue, binds, wanted);
  const unsent = new Set(binds.filter((bind) => !before.includes(bind)).map(({ part }) => part));
  return [...(resource?.parts ?? [])].flatMap(([id, record]) =>
    id.startsWith("binding/") && !unsent.has(id) && "phase" in record && record.phase !== "failed"
      ? [id as BindingPart]
      : [],
  );
}

/** Those of some operations that have not begun which are done before the delete. */
function beforeDelete(
  queue: readonly QueuedOperation[],
  some: readonly QueuedOperation[],
  { mode, after }: WantedDelete,
): readonly QueuedOperation[] {
  return mode === "drain" ? some : mode === "after" ? upTo(queue, after, some) : [];
}

function upTo(
  queue: readonly QueuedOperation[],
  id: string | null,
  movable: readonly QueuedOperation[],
): readonly QueuedOperation[] {
  const index = queue.findIndex((operation) => operation.id === id);
  if (index < 0) throw new PlatformError("invalid", "the operation that the delete is to come after is not open");
  // What is held stands aside: the delete would come before it.
  if (queue[index]?.held === true)
    throw new PlatformError("invalid", "the operation that the delete is to come after is held; release it first");
  const first = new Set(queue.slice(0, index + 1));
  return movable.filter((operation) => first.has(operation));
}
