import { limits, type TypedResource } from "@osbert/journal";
import { expect, test } from "vitest";
import { mostReleases, release } from "../src/flows/claims.js";
import { type RawCondition, readyOf, settleConditions } from "../src/flows/conditions.js";
import { decidePass, rememberReleasesMs, type StoredNamespace } from "../src/flows/decide-pass.js";
import { subscriptionName, subscriptionObject } from "../src/flows/desired-objects.js";
import {
  absentBroker,
  type Condition,
  type ConditionType,
  type FlowRecord,
  type NamespaceShape,
  newNamespace,
  type WireRecord,
} from "../src/flows/flow-record.js";
import { defaultFlowSettings, type FlowSettings, kinds } from "../src/flows/flow-settings.js";
import { newWire } from "../src/flows/next-wire.js";
import { type Observed, type SeenChannel, type SeenSubscription, text } from "../src/flows/observed.js";
import type { Action } from "../src/flows/pass.js";
import { retryAt } from "../src/flows/refusals.js";
import { NamespaceMemories, NamespaceMemory } from "../src/wiring/namespace-memory.js";

const now = 1_000_000_000;
const hourMs = 3_600_000;
const facts = { settings: defaultFlowSettings, now, pending: new Map() };

/** A flow was released a while ago, and its Subscription is still to go. */
function released(at: number, wire: Partial<WireRecord> = {}): StoredNamespace {
  const release = { operation: 7, at, platform: "ns", instance: "i", application: "shop" };
  return {
    data: { ...newNamespace("ns"), applications: ["shop"], released: { f: release } },
    flows: new Map(),
    wires: new Map([["shop", { ...newWire("shop", "ns"), state: "present", holders: ["f"], uid: "u", ...wire }]]),
  };
}

function observed(changed: Partial<Observed> = {}): Observed {
  return {
    ...{ behind: null, namespace: "active", knative: "here", broker: undefined },
    applications: new Map(),
    subscriptions: new Map(),
    policies: { kinds: "missing", seen: [] },
    mirror: { kind: "missing", seen: new Map() },
    ...changed,
  };
}

const subscription: SeenSubscription = {
  ...{ name: subscriptionName("shop", "ns"), namespace: "integration", uid: "u", resourceVersion: "5" },
  ...{ ours: true, deleting: false, spec: {}, ready: { status: "True", reason: "Ready", message: "" } },
};

function applyOf(name: string): Action {
  const metadata = { name, namespace: "integration" };
  const object = { apiVersion: "messaging.knative.dev/v1", kind: "Subscription", metadata };
  return { kind: "apply", what: "subscription", desired: { kind: kinds.subscription, object } };
}

test("without Knative's kinds nothing is left to be removed, and who has let go is done", () => {
  expect(decidePass(released(now), observed({ knative: "missing" }), facts).after.wires.size).toBe(0);
});

test("where the kind of the channels alone is missing, a Subscription that nobody needs is removed", () => {
  const seen = observed({ knative: "missing", subscriptions: new Map([[subscription.name, subscription]]) });
  const pass = decidePass(released(now), seen, facts);
  expect(pass.actions).toMatchObject([{ kind: "remove", what: "subscription", uid: "u" }]);
  expect(pass.after.wires.get("shop")?.state).toBe("deleting");
});

test("a release is remembered for as long as its Subscription is there, however long the cluster was silent", () => {
  const long = released(now - rememberReleasesMs - hourMs);
  const blind = decidePass(long, observed({ behind: "the cluster does not answer" }), facts);
  expect(Object.keys(blind.after.data.released)).toEqual(["f"]);
  expect(blind.after.wires.get("shop")?.trouble).toBe("the cluster does not answer");
  const gone = decidePass(long, observed(), facts);
  expect(gone.after.wires.size).toBe(0);
  expect(decidePass(gone.after, observed(), facts).after.data.released).toEqual({});
});

test("who has let go is remembered up to a number, so that the record of a busy namespace can be kept", () => {
  let data = newNamespace("ns");
  const asked = (flow: string) => ({ flow, namespace: "ns", platform: "ns", instance: "i".repeat(400), operation: 7 });
  for (let many = 0; many < mostReleases + 20; many++) {
    const resource = { data, parts: new Map(), open: [] } as unknown as TypedResource<NamespaceShape>;
    data = release(resource, asked(`flow-${many}`), now + many).change?.data ?? data;
  }
  expect(Object.keys(data.released)).toHaveLength(mostReleases);
  expect(data.released[`flow-${mostReleases + 19}`]).toBeDefined();
  expect(JSON.stringify(data).length).toBeLessThan(limits.jsonBytes / 2);
});

test("what was done and is undone by somebody else is done less and less often, up to every ten minutes", () => {
  const memory = new NamespaceMemory();
  const action = applyOf("a");
  const pauses: number[] = [];
  let at = now;
  for (let times = 0; times < 14; times++) {
    memory.done(action, at);
    const { due, nextAt } = memory.due([action], at);
    expect(due).toEqual([]);
    pauses.push((nextAt ?? 0) - at);
    at = nextAt ?? 0;
  }
  expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect(pauses.at(-1)).toBe(600_000);
});

