import type { TypedOperationChange } from "@osbert/journal";
import { named } from "./claims.js";
import { type Pending, readyOf, settleConditions } from "./conditions.js";
import {
  type Desired,
  eventFlowObject,
  eventFlowStatus,
  hasPolicy,
  isPolicyOf,
  policyObjects,
  says,
  subscriptionName,
} from "./desired-objects.js";
import { flowConditions } from "./flow-conditions.js";
import {
  conditionOf,
  type FlowRecord,
  flowPart,
  isHeld,
  type NamespaceData,
  type NamespaceShape,
  namespaceResource,
  type Release,
  type WireRecord,
  wirePart,
} from "./flow-record.js";
import type { FlowSettings } from "./flow-settings.js";
import { type Evidence, nextBroker } from "./next-broker.js";
import { nextWire, removal } from "./next-wire.js";
import { isRecord, type Observed, type SeenMirror, type SeenPolicy, type SeenSubscription } from "./observed.js";
import type { Action } from "./pass.js";

/** All that is kept of a namespace. */
export interface StoredNamespace {
  readonly data: NamespaceData;
  readonly flows: ReadonlyMap<string, FlowRecord>;
  readonly wires: ReadonlyMap<string, WireRecord>;
}

/** What the cluster is to be asked, or was, and what is being waited for. */
export interface PassFacts {
  readonly settings: FlowSettings;
  readonly now: number;
  readonly pending: ReadonlyMap<string, Pending>;
  readonly evidence?: Evidence | undefined;
}

/** One look at a namespace: what is to be kept of it, and then what is to be done in the cluster, in this order. */
export interface Pass {
  readonly after: StoredNamespace;
  /** `null`: nothing is to be written. */
  readonly change: TypedOperationChange<NamespaceShape> | null;
  readonly actions: readonly Action[];
  /** Whether the Broker is used by others has to be asked of the cluster, and then decided again. */
  readonly asks: boolean;
  readonly pending: ReadonlyMap<string, Pending>;
  /** When something is due without any news. `null`: nothing is. */
  readonly dueAt: number | null;
  /** Instances that may wait for what has changed. */
  readonly wake: readonly Pick<Release, "platform" | "instance">[];
  /** Nothing is left to be followed. */
  readonly isOver: boolean;
}

/** For so long it is remembered who has let go: a process that was frozen for longer finds nothing that it could claim under an old number. */
export const rememberReleasesMs = 24 * 60 * 60 * 1_000;
const releasesAgainMs = 60_000;

