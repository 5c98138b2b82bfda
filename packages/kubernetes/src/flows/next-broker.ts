import { brokerObject, says } from "./desired-objects.js";
import { absentBroker, type NamespaceData, type SharedBroker } from "./flow-record.js";
import type { FlowSettings } from "./flow-settings.js";
import { isRecord, type Observed, type SeenBroker } from "./observed.js";
import type { Action } from "./pass.js";
import { retryAt } from "./refusals.js";
import { repairAt, repairedAgain } from "./repairs.js";

/** What was asked of the cluster itself, not of a copy, about a Broker that nobody needs any more. */
export type Evidence =
  | { readonly kind: "unused"; readonly uid: string; readonly resourceVersion: string }
  /** Or it could not be found out. `why`: for a person. */
  | { readonly kind: "used"; readonly why: string }
  | { readonly kind: "gone" };

export interface NextBroker {
  readonly broker: SharedBroker;
  readonly actions: readonly Action[];
  readonly dueAt: number | null;
  /** Before it can be deleted, the cluster has to be asked. */
  readonly asks: boolean;
}

/** What a Broker is decided on beside what is kept and seen of it. */
export interface BrokerFacts {
  readonly brokenSince: number | null;
  /** Subscriptions of ours deliver to it that nobody here remembers: the store may be an old copy. */
  readonly hasUnknown: boolean;
}

/** Pure: what becomes of the Broker that the flows of a namespace share. */
export function nextBroker(
  { namespace, holders, broker: stored }: NamespaceData,
  observed: Observed,
  settings: FlowSettings,
  now: number,
  evidence: Evidence | undefined,
  { brokenSince, hasUnknown }: BrokerFacts,
): NextBroker {
  // Said anew of one that is kept.
  const { kept: _, ...broker } = stored;
  // It goes with its namespace.
  if (observed.namespace !== "active") return still(absentBroker(broker.epoch));
  const seen = observed.broker;
  const isNeeded = holders.length > 0;
  // Nothing can be made of a kind that is not there; what nobody needs has gone with it.
  if (isNeeded && observed.knative === "missing") return still(broker);
  switch (broker.state) {
    case "absent":
    case "ensuring":
    case "present":
      if (!isNeeded) return unneeded(broker, seen, settings, now);
      return repaired(ensured(namespace, broker, seen, settings, now), seen, settings, now, brokenSince);
    case "lingering":
      if (isNeeded) return ensured(namespace, { ...broker, lingerUntil: null }, seen, settings, now);
      // Somebody delivers to it, whom this store does not know.
      if (hasUnknown)
        return {
          ...still({ ...broker, kept: "Subscriptions deliver to it that are not known here" }),
          dueAt: now + usedAgainMs,
        };
      return lingering(stored, seen, settings, now, evidence);
    case "deleting": {
      // Another one of the name is none that anybody has decided to delete.
      if (seen === undefined || seen.uid !== broker.uid) {
        const absent = { ...absentBroker(broker.epoch), ...(isNeeded && { repairs: broker.repairs ?? null }) };
        return isNeeded ? ensured(namespace, absent, seen, settings, now) : unneeded(absent, seen, settings, now);
      }
      return { ...still(broker), actions: seen.deleting ? [] : [removal(seen)] };
    }
  }
}

/** A Broker that somebody else uses is looked at again after so long, at least. */
const usedAgainMs = 60_000;

function ensured(
  namespace: string,
  broker: SharedBroker,
  seen: SeenBroker | undefined,
  settings: FlowSettings,
  now: number,
): NextBroker {
  const desired = brokerObject(namespace, broker.epoch, settings);
  const apply: Action = { kind: "apply", what: "broker", desired, over: seen?.uid ?? null };
  const dueAt = broker.refused === null ? null : retryAt(broker.refused, now);
  const isDue = dueAt === null || dueAt <= now;
  if (seen === undefined || seen.deleting) {
    const next: SharedBroker = { ...broker, state: "ensuring", adopted: false, uid: null, lingerUntil: null };
    if (seen?.deleting) return still(next);
    return { broker: next, actions: isDue ? [apply] : [], dueAt: isDue ? null : dueAt, asks: false };
  }
  // One of an earlier number may still be deleted by a process that is late: only the apply, which changes it, makes it safe.
  const state =
    seen.ours && seen.epoch !== String(broker.epoch) && !hasForeignClass(seen, settings) ? "ensuring" : "present";
  const next: SharedBroker = { ...broker, state, adopted: !seen.ours, uid: seen.uid, lingerUntil: null };
  // What is another one's is only read; and nobody fights over a class, which a Broker keeps for life.
  if (!seen.ours || hasForeignClass(seen, settings) || isAsDesired(seen, broker.epoch, settings))
    return still({ ...next, refused: null, trouble: null });
  return { broker: next, actions: isDue ? [apply] : [], dueAt: isDue ? null : dueAt, asks: false };
}

