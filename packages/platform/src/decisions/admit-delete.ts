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
import { type QueuedOperation, withHold, withoutHold } from "./queue-state.js";

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
  const data = mustExist(desk);
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  const open = desk.queue.find(({ kind, cancelled }) => kind === "delete" && !cancelled);
  // The second one is the same wish: an older revision does not stand in its way.
  if (open !== undefined && !isStronger(wanted.mode, open.brief.mode ?? "preempt"))
    return { result: { kind: "repeated", operation: open.id } };
  checkMatch(desk);
  const { mode, reason } = wanted;
  if (mode === "abandon" && (reason === null || reason.trim() === ""))
    throw new PlatformError("invalid", "to abandon an instance a reason is needed");
  const bindings = openBindings(desk);
  if (mode !== "abandon" && bindings.length > 0 && !wanted.cascade)
    throw new PlatformError("has-bindings", `the instance has bindings: ${bindings.map(nameOfBinding).join(", ")}`, {
      details: { bindings: bindings.map(nameOfBinding) },
    });
  if (bindings.length > mostCascaded && mode !== "abandon")
    throw new PlatformError(
      "too-many",
      `at most ${mostCascaded} bindings go with an instance; unbind the others first`,
    );
  const ahead = lookAhead(desk, { op: "delete" }, null, data);
  if (ahead !== undefined) return { result: ahead };
  return accept(desk, data, wanted, mode === "abandon" ? [] : bindings, open);
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
  const before = mode === "drain" ? others : mode === "after" ? upTo(queue, wanted.after, others) : [];
  const behind = others.filter((operation) => !before.includes(operation));
  const free = withoutHold(desk.holds, ({ kind }, id) => ending.has(id) || kind === "delete");
  const holds = withHold(
    free,
    behind.map(({ id }) => id),
    { kind: "delete" },
  );
  const unbinds = bindings.filter(
    (part) => !queue.some((open) => open.kind === "unbind" && open.part === part && !open.cancelled),
  );
  const brief = {
    op: "delete" as const,
    summary: `delete (${mode})`,
    paths: [],
    mode,
    ...(wanted.after !== null && { after: [wanted.after] }),
  };
  const input: DeleteInput = { ...carried(desk, "delete"), mode, reason };
  const isUnsent =
    data.osbId === null && !queue.some(({ kind, started }) => started && (kind === "create" || kind === "adopt"));
  const isLocal = mode === "abandon" || (isUnsent && data.applied === null);
  const place = mode === "drain" ? ("back" as const) : ("front" as const);
  return decided(
    desk,
    { data: { ...data, lastDelete: null }, holds, summary: brief.summary, ending },
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
        ...unbinds.map((part) => unbindOf(desk, part, place, heldFor)),
      ]),
      ...(place === "front" && before.length > 0 && { order: before.map(({ id }) => id) }),
      parts: Object.assign({}, ...unbinds.map((part) => unbinding(desk, part))),
    },
  );
}

/** In front, each goes before what was accepted before it: the delete, which is named first, comes last (P-DEL-01). */
function inOrder<Item>(place: "front" | "back", [first, ...others]: readonly Item[]): readonly Item[] {
  return first === undefined ? [] : place === "front" ? [first, ...others] : [...others, first];
}

function unbindOf(desk: Desk, part: BindingPart, place: "front" | "back", heldFor: ReturnType<typeof lockOn>) {
  const binding = nameOfBinding(part);
  const brief = { op: "unbind" as const, summary: `unbind ${binding}`, paths: [], binding };
  // Exclusive: the bind may still be under way, and must be over before.
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
 * A create is told to stop, because the DELETE goes out at once (E10-23). An update that is under way is waited for, unless it is said not to.
 * Binds that have not begun wait as everything else does.
 */
function isEndedBy({ kind, started, cancelled }: QueuedOperation, { mode, now }: WantedDelete): boolean {
  if (cancelled || mode === "drain" || mode === "after") return false;
  if (kind === "create" || kind === "adopt") return true;
  return started && kind === "update" && (now || mode === "abandon");
}

function isStronger(mode: DeleteMode, than: DeleteMode): boolean {
  return deleteModes.indexOf(mode) > deleteModes.indexOf(than);
}

/** Bindings that exist at the broker or may come to: one whose bind has not begun is held with the rest. */
function openBindings({ resource, queue }: Desk): readonly BindingPart[] {
  const unsent = new Set(queue.filter(({ kind, started }) => kind === "bind" && !started).map(({ part }) => part));
  return [...(resource?.parts ?? [])].flatMap(([id, record]) =>
    id.startsWith("binding/") && !unsent.has(id) && "phase" in record && record.phase !== "failed"
      ? [id as BindingPart]
      : [],
  );
}

function upTo(
  queue: readonly QueuedOperation[],
  id: string | null,
  movable: readonly QueuedOperation[],
): readonly QueuedOperation[] {
  const index = queue.findIndex((operation) => operation.id === id);
  if (index < 0) throw new PlatformError("invalid", "the operation that the delete is to come after is not open");
  const first = new Set(queue.slice(0, index + 1));
  return movable.filter((operation) => first.has(operation));
}