/** Pure: what follows from what is kept and what is seen. Whatever it wants done in the cluster comes after its change is durable. */
export function decidePass(stored: StoredNamespace, observed: Observed, facts: PassFacts): Pass {
  const { settings, now } = facts;
  const { data } = stored;
  const { namespace } = data;
  const isBlind = observed.behind !== null;
  const brokerFacts = { brokenSince: sinkBrokenSince(stored), hasUnknown: unknown(stored, observed).length > 0 };
  const shared = isBlind ? null : nextBroker(data, observed, settings, now, facts.evidence, brokerFacts);
  const broker = shared?.broker ?? data.broker;
  const hasSink = observed.broker !== undefined && !observed.broker.deleting && broker.state === "present";
  const flowsOf = byApplication(stored.flows);
  const paused = pausedSources(observed);
  const wires = new Map<string, WireRecord>();
  const removed: string[] = [];
  const repaired: string[] = [];
  const actions: Action[] = [...(shared?.actions ?? [])];
  const due: (number | null)[] = [shared?.dueAt ?? null];
  for (const application of new Set([...flowsOf.keys(), ...stored.wires.keys()])) {
    const known = stored.wires.get(application);
    const using = flowsOf.get(application) ?? [];
    const holders = using.map(([id]) => id).sort();
    const flows = using.map(([, flow]) => flow);
    if (isBlind) {
      // Who waits for the end of it is told why that takes so long.
      const trouble = holders.length === 0 ? observed.behind : known?.trouble;
      if (known !== undefined) wires.set(application, trouble === undefined ? known : { ...known, trouble });
      continue;
    }
    const brokenSince = paused === "unknown" || paused.has(application) ? null : brokenAlone(flows);
    const next = nextWire(
      known,
      { namespace, application, holders, flows, hasSink, brokenSince },
      observed,
      settings,
      now,
    );
    if (next.wire !== null) wires.set(application, next.wire);
    else if (known !== undefined) removed.push(application);
    if (next.repaired) repaired.push(application);
    actions.push(...next.actions);
    due.push(next.dueAt);
  }
  const flows = new Map<string, FlowRecord>();
  const pending = new Map<string, Pending>();
  for (const [id, flow] of stored.flows) {
    const wire = wires.get(flow.application);
    const raw = flowConditions(flow, { ...data, broker }, wire, observed, settings);
    const told = settleConditions(
      flow.conditions,
      raw,
      facts.pending.get(id) ?? new Map(),
      settings,
      now,
      flow.activatedAt !== null,
    );
    const ready = readyOf(told.conditions, conditionOf(flow, "Ready"), now);
    const activatedAt = flow.activatedAt ?? (ready.status === "True" ? now : null);
    flows.set(id, { ...flow, activatedAt, conditions: [...told.conditions, ready] });
    if (told.pending.size > 0) pending.set(id, told.pending);
    due.push(told.dueAt);
  }
  const policies = isBlind ? [] : policyActions(data, broker.state, observed, settings);
  if (!isBlind) {
    actions.push(...strays(stored, wires, observed), ...policies);
    actions.push(...mirrorActions(namespace, flows, observed, settings, now));
    if (settings.mirror) due.push(...[...flows.values()].map((flow) => mirroredAt(flow)).filter((at) => at > now));
  }
  const released = Object.fromEntries(
    Object.entries(data.released).filter(
      ([, { at, application }]) => now - at < rememberReleasesMs || isEnding(application, wires, flowsOf),
    ),
  );
  due.push(...Object.values(released).map(({ at }) => Math.max(at + rememberReleasesMs, now + releasesAgainMs)));
  const flowing = new Set([...flowsOf.keys(), ...wires.keys()]);
  const policyTrouble = isBlind || policies.length > 0 ? (data.policyTrouble ?? null) : null;
  const nextData: NamespaceData = { ...data, applications: [...flowing].sort(), broker, released, policyTrouble };
  const after = { data: nextData, flows, wires };
  return {
    after,
    change: changeTo(stored, after, { removed, repaired }),
    actions,
    asks: shared?.asks ?? false,
    pending,
    dueAt: due.reduce<number | null>((first, at) => (at === null ? first : Math.min(first ?? at, at)), null),
    wake: toWake(stored, after, removed),
    isOver: isOver(after) && actions.length === 0,
  };
}

type FlowsOf = ReadonlyMap<string, readonly (readonly [id: string, flow: FlowRecord])[]>;

function byApplication(flows: StoredNamespace["flows"]): FlowsOf {
  const flowsOf = new Map<string, (readonly [string, FlowRecord])[]>();
  for (const each of flows) {
    const [, { application }] = each;
    const others = flowsOf.get(application);
    if (others === undefined) flowsOf.set(application, [each]);
    else others.push(each);
  }
  return flowsOf;
}

/** Whoever has let go of it still waits until its events have stopped. */
function isEnding(application: string | null, wires: ReadonlyMap<string, WireRecord>, flowsOf: FlowsOf): boolean {
  return application !== null && wires.has(application) && !flowsOf.has(application);
}

/** Nothing is held, made, or to be remembered. */
export function isOver({ data, wires }: Pick<StoredNamespace, "data" | "wires">): boolean {
  return !isHeld(data) && wires.size === 0;
}