test("what fails is tried every minute at least, and at once in its time when it has succeeded meanwhile", () => {
  const memory = new NamespaceMemory();
  const action = applyOf("a");
  const pauses = Array.from({ length: 30 }, () => memory.failed(action, 0, now));
  expect(Math.max(...pauses)).toBe(60_000);
  expect(memory.failed(action, 120_000, now)).toBe(120_000);
  memory.done(action, now);
  expect(memory.due([action], now).nextAt).toBe(now + 1_000);
});

test("who provisions and deprovisions again and again is not taken for somebody who fights", () => {
  const memory = new NamespaceMemory();
  const action = applyOf("a");
  for (let times = 0; times < 10; times++) memory.done(action, now);
  memory.forget(new Set(["b"]));
  expect(memory.due([action], now).due).toEqual([]);
  memory.forget(new Set(["a"]));
  expect(memory.due([action], now).due).toEqual([action]);
});

test("what a process knew of a namespace before another one followed it is forgotten", () => {
  const memories = new NamespaceMemories();
  const memory = memories.of("ns", now);
  memories.keep("ns", memory, now + hourMs);
  memories.keep("other", new NamespaceMemory(), now);
  expect(memories.of("ns", now + hourMs)).toBe(memory);
  expect(memories.of("ns", now + 2 * hourMs)).not.toBe(memory);
});

test("a clock that was set back by hours makes nothing wait for hours", () => {
  const memory = new NamespaceMemory();
  memory.done(applyOf("a"), now + hourMs);
  expect(memory.due([applyOf("a")], now).nextAt).toBe(now + 1_000);
  expect(retryAt({ times: 1, since: now + hourMs, lastAt: now + hourMs, message: "no" }, now)).toBe(now + 1_000);
  const told = { type: "SinkReady", status: "False", reason: "r", message: "m", since: now + hourMs } as const;
  const seen = { ...told, status: "True" } as const;
  const { dueAt } = settleConditions([told], [seen], new Map(), defaultFlowSettings, now, true);
  expect(dueAt).toBe(now + defaultFlowSettings.hysteresisMs);
  const broker = { ...absentBroker(0), state: "lingering", uid: "b", lingerUntil: now + 10 * hourMs } as const;
  const ready = { status: "True", reason: "Ready", message: "" } as const;
  const brokerSeen = { ...subscription, name: "default", namespace: "ns", uid: "b", epoch: "0", class: null };
  const stored = { data: { ...newNamespace("ns"), broker }, flows: new Map(), wires: new Map() };
  const pass = decidePass(stored, observed({ broker: { ...brokerSeen, ready, address: null } }), facts);
  expect(pass.dueAt).toBe(now + defaultFlowSettings.lingerMs);
});

test("a Broker that can never be ready is made anew, but not where Brokers are never to be deleted", () => {
  const sink = { type: "SinkReady", status: "False", reason: "NotReady", message: "", since: now - hourMs } as const;
  const flow = { application: "shop", service: "s", conditions: [sink] } as unknown as FlowRecord;
  const broker = { ...absentBroker(0), state: "present", uid: "b" } as const;
  const data = { ...newNamespace("ns"), holders: ["f"], applications: ["shop"], broker };
  const stored = { data, flows: new Map([["f", flow]]), wires: new Map() };
  const ready = { status: "False", reason: "NotReady", message: "" } as const;
  const seen = {
    ...subscription,
    name: "default",
    namespace: "ns",
    uid: "b",
    epoch: "0",
    spec: {},
    ready,
    address: null,
  };
  const looked = observed({ broker: { ...seen, class: defaultFlowSettings.brokerClass } });
  const broken = (deleteBroker: FlowSettings["deleteBroker"]) =>
    decidePass(stored, looked, { ...facts, settings: { ...defaultFlowSettings, mirror: false, deleteBroker } });
  expect(broken("whenUnused").actions).toMatchObject([{ kind: "remove", what: "broker" }]);
  expect(broken("never")).toMatchObject({ actions: [], after: { data: { broker: { state: "present" } } } });
});

