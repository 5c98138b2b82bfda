import type { ListedOperation, TypedResource } from "@osbert/journal";
import fc from "fast-check";
import { expect, test } from "vitest";
import { propertySeed } from "../../../tools/property-seed.js";
import { claim, release } from "../src/flows/claims.js";
import { decidePass, type StoredNamespace } from "../src/flows/decide-pass.js";
import { subscriptionName } from "../src/flows/desired-objects.js";
import { type FlowRecord, type NamespaceShape, newNamespace, type WireRecord } from "../src/flows/flow-record.js";
import { defaultFlowSettings, type FlowSettings } from "../src/flows/flow-settings.js";
import type { Evidence } from "../src/flows/next-broker.js";
import type { Observed, SeenBroker, SeenSubscription } from "../src/flows/observed.js";
import type { Action } from "../src/flows/pass.js";

/**
 * Claims, releases, passes over the namespace and all that may come between them, in any order: kills between commit and effect, processes that are
 * frozen there and act late, copies of the cluster that lag, users who delete and make things. A cluster and a journal of values stand for the real
 * ones, which have tests of their own: here every schedule counts.
 */
class World {
  readonly settings: FlowSettings = { ...defaultFlowSettings, lingerMs: 10, mirror: false };
  now = 1_000_000;
  #version = 0;
  broker: SeenBroker | undefined;
  subscriptions = new Map<string, SeenSubscription>();
  hasTrigger = false;
  data: StoredNamespace["data"] | undefined;
  flows = new Map<string, FlowRecord>();
  wires = new Map<string, WireRecord>();
  /** What processes that are frozen have still to do. */
  readonly late: Action[] = [];
  readonly lateClaims: { readonly instance: number; readonly operation: number }[] = [];
  #operation = 0;
  /** By instance, what its last operation has asked for. */
  readonly asked = new Map<number, { readonly operation: number; readonly wanted: boolean }>();
  /** What copies that lag behind see: the oldest first. */
  #before: {
    readonly broker: SeenBroker | undefined;
    readonly subscriptions: ReadonlyMap<string, SeenSubscription>;
  }[] = [{ broker: undefined, subscriptions: new Map() }];

  remember(): void {
    this.#before = [...this.#before, { broker: this.broker, subscriptions: new Map(this.subscriptions) }].slice(-5);
  }

  nextOperation(): number {
    this.#operation += 1;
    return this.#operation;
  }

  claim(instance: number, operation: number): void {
    const asked = {
      ...placeOf(instance),
      operation,
      application: applicationOf(instance),
      service: "s",
      delivery: null,
    };
    this.#take(claim(this.#resource(), asked, this.now).change);
  }

  release(instance: number, operation: number): void {
    this.#take(release(this.#resource(), { ...placeOf(instance), operation }, this.now).change);
  }

  /** One look, which dies before its commit, or after so many of its actions; frozen, it does the rest some time later. */
  pass({ lags, diesAfter, freezes }: { lags: number; diesAfter: number; freezes: boolean }): { acted: boolean } {
    if (this.data === undefined) return { acted: false };
    const seen = (lags === 0 ? undefined : this.#before.at(-lags)) ?? this;
    const stored = { data: this.data, flows: this.flows, wires: this.wires };
    const facts = { settings: this.settings, now: this.now, pending: new Map() };
    const first = decidePass(stored, this.#observe(seen), facts);
    // The cluster itself is asked, not the copy.
    const pass = first.asks ? decidePass(stored, this.#observe(seen), { ...facts, evidence: this.#evidence() }) : first;
    if (diesAfter < 0) return { acted: true };
    // Who claims what is being deleted waits for the next one: but nothing begins to be deleted that is claimed.
    const begins = this.data.broker.state !== "deleting" && pass.after.data.broker.state === "deleting";
    if (begins) expect(this.data.holders, "a Broker that is claimed begins to be deleted").toEqual([]);
    this.#take(pass.change ?? undefined);
    for (const [at, action] of pass.actions.entries()) {
      if (at < diesAfter) this.act(action);
      else if (freezes) this.late.push(action);
    }
    return { acted: pass.change !== null || pass.actions.length > 0 };
  }

  act(action: Action): void {
    if (action.kind === "apply status" || action.kind === "clear") return;
    if (action.kind === "apply") {
      const { metadata, spec } = action.desired.object;
      const ready = { status: "True", reason: "Ready", message: "" } as const;
      const there = action.what === "broker" ? this.broker : this.subscriptions.get(metadata.name);
      if (action.over !== undefined && action.over !== (there?.uid ?? null)) return;
      if (action.what === "broker") {
        expect(this.broker?.ours ?? true, "a Broker of others is changed").toBe(true);
        const annotations = metadata.annotations ?? {};
        const epoch = annotations["events.osbert.io/epoch"] ?? null;
        if (this.broker?.epoch === epoch && this.broker.ours) return;
        const made = this.#made("default", "ns", this.broker?.uid);
        this.broker = { ...made, class: this.settings.brokerClass, epoch, spec: null, ready, address: null };
      }
      if (action.what === "subscription") {
        const before = this.subscriptions.get(metadata.name);
        this.subscriptions.set(metadata.name, {
          ...this.#made(metadata.name, "integration", before?.uid),
          spec,
          ready,
        });
      }
      return;
    }
    const { name } = action.place;
    const there = action.what === "broker" ? this.broker : this.subscriptions.get(name);
    if (there === undefined || there.uid !== action.uid || there.resourceVersion !== action.resourceVersion) return;
    if (action.what === "broker") {
      expect(there.ours, "a Broker of others is deleted").toBe(true);
      expect(this.data?.broker.state, "a Broker that is in use is deleted, by who comes late").not.toBe("present");
      this.broker = undefined;
    } else this.subscriptions.delete(name);
  }

  userMakesBroker(): void {
    if (this.broker !== undefined) return;
    const made = { ...this.#made("default", "ns"), ours: false };
    const ready = { status: "True", reason: "Ready", message: "" } as const;
    this.broker = { ...made, class: null, epoch: null, spec: null, ready, address: null };
  }

  #made(name: string, namespace: string, uid?: string): Omit<SeenSubscription, "spec" | "ready"> {
    this.#version += 1;
    const version = String(this.#version);
    return { name, namespace, uid: uid ?? `uid-${version}`, resourceVersion: version, ours: true, deleting: false };
  }

  #evidence(): Evidence {
    if (this.broker === undefined) return { kind: "gone" };
    if (this.hasTrigger) return { kind: "used", why: "a Trigger" };
    return { kind: "unused", uid: this.broker.uid, resourceVersion: this.broker.resourceVersion };
  }

  #observe(seen: {
    readonly broker: SeenBroker | undefined;
    readonly subscriptions: ReadonlyMap<string, SeenSubscription>;
  }): Observed {
    const ready = { status: "True", reason: "Ready", message: "" } as const;
    const channel = (name: string) => ({
      ...{ name, namespace: "integration", uid: name, resourceVersion: "1", ours: false, deleting: false },
      ...{ apiVersion: "messaging.knative.dev/v1", kind: "Channel", application: name, ready },
    });
    const application = (name: string) => ({ exists: true, granted: new Set(["s"]), channels: [channel(name)] });
    return {
      ...{ behind: null, namespace: "active", knative: "here", broker: seen.broker, subscriptions: seen.subscriptions },
      applications: new Map(["a", "b"].map((name) => [name, application(name)])),
      policies: { kinds: "missing", seen: [] },
      mirror: { kind: "missing", seen: new Map() },
    };
  }

  #resource(): TypedResource<NamespaceShape> | undefined {
    if (this.data === undefined) return undefined;
    const parts = new Map<string, unknown>([
      ...[...this.flows].map(([id, flow]) => [`flow/${id}`, flow] as const),
      ...[...this.wires].map(([id, wire]) => [`wire/${id}`, wire] as const),
    ]);
    const open: readonly ListedOperation[] = [];
    return { data: this.data, parts, open } as unknown as TypedResource<NamespaceShape>;
  }

  #take(change: { readonly data?: StoredNamespace["data"]; readonly parts?: object } | undefined): void {
    if (change === undefined) return;
    this.data = change.data ?? this.data ?? newNamespace("ns");
    for (const [id, value] of Object.entries(change.parts ?? {})) {
      const [prefix, name = ""] = id.split("/");
      const kept = (prefix === "flow" ? this.flows : this.wires) as Map<string, unknown>;
      if (value === null) kept.delete(name);
      else kept.set(name, value);
    }
  }
}