function changeTo(
  before: StoredNamespace,
  after: StoredNamespace,
  { removed, repaired }: { readonly removed: readonly string[]; readonly repaired: readonly string[] },
): TypedOperationChange<NamespaceShape> | null {
  const changedFlows = [...after.flows].filter(([id, flow]) => !same(before.flows.get(id), flow));
  const changedWires = [...after.wires].filter(([application, wire]) => !same(before.wires.get(application), wire));
  const entries = [
    ...brokerEntries(before.data, after.data),
    ...repaired.map((application) => ({ kind: "wire-repaired", payload: { application } })),
    ...changedFlows.flatMap(([id, flow]) => conditionEntries(id, before.flows.get(id), flow)),
  ];
  const isSame = same(before.data, after.data) && changedFlows.length + changedWires.length + removed.length === 0;
  if (isSame && entries.length === 0) return null;
  return {
    ...(!same(before.data, after.data) && { data: after.data }),
    parts: Object.assign(
      {},
      ...changedFlows.map(([id, flow]) => namespaceResource.part(flowPart(id), flow)),
      ...changedWires.map(([application, wire]) => namespaceResource.part(wirePart(application), wire)),
      ...removed.map((application) => namespaceResource.part(wirePart(application), null)),
    ),
    entries,
  };
}

type NewEntry = NonNullable<TypedOperationChange<NamespaceShape>["entries"]>[number];

/** The history of a flow's health: who asks how long it was broken finds it here. */
function conditionEntries(flow: string, before: FlowRecord | undefined, after: FlowRecord): readonly NewEntry[] {
  return after.conditions.flatMap(({ type, status, reason, message }) => {
    const was = before === undefined ? undefined : conditionOf(before, type);
    return was?.status === status
      ? []
      : [{ kind: "flow-condition", payload: { flow, ...named(after), type, status, reason, message } }];
  });
}

function brokerEntries({ broker: before }: NamespaceData, { broker: after }: NamespaceData): readonly NewEntry[] {
  if (before.state === after.state) return [];
  return [{ kind: "broker-state", payload: { from: before.state, to: after.state, adopted: after.adopted } }];
}

/** For all that is told, there is no Broker that is ready. */
function sinkBrokenSince({ flows }: StoredNamespace): number | null {
  const since = [...flows.values()].flatMap((flow) => {
    const sink = conditionOf(flow, "SinkReady");
    return sink?.status === "False" ? [sink.since] : [];
  });
  return since.length === 0 ? null : Math.min(...since);
}

/** Applications for whose flows somebody has asked for no more repairs. */
function pausedSources({ mirror }: Observed): ReadonlySet<unknown> | "unknown" {
  if (mirror.kind === "unknown") return "unknown";
  const paused = [...mirror.seen.values()].filter((seen) => seen.paused);
  return new Set(paused.map(({ spec }) => (isRecord(spec) ? spec.source : undefined)));
}

/** Source and sink are well, and the Subscription alone is not, for all that is told. */
function brokenAlone([flow]: readonly FlowRecord[]): number | null {
  if (flow === undefined) return null;
  const subscription = conditionOf(flow, "SubscriptionReady");
  const others = ["Granted", "SourceReady", "SinkReady"] as const;
  const isAlone = others.every((type) => conditionOf(flow, type)?.status === "True");
  return isAlone && subscription?.status === "False" ? subscription.since : null;
}

/** Subscriptions of ours that no wire knows, and that nobody has let go of here either: whoever has made them may know more than a store that was restored from an old copy. */
function unknown(stored: StoredNamespace, { subscriptions }: Observed): readonly SeenSubscription[] {
  const known = new Set([...[...stored.wires.values()].map(({ name }) => name), ...letGoOf(stored)]);
  return [...subscriptions.values()].filter(({ name, ours, deleting }) => ours && !deleting && !known.has(name));
}

/** Subscriptions of ours that were let go of here, and that no wire knows: made by a process that came late, they would deliver what nobody wants any more. */
function strays(
  stored: StoredNamespace,
  wires: ReadonlyMap<string, WireRecord>,
  { subscriptions }: Observed,
): readonly Action[] {
  const known = new Set([...stored.wires.values(), ...wires.values()].map(({ name }) => name));
  const letGo = letGoOf(stored);
  return [...subscriptions.values()]
    .filter(({ name, ours, deleting }) => ours && !deleting && !known.has(name) && letGo.has(name))
    .map(removal);
}