test("while it is not known whether somebody has asked for no more repairs, nothing is repaired", () => {
  const told = (type: ConditionType, status: "True" | "False") => ({ type, status, reason: "", message: "", since: 0 });
  const well = (["Granted", "SourceReady", "SinkReady"] as const).map((type) => told(type, "True"));
  const flow = {
    ...{ application: "shop", service: "s", delivery: null, deliveryAt: 1, activatedAt: 1, since: 0 },
    conditions: [...well, told("SubscriptionReady", "False")],
  } as unknown as FlowRecord;
  const channel = {
    apiVersion: "v1",
    kind: "Channel",
    name: "shop",
    namespace: "integration",
    ready: subscription.ready,
  };
  const wire: WireRecord = { ...newWire("shop", "ns"), holders: ["f"], state: "present", uid: "u" };
  const broker = { ...absentBroker(0), state: "present", uid: "b" } as const;
  const data = { ...newNamespace("ns"), holders: ["f"], applications: ["shop"], broker };
  const stored = { data, flows: new Map([["f", flow]]), wires: new Map([["shop", wire]]) };
  const desired = subscriptionObject({ ...wire, namespace: "ns" }, channel as SeenChannel, null, defaultFlowSettings);
  const broken = {
    ...subscription,
    spec: desired.object.spec,
    ready: { ...subscription.ready, status: "False" },
  } as const;
  const sink = { ...subscription, name: "default", namespace: "ns", uid: "b", ours: false, class: null, epoch: null };
  const repaired = (kind: Observed["mirror"]["kind"]) =>
    decidePass(
      stored,
      observed({
        broker: { ...sink, address: null },
        applications: new Map([
          ["shop", { exists: true, granted: new Set(["s"]), channels: [channel as SeenChannel] }],
        ]),
        subscriptions: new Map([[broken.name, broken]]),
        mirror: { kind, seen: new Map() },
      }),
      facts,
    ).actions.some(({ kind: done, what }) => done === "remove" && what === "subscription");
  expect([repaired("here"), repaired("missing"), repaired("unknown")]).toEqual([true, true, false]);
});

test("a text is cut between characters, not within", () => {
  expect(text("ab😀", 3)).toBe("ab");
  expect(text("ab😀", 4)).toBe("ab😀");
});

test("a Broker that others use is looked at again and again, and nothing is written for that", () => {
  const broker = { ...absentBroker(0), state: "lingering", uid: "b", lingerUntil: now - hourMs } as const;
  const data = { ...newNamespace("ns"), broker, policyTrouble: null };
  const ready = { status: "True", reason: "Ready", message: "" } as const;
  const seen = { ...subscription, name: "default", namespace: "ns", uid: "b", epoch: "0", class: null };
  const looked = observed({ broker: { ...seen, ready, address: null } });
  const stored = { data, flows: new Map(), wires: new Map() };
  expect(decidePass(stored, looked, facts).asks).toBe(true);
  const used = { ...facts, evidence: { kind: "used", why: "Triggers use it: mine" } } as const;
  const first = decidePass(stored, looked, used);
  expect(first.after.data.broker.kept).toBe("Triggers use it: mine");
  const pass = decidePass(first.after, looked, used);
  expect(pass).toMatchObject({ change: null, actions: [], dueAt: now + defaultFlowSettings.lingerMs });
  const claimed = { ...first.after, data: { ...first.after.data, holders: ["f"] } };
  expect(decidePass(claimed, looked, facts).after.data.broker.kept).toBeUndefined();
});

test("a reason is as old as it is, also where the condition was not true for another one before", () => {
  const silent = { type: "SinkReady", status: "Unknown", reason: "ClusterSilent", message: "" } as const;
  const missing = { ...silent, reason: "KnativeMissing" } as const;
  const settle = (told: readonly Condition[], seen: RawCondition, at: number) =>
    settleConditions(told, [seen], new Map(), defaultFlowSettings, at, false).conditions;
  const first = settle([{ ...silent, since: now - hourMs }], missing, now);
  expect(first).toEqual([{ ...missing, since: now - hourMs, reasonSince: now }]);
  expect(settle(first, missing, now + 1_000)).toEqual(first);
  const ready = readyOf(first, { ...silent, type: "Ready", since: now - hourMs }, now);
  expect(ready).toMatchObject({ reason: "KnativeMissing", since: now - hourMs, reasonSince: now });
  expect(settle(first, { ...missing, status: "False" }, now + 2_000)).toEqual([
    { ...missing, status: "False", since: now + 2_000 },
  ]);
});

test("what the cluster refuses for long, and nobody waits for, is tried every ten minutes; sooner when somebody has it looked at", () => {
  const memory = new NamespaceMemory();
  const action = applyOf("a");
  const pauses = Array.from({ length: 30 }, () => memory.refused(action, now));
  expect(pauses.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
  expect(pauses.at(-1)).toBe(600_000);
  memory.end(now + 600_000);
  memory.begin(now + 30_000);
  expect(memory.due([action], now + 30_000).nextAt).toBe(now + 60_000);
  memory.end(now + 60_000);
  memory.begin(now + 60_000);
  expect(memory.due([action], now + 60_000).due).toEqual([action]);
});

test("policies that were made before are removed where none are wanted any more, and others are left alone", () => {
  const seen = { ...subscription, kind: kinds.authorizationPolicy.kind, name: "flow-p", namespace: "knative-eventing" };
  const broker = { ...absentBroker(0), state: "present", uid: "b" } as const;
  const data = { ...newNamespace("ns"), holders: ["f"], broker };
  const looked = observed({ policies: { kinds: "here", seen: [seen, { ...seen, name: "other", ours: false }] } });
  const { actions } = decidePass({ data, flows: new Map(), wires: new Map() }, looked, facts);
  const removals = actions.filter(({ what }) => what === "policy");
  expect(removals).toMatchObject([{ kind: "remove", place: { name: "flow-p" }, uid: "u", resourceVersion: "5" }]);
});