function placeOf(instance: number) {
  return { flow: `f${instance}`, namespace: "ns", platform: "ns", instance: `i${instance}` };
}

/** Two instances share one. */
function applicationOf(instance: number): string {
  return instance < 2 ? "a" : "b";
}

const wholePass = { do: "pass", lags: 0, diesAfter: 100, freezes: false } as const;
const anyPass = fc.record({
  do: fc.constant("pass" as const),
  lags: fc.nat(5),
  diesAfter: fc.integer({ min: -1, max: 3 }),
  freezes: fc.boolean(),
});

/** Deletions and what comes after them are rare among steps by chance: so time passes often, and half of the looks go well. */
const steps = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("claim" as const), instance: fc.nat(2), freezes: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("release" as const), instance: fc.nat(2) }) },
  { weight: 6, arbitrary: anyPass },
  { weight: 6, arbitrary: fc.constant(wholePass) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("late" as const), which: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("time" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("user deletes" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("user makes" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("trigger" as const), there: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("clock" as const), byMs: fc.integer({ min: -500, max: 500 }) }) },
);

function play(world: World, story: readonly (typeof steps extends fc.Arbitrary<infer Step> ? Step : never)[]): void {
  for (const step of story) {
    if (step.do === "claim") {
      const operation = world.nextOperation();
      world.asked.set(step.instance, { operation, wanted: true });
      if (step.freezes) world.lateClaims.push({ instance: step.instance, operation });
      else world.claim(step.instance, operation);
    } else if (step.do === "release") {
      const operation = world.nextOperation();
      world.asked.set(step.instance, { operation, wanted: false });
      world.release(step.instance, operation);
    } else if (step.do === "pass") {
      world.pass(step);
      world.remember();
    } else if (step.do === "late") {
      const action = world.late.splice(step.which % Math.max(1, world.late.length), 1)[0];
      if (action !== undefined) world.act(action);
      const claimed = world.lateClaims.splice(step.which % Math.max(1, world.lateClaims.length), 1)[0];
      if (claimed !== undefined) world.claim(claimed.instance, claimed.operation);
    } else if (step.do === "time") world.now += 100;
    else if (step.do === "clock") world.now += step.byMs;
    else if (step.do === "user deletes") world.broker = undefined;
    else if (step.do === "user makes") world.userMakesBroker();
    else world.hasTrigger = step.there;
  }
  // Whatever was frozen wakes up; then nothing happens any more but looks.
  for (const action of world.late.splice(0)) world.act(action);
  for (const { instance, operation } of world.lateClaims.splice(0)) world.claim(instance, operation);
  for (let looks = 0; looks < 30; looks++) {
    world.now += 120_000;
    world.remember();
    world.pass({ lags: 0, diesAfter: Number.POSITIVE_INFINITY, freezes: false });
  }
}

test("#6342: whatever comes between, who claims has a Broker and one Subscription, and what nobody claims is gone", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 60, size: "max" }), (story) => {
      const world = new World();
      play(world, story);
      const wanted = [...world.asked].filter(([, asked]) => asked.wanted).map(([instance]) => instance);
      expect([...world.flows.keys()].sort()).toEqual(wanted.map((instance) => `f${instance}`).sort());
      if (wanted.length > 0) expect(world.broker, "a claim without a Broker").toBeDefined();
      const names = new Set(wanted.map((instance) => subscriptionName(applicationOf(instance), "ns")));
      expect(new Set(world.subscriptions.keys())).toEqual(names);
      if (wanted.length === 0 && !world.hasTrigger && world.data !== undefined) {
        expect(world.broker?.ours ?? false, "a Broker is left that nobody needs").toBe(false);
      }
      expect(world.pass({ lags: 0, diesAfter: 100, freezes: false }).acted, "it does not come to rest").toBe(false);
    }),
    { numRuns: Number(process.env.OSBERT_MODEL_RUNS ?? 1_000), ...propertySeed() },
  );
}, 600_000);