/**
 * A Broker that was made before Knative's webhook was there lacks what that fills in, can never be ready, and refuses every change: it is made anew.
 * No event was ever in it.
 */
function repaired(
  next: NextBroker,
  seen: SeenBroker | undefined,
  settings: FlowSettings,
  now: number,
  brokenSince: number | null,
): NextBroker {
  const { broker } = next;
  if (seen?.ready.status === "True") return { ...next, broker: { ...broker, repairs: null } };
  // Who says that none is ever deleted may not have given the right to do so: that it was decided could not be undone.
  if (settings.deleteBroker === "never") return next;
  if (seen === undefined || seen.deleting || !isUnfinished(seen, settings)) return next;
  const repairs = broker.repairs ?? null;
  const dueAt = repairAt(repairs, brokenSince ?? now, settings.repairMs, now);
  if (dueAt > now) return { ...next, dueAt: Math.min(dueAt, next.dueAt ?? dueAt) };
  const deleting = { ...broker, state: "deleting", uid: seen.uid, epoch: broker.epoch + 1 } as const;
  return { ...still({ ...deleting, repairs: repairedAgain(repairs, now) }), actions: [removal(seen)] };
}

/** Only of the class of which it is known. */
function isUnfinished({ ours, class: made, spec }: SeenBroker, { brokerClass }: FlowSettings): boolean {
  const hasConfig = isRecord(spec) && spec.config !== undefined;
  return ours && made === brokerClass && brokerClass === "MTChannelBasedBroker" && !hasConfig;
}

/** Nobody needs it. What was made by somebody else, or is to stay, is forgotten; the rest stays for a while, in case that somebody comes back. */
function unneeded(
  broker: SharedBroker,
  seen: SeenBroker | undefined,
  { deleteBroker, lingerMs }: FlowSettings,
  now: number,
): NextBroker {
  if (seen === undefined || !seen.ours || deleteBroker === "never") return still(absentBroker(broker.epoch));
  const lingerUntil = now + lingerMs;
  const next: SharedBroker = {
    ...{ state: "lingering", adopted: false, uid: seen.uid, epoch: broker.epoch, lingerUntil, refused: null },
  };
  return { ...still(next), dueAt: lingerUntil };
}

function lingering(
  broker: SharedBroker,
  seen: SeenBroker | undefined,
  settings: FlowSettings,
  now: number,
  evidence: Evidence | undefined,
): NextBroker {
  if (seen === undefined || !seen.ours || settings.deleteBroker === "never") return still(absentBroker(broker.epoch));
  const longestMs = Math.max(settings.lingerMs, usedAgainMs);
  // A clock that was set back does not make it linger for longer.
  const until = Math.min(broker.lingerUntil ?? now, now + longestMs);
  if (now < until) return { ...still(broker), dueAt: until };
  if (evidence === undefined) return { ...still(broker), asks: true };
  if (evidence.kind === "gone") return still(absentBroker(broker.epoch));
  // Written once: it may be used for years.
  if (evidence.kind === "used") return { ...still({ ...broker, kept: evidence.why }), dueAt: now + longestMs };
  const { uid, resourceVersion } = evidence;
  // Another one has taken its place, and the copy does not know it yet.
  if (uid !== seen.uid) return { ...still(broker), dueAt: now + 1_000 };
  return {
    ...still({ ...broker, state: "deleting", uid, epoch: broker.epoch + 1, lingerUntil: null, kept: null }),
    actions: [removal({ ...seen, uid, resourceVersion })],
  };
}

/** Somebody has made a Broker of another class of it, or had one before. */
export function hasForeignClass(seen: SeenBroker, { brokerClass }: FlowSettings): boolean {
  return seen.class !== null && seen.class !== brokerClass;
}

function isAsDesired(seen: SeenBroker, epoch: number, { brokerSpec }: FlowSettings): boolean {
  return seen.epoch === String(epoch) && says(seen.spec, Object.keys(brokerSpec).length > 0 ? brokerSpec : seen.spec);
}

function removal({ name, namespace, uid, resourceVersion }: SeenBroker): Action {
  return { kind: "remove", what: "broker", place: { namespace, name }, uid, resourceVersion };
}

function still(broker: SharedBroker): NextBroker {
  return { broker, actions: [], dueAt: null, asks: false };
}
