import type { Desired } from "./desired-objects.js";
import { says, subscriptionName, subscriptionObject } from "./desired-objects.js";
import type { Delivery, FlowRecord, WireRecord } from "./flow-record.js";
import type { FlowSettings } from "./flow-settings.js";
import { isRecord, type Observed, type SeenSubscription } from "./observed.js";
import type { Action } from "./pass.js";
import { retryAt } from "./refusals.js";
import { repairAt, repairedAgain } from "./repairs.js";

export interface NextWire {
  /** `null`: nothing is left of it. */
  readonly wire: WireRecord | null;
  readonly actions: readonly Action[];
  readonly dueAt: number | null;
  readonly repaired: boolean;
}

/** What a wire is decided on beside what is kept and seen of it. */
export interface WireFacts {
  readonly namespace: string;
  readonly application: string;
  /** The flows that need it. */
  readonly holders: readonly string[];
  readonly flows: readonly FlowRecord[];
  /** The Broker is there: a Subscription must not point at what does not exist. */
  readonly hasSink: boolean;
  /** Source and sink are ready, and the Subscription has not been for this long. `null`: it is, or that is not its fault. */
  readonly brokenSince: number | null;
}

/** Of one that does not say that it is broken: Knative may just not have got round to it, and making it anew puts it at the end of the queue. */
const silentTimesLonger = 15;

export function newWire(application: string, namespace: string): WireRecord {
  const name = subscriptionName(application, namespace);
  return { application, name, holders: [], state: "absent", uid: null, refused: null, deliveryAt: 0, repairs: null };
}

/** Pure: what becomes of the Subscription between an application and a namespace. */
export function nextWire(
  known: WireRecord | undefined,
  facts: WireFacts,
  observed: Observed,
  settings: FlowSettings,
  now: number,
): NextWire {
  const { application, namespace, flows } = facts;
  const wire = { ...(known ?? newWire(application, namespace)), holders: facts.holders };
  const seen = observed.subscriptions.get(wire.name);
  const wanted = isWanted(facts, observed);
  if (wanted === "unknown") return still(wire);
  if (!wanted) return ending(wire, seen, namespace, flows.length === 0);
  if (observed.knative === "missing") return still(wire);
  if (wire.state === "deleting" && seen !== undefined && seen.uid === wire.uid)
    return { ...still(wire), actions: seen.deleting ? [] : [removal(seen)] };
  const [channel, ...more] = observed.applications.get(application)?.channels ?? [];
  if (channel === undefined || more.length > 0)
    return still(seen === undefined ? { ...wire, state: "absent", uid: null } : wire);
  const desired = subscriptionObject({ application, namespace, name: wire.name }, channel, deliveryOf(flows), settings);
  if (seen === undefined || seen.deleting) {
    const next: WireRecord = { ...wire, state: "ensuring", uid: null };
    if (seen?.deleting || !facts.hasSink) return still(next);
    return applied(next, desired, null, now);
  }
  if (!seen.ours) return still(onlyRead(wire, seen, flows, now));
  // The channel of a Subscription cannot be changed.
  if (!says(channelOf(seen.spec), channelOf(desired.object.spec))) return recreated(wire, seen);
  const next: WireRecord = { ...wire, state: "present", uid: seen.uid };
  const paths = strangers(seen.spec, desired.object.spec);
  if (paths.length > 0 || !says(seen.spec, desired.object.spec)) return changed(next, seen, paths, desired, now);
  const deliveryAt = Math.max(...flows.map((flow) => flow.deliveryAt));
  return repaired({ ...next, refused: null, trouble: null, deliveryAt }, seen, facts.brokenSince, settings, now);
}

/** The latest word of all flows that share it. */
export function deliveryOf(flows: readonly FlowRecord[]): Delivery | null {
  const said = flows.reduce<FlowRecord | undefined>(
    (latest, flow) => (latest === undefined || flow.deliveryAt > latest.deliveryAt ? flow : latest),
    undefined,
  );
  return said?.delivery ?? null;
}

/** Not ours, whatever its name is: somebody wants it so. Who wants it to deliver otherwise is told that this cannot be had. */
function onlyRead(wire: WireRecord, seen: SeenSubscription, flows: readonly FlowRecord[], now: number): WireRecord {
  const wanted = deliveryOf(flows);
  const next: WireRecord = { ...wire, state: "present", uid: seen.uid };
  if (wanted === null || says(seen.spec, { delivery: wanted }))
    return { ...next, refused: null, deliveryAt: Math.max(...flows.map((flow) => flow.deliveryAt)) };
  const message = `the Subscription ${seen.name} was made by somebody else and is only read: how it delivers cannot be changed`;
  if (wire.refused?.message === message) return next;
  // As often as it takes to be believed: nobody tries it again.
  return { ...next, refused: { times: 2, since: now, lastAt: now, message } };
}

