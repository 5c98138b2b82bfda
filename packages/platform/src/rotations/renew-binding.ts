import { type Attribution, RetryLater, type TypedKind, type TypedOperation } from "@osbert/journal";
import { isPlannedFor, isSuccessorOf } from "../decisions/same-binding.js";
import { rotationLane, successorName } from "../decisions/schedule-rotation.js";
import { PlatformError } from "../errors.js";
import type { BindingView, Instances, InstanceView } from "../platform.js";
import type { RotationData, RotationShape } from "../records/rotation-record.js";

export interface RenewBindingPorts {
  readonly now: () => number;
  readonly instances: () => Pick<Instances, "read" | "rotate" | "unbind">;
  readonly overlapMs: number;
}

type RenewOperation = TypedOperation<RotationShape, "renew">;

/** Nobody is behind it, so that no identity goes along (P-ID-03). */
const by: Attribution = { actor: { type: "system", subject: "rotation" } };

type End = { readonly kind: "end"; readonly state: RotationData["state"]; readonly message: string | null };
type Renewed = { readonly kind: "successor"; readonly name: string } | End;
/** `again`: its successor is gone, and it is to be renewed all the same. */
type Unbound = End | { readonly kind: "again" };

/**
 * Renews one binding when its time has come, or when somebody has bound its successor by hand: its successor is bound, both are kept for a while, and then the old one is unbound. What is asked of the
 * instance goes through its queue as everything does. Every look begins with what is there: whether this operation has asked before, was killed,
 * or whether somebody else did it, makes no difference, and nothing is asked twice. It is asked of the instance that was looked at (`ifMatch`): whoever
 * wakes up late would name a binding that is another by then.
 */
export function renewBinding(ports: RenewBindingPorts): TypedKind<RotationShape, "renew"> {
  return {
    lane: rotationLane,
    deadlineMs: null,
    run: async (operation) => {
      // Its successor may be unbound in the overlap, so that it needs another one, until it has expired.
      for (let turn = 1; turn < mostTurns; turn++) {
        const which = turn === 1 ? "" : ` ${turn}`;
        const look = { everyMs: soon };
        const bind = ({ looks }: { readonly looks: number }) => bindSuccessor(ports, operation, { turn, looks });
        const renewed = await operation.poll(`successor${which}`, bind, look);
        if (renewed.kind === "end") return tell(operation, renewed);
        await operation.change(({ data }) => ({
          data: { ...data, state: "overlapping", successor: renewed.name, message: null },
        }));
        await operation.sleep(`overlap${which}`, ports.overlapMs);
        const unbind = ({ looks }: { readonly looks: number }) => unbindOld(ports, operation, looks);
        const unbound = await operation.poll(`unbound${which}`, unbind, look);
        if (unbound.kind === "end") return tell(operation, unbound);
      }
      return tell(operation, { state: "failed", message: "its successor was unbound again and again" });
    },
    settle: ({ data, open }, _operation, outcome) => {
      // Another one has taken its place, and what is written is about that.
      if (open.length > 0) return {};
      const message = outcome.kind === "failed" ? outcome.error.message.slice(0, longestMessage) : data.message;
      return {
        data: { ...data, state: outcome.kind === "succeeded" ? outcome.result.end : "over", message },
        gone: true,
      };
    },
  };
}

const longestMessage = 1_000;
/** Overlaps of one binding: more than anybody means. */
const mostTurns = 100;

async function tell(
  operation: RenewOperation,
  { state, message }: { readonly state: RotationData["state"]; readonly message: string | null },
): Promise<{ readonly end: RotationData["state"] }> {
  await operation.change(({ data }) => ({
    data: { ...data, message },
    entries: [{ kind: state, payload: { binding: data.binding, successor: data.successor, message } }],
  }));
  return { end: state };
}