function letGoOf({ data: { namespace, released } }: StoredNamespace): ReadonlySet<string> {
  const applications = Object.values(released).flatMap(({ application }) =>
    application === null ? [] : [application],
  );
  return new Set(applications.map((application) => subscriptionName(application, namespace)));
}

function policyActions(
  { namespace, holders }: NamespaceData,
  state: NamespaceData["broker"]["state"],
  { policies, knative, namespace: life }: Observed,
  settings: FlowSettings,
): readonly Action[] {
  if (policies.kinds === "missing" || (knative === "missing" && holders.length > 0)) return [];
  const isNeeded = life === "active" && (holders.length > 0 || state === "lingering");
  const desired = isNeeded ? policyObjects(namespace, settings) : [];
  const isDesired = (seen: SeenPolicy) => desired.some((each) => isPolicyOf(seen, each));
  return [
    ...desired
      .filter((each) => !hasPolicy(policies.seen, each))
      .map((each): Action => ({ kind: "apply", what: "policy", desired: each })),
    ...policies.seen
      .filter((seen) => seen.ours && !seen.deleting && !isDesired(seen))
      .map((seen): Action => {
        const { kind, name, namespace: at, uid, resourceVersion } = seen;
        return { kind: "remove", what: "policy", of: kind, place: { namespace: at, name }, uid, resourceVersion };
      }),
  ];
}

function mirrorActions(
  namespace: string,
  flows: ReadonlyMap<string, FlowRecord>,
  { mirror, broker, namespace: life }: Observed,
  settings: FlowSettings,
  now: number,
): readonly Action[] {
  if (!settings.mirror || mirror.kind !== "here" || life !== "active") return [];
  const kept = [...flows].flatMap(([id, flow]): readonly Action[] => {
    const seen = mirror.seen.get(id);
    if (seen?.deleting || mirroredAt(flow) > now) return [];
    const desired = eventFlowObject(id, namespace, flow, settings);
    const status = eventFlowStatus(flow, broker?.address ?? null);
    const withStatus: Desired = { ...desired, object: { ...withoutSpec(desired), status } };
    return [
      ...(says(seen?.spec, desired.object.spec) ? [] : [{ kind: "apply", what: "mirror", desired } as const]),
      ...(says(seen?.status, status) ? [] : [{ kind: "apply status", what: "mirror", desired: withStatus } as const]),
    ];
  });
  const outdated = [...mirror.seen.values()]
    .filter(({ name, ours, deleting }) => ours && !deleting && !flows.has(name))
    .map((seen: SeenMirror): Action => {
      const { name, namespace: at, uid, resourceVersion } = seen;
      return { kind: "remove", what: "mirror", place: { namespace: at, name }, uid, resourceVersion };
    });
  return [...kept, ...outdated];
}

/** What becomes of a new flow in its first moments is told at once, when it has come to rest, or when that takes long: not at each step of it. */
const restMs = 3_000;

function mirroredAt({ since, activatedAt }: FlowRecord): number {
  return activatedAt === null ? since + restMs : 0;
}

function withoutSpec({ object: { apiVersion, kind, metadata } }: Desired): Desired["object"] {
  const { name, namespace } = metadata;
  return { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } };
}

function toWake(before: StoredNamespace, after: StoredNamespace, removed: readonly string[]): Pass["wake"] {
  const wireChanged = (application: string) => !same(before.wires.get(application), after.wires.get(application));
  const brokerChanged = !same(before.data.broker, after.data.broker);
  const waiting = [...after.flows]
    .filter(
      ([id, flow]) =>
        brokerChanged || wireChanged(flow.application) || !same(before.flows.get(id)?.conditions, flow.conditions),
    )
    .map(([, flow]) => flow);
  const letGo = Object.values(after.data.released).filter(
    ({ application }) => application !== null && removed.includes(application),
  );
  return [...waiting, ...letGo].map(({ platform, instance }) => ({ platform, instance }));
}

function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