/** Nothing is concluded from what is not known: what is there stays, and nothing is made. */
function isWanted({ application, flows }: WireFacts, observed: Observed): boolean | "unknown" {
  if (flows.length === 0 || observed.namespace !== "active") return false;
  const granted = observed.applications.get(application)?.granted ?? "unknown";
  if (granted === "unknown") return "unknown";
  return flows.some(({ service }) => granted.has(service));
}

/**
 * Nobody needs it, or nobody may have it any more: the events stop. What was taken over goes as what was made here does; what somebody else has put
 * in the place of one that was made here is his.
 */
function ending(wire: WireRecord, seen: SeenSubscription | undefined, namespace: string, isForGood: boolean): NextWire {
  const isTakenOver = wire.name !== subscriptionName(wire.application, namespace);
  if (seen === undefined || !(seen.ours || isTakenOver)) {
    return still(
      isForGood ? null : { ...wire, state: "absent", uid: null, refused: null, trouble: null, repairs: null },
    );
  }
  return recreated(wire, seen);
}

function recreated(wire: WireRecord, seen: SeenSubscription): NextWire {
  return { ...still({ ...wire, state: "deleting", uid: seen.uid }), actions: seen.deleting ? [] : [removal(seen)] };
}

function applied(wire: WireRecord, desired: Desired, over: string | null, now: number): NextWire {
  const dueAt = wire.refused === null ? null : retryAt(wire.refused, now);
  if (dueAt !== null && dueAt > now) return { ...still(wire), dueAt };
  const { application } = wire;
  return { ...still(wire), actions: [{ kind: "apply", what: "subscription", application, desired, over }] };
}

/** What is other than it is to be is applied; what is too much is taken away. */
function changed(
  wire: WireRecord,
  seen: SeenSubscription,
  paths: readonly string[],
  desired: Desired,
  now: number,
): NextWire {
  const next = applied(wire, desired, seen.uid, now);
  if (paths.length === 0 || next.actions.length === 0) return next;
  const { name, namespace, uid } = seen;
  const clear: Action = { kind: "clear", what: "subscription", place: { namespace, name }, uid, paths };
  return { ...next, actions: says(seen.spec, desired.object.spec) ? [clear] : [clear, ...next.actions] };
}

/** A Subscription that stays broken between two ends that are well is made anew, less and less often. */
function repaired(
  wire: WireRecord,
  seen: SeenSubscription,
  brokenSince: number | null,
  { repairMs }: FlowSettings,
  now: number,
): NextWire {
  if (brokenSince === null) return still(wire.repairs === null ? wire : { ...wire, repairs: null });
  const firstMs = seen.ready.status === "False" ? repairMs : repairMs * silentTimesLonger;
  const dueAt = repairAt(wire.repairs, brokenSince, firstMs, now);
  if (dueAt > now) return { ...still(wire), dueAt };
  return { ...recreated({ ...wire, repairs: repairedAgain(wire.repairs, now) }, seen), repaired: true };
}

function channelOf(spec: unknown): unknown {
  return isRecord(spec) ? spec.channel : undefined;
}

/** What is not desired, and would lead the events elsewhere; what the cluster puts into the rest by itself does not matter. */
function strangers(seen: unknown, desired: unknown): readonly string[] {
  const extra = fieldsOf(seen, "delivery").filter((field) => !fieldsOf(desired, "delivery").includes(field));
  const isLed = fieldsOf(seen, "subscriber").includes("uri");
  return [...extra.map((field) => `/spec/delivery/${field}`), ...(isLed ? ["/spec/subscriber/uri"] : [])];
}

function fieldsOf(spec: unknown, part: "delivery" | "subscriber"): readonly string[] {
  const value = isRecord(spec) ? spec[part] : undefined;
  return isRecord(value) ? Object.keys(value) : [];
}

export function removal({ name, namespace, uid, resourceVersion }: SeenSubscription): Action {
  return { kind: "remove", what: "subscription", place: { namespace, name }, uid, resourceVersion };
}

function still(wire: WireRecord | null): NextWire {
  return { wire, actions: [], dueAt: null, repaired: false };
}
