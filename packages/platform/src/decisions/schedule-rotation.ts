import type { TypedDecide } from "@osbert/journal";
import type { RotationShape } from "../records/rotation-record.js";

/** What a broker said of a binding that is not for ever. */
export interface BindingTimes {
  readonly space: string;
  readonly instance: string;
  readonly binding: string;
  readonly bindingId: string;
  readonly expiresAt: string | null;
  readonly renewBefore: string | null;
}

/** All rotations share it: what is due next is the front of its queue. */
export const rotationLane = "rotations";

/** A broker may say anything. A binding is not renewed more often than this, and what is so far away is not planned. */
const soonestMs = 60_000;
const farthestMs = 50 * 365 * 24 * 60 * 60_000;
/** Before `renew_before`, and before `expires_at`: a part of the time that is left, and no more than this. */
const beforeRenewal = { part: 0.1, mostMs: 10 * 60_000 };
const beforeExpiry = { part: 0.2, mostMs: 24 * 60 * 60_000 };

/** When the successor of a binding is to be bound (P-BIND-10, E10-47). `null`: the broker names no time that makes sense. */
export function renewalTime(
  { expiresAt, renewBefore }: Pick<BindingTimes, "expiresAt" | "renewBefore">,
  now: number,
): number | null {
  const times = [ahead(renewBefore, beforeRenewal, now), ahead(expiresAt, beforeExpiry, now)];
  const known = times.filter((time) => time !== null);
  if (known.length === 0) return null;
  const at = Math.max(now + soonestMs, Math.min(...known));
  return at - now > farthestMs ? null : at;
}

function ahead(text: string | null, { part, mostMs }: { readonly part: number; readonly mostMs: number }, now: number) {
  const time = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : Math.floor(time - Math.min(mostMs, Math.max(0, time - now) * part));
}

/** Plans the renewal of a binding that was just bound. One of the same name may have been planned before: it is of no more use. */
export function scheduleRotation(times: BindingTimes): TypedDecide<RotationShape, null> {
  return (resource, now) => {
    const renewAt = renewalTime(times, now);
    if (renewAt === null) return { result: null };
    const others = resource?.open.map(({ id }) => ({ operation: id, reason: "the binding was bound anew" })) ?? [];
    return {
      result: null,
      change: {
        data: { ...times, renewAt, state: "scheduled", successor: null, message: null },
        cancel: others,
        accept: [{ kind: "renew", delayMs: renewAt - now }],
      },
    };
  };
}

/**
 * Its successor is bound, whoever asked for that: the overlap begins, and then it is unbound. What was planned for it before begins anew: it may wait
 * for its time, be in the overlap with an earlier successor, or be about to end.
 */
export function retirePredecessor(times: BindingTimes): TypedDecide<RotationShape, null> {
  return (resource, now) => {
    const open = resource?.open.map(({ id }) => ({ operation: id, reason: "its successor was bound" })) ?? [];
    const renewAt = open.length > 0 ? (resource?.data.renewAt ?? now) : now;
    return {
      result: null,
      change: {
        data: { ...times, renewAt, state: "scheduled", successor: null, message: null },
        cancel: open,
        accept: [{ kind: "renew" }],
      },
    };
  };
}

/** The name of a binding's successor: counted on behind a dot, and one that is free. */
export function successorName(binding: string, taken: ReadonlySet<string>): string {
  const [, stem = binding, number] = /^(.+?)(?:\.([0-9]{1,9}))?$/.exec(binding) ?? [];
  for (let next = Number(number ?? 1) + 1; ; next++) {
    const suffix = `.${next}`;
    const name = `${stem.slice(0, 63 - suffix.length).replace(/[._-]+$/, "")}${suffix}`;
    if (!taken.has(name)) return name;
  }
}