async function bindSuccessor(
  { now, instances }: RenewBindingPorts,
  operation: RenewOperation,
  { turn, looks }: { readonly turn: number; readonly looks: number },
): Promise<Renewed | undefined> {
  const { space, instance, binding, expiresAt, renewAt } = operation.data;
  const ref = { space, name: instance };
  const view = await instances().read(ref);
  const old = bindingIn(view, operation);
  if (view === undefined || old?.phase !== "bound")
    return { kind: "end", state: "over", message: "it is not bound any more" };
  const successors = view.bindings.filter((other) => isSuccessorOf(other, old));
  const bound = successors.find(({ phase }) => phase === "bound");
  if (bound !== undefined) return { kind: "successor", name: bound.name };
  if (successors.some(({ phase }) => phase === "binding")) return undefined;
  // Somebody has rotated it, and has taken that back.
  if (!isToBeRenewed(operation.data)) return { kind: "end", state: "over", message: "its successor is gone; it stays" };
  if (renewAt > now()) throw new RetryLater("until it is due", { afterMs: renewAt - now() });
  const failed = successors.find(({ phase }) => phase === "failed");
  // P-ROT-02: what has expired has no successor.
  if (expiresAt !== null && Date.parse(expiresAt) <= now())
    return { kind: "end", state: "failed", message: `it expired at ${expiresAt} before it could be renewed` };
  if (looks > 0 && !isTurn(looks)) return undefined;
  const name = successorName(binding, new Set(view.bindings.map((other) => other.name)));
  return attempt(operation, looks, async () => {
    // A key for each look: what somebody has cancelled, or unbound, is asked for once more, although its name is the same.
    const idempotencyKey = `${operation.id}.${turn}.${looks}`;
    await instances().rotate(ref, binding, name, { by, idempotencyKey, ifMatch: view.revision });
    await note(operation, "renewing", failed?.message ?? null);
    return undefined;
  });
}

async function unbindOld(
  { instances }: RenewBindingPorts,
  operation: RenewOperation,
  looks: number,
): Promise<Unbound | undefined> {
  const { space, instance, binding } = operation.data;
  const ref = { space, name: instance };
  const view = await instances().read(ref);
  const old = bindingIn(view, operation);
  if (view === undefined || old === undefined) return { kind: "end", state: "renewed", message: null };
  if (old.phase === "unbinding") return undefined;
  if (old.phase === "unbind-rejected") {
    const message = `its successor is there, and the broker refused to unbind it: ${old.message ?? ""}`;
    return { kind: "end", state: "failed", message: message.slice(0, longestMessage) };
  }
  // Whoever uses it would be left with nothing.
  if (!view.bindings.some((other) => other.phase === "bound" && isSuccessorOf(other, old)))
    return isToBeRenewed(operation.data)
      ? { kind: "again" }
      : { kind: "end", state: "over", message: "its successor is gone; it stays" };
  return attempt(operation, looks, async () => {
    const idempotencyKey = `${operation.id}.unbind`;
    const asked = await instances().unbind(ref, binding, { by, idempotencyKey, ifMatch: view.revision });
    const isStill = asked.kind === "repeated" && bindingIn(asked.instance, operation)?.phase === "bound";
    return isStill
      ? { kind: "end", state: "over", message: "somebody has called its unbind off; it stays" }
      : undefined;
  });
}

/** What the instance's queue does not take now, as because it is locked, it may take later. */
async function attempt<T>(operation: RenewOperation, looks: number, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    const { message } = error;
    await note(operation, null, message);
    throw new RetryLater(message, { afterMs: Math.min(longestMs, 30_000 * 2 ** Math.min(looks, 20)) });
  }
}

async function note(operation: RenewOperation, state: RotationData["state"] | null, message: string | null) {
  const said = message?.slice(0, longestMessage) ?? null;
  await operation.change(({ data }) =>
    data.message === said && (state === null || data.state === state)
      ? {}
      : { data: { ...data, state: state ?? data.state, message: said } },
  );
}

const longestMs = 6 * 60 * 60_000;

/** While the queue is at it: a second, growing to a minute. */
function soon(looks: number): number {
  return Math.min(60_000, 1_000 * 1.5 ** Math.min(looks, 20));
}

/** A bind that failed, or was called off, is tried again less and less often: at looks whose number is a power of two. */
function isTurn(looks: number): boolean {
  return (looks & (looks - 1)) === 0;
}

/** By its broker's word. Another one is rotated when somebody says so. */
function isToBeRenewed({ expiresAt, renewBefore }: RotationData): boolean {
  return expiresAt !== null || renewBefore !== null;
}

/** The binding that was planned for, and not another one that somebody has given the same name since. */
function bindingIn(
  view: InstanceView | undefined,
  { data, acceptedAt }: Pick<RenewOperation, "data" | "acceptedAt">,
): BindingView | undefined {
  const found = view?.bindings.find(({ name }) => name === data.binding);
  return found !== undefined && isPlannedFor(data, acceptedAt, found) ? found : undefined;
}
