import type { Journal, Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import { until } from "../../../tools/until.js";
import { applicationKinds } from "../src/applications/application-kinds.js";
import { catalogKey } from "../src/applications/catalog-records.js";
import { ClusterError } from "../src/cluster/cluster-error.js";
import { claim, release } from "../src/flows/claims.js";
import { namespaceLabel, ownLabels, subscriptionName } from "../src/flows/desired-objects.js";
import { flowPart, namespaceKey, namespaceResource } from "../src/flows/flow-record.js";
import type { FlowSettings } from "../src/flows/flow-settings.js";
import { defaultFlowSettings, kinds } from "../src/flows/flow-settings.js";
import { createWiring } from "../src/wiring/create-wiring.js";
import { startEventBroker } from "./event-broker.js";
import { MemoryKnative } from "./memory-knative.js";

const { osbert } = applicationKinds;
const integration = defaultFlowSettings.integrationNamespace;
const api = { name: "orders", gatewayUrl: "http://gateway.example" };

interface Started {
  readonly world?: MemoryKnative;
  readonly settings?: Partial<FlowSettings>;
  readonly store?: Store;
  readonly service?: object;
}

/** A broker whose namespace `shop` was granted the application `commerce`, with its service `sales` of events and an API. */
async function start({
  world = new MemoryKnative(),
  settings = {},
  store = memoryStore(),
  service = {},
}: Started = {}) {
  world.put(kinds.namespace, { name: "shop" });
  world.put(
    osbert.applications,
    { name: "commerce", generation: 1 },
    { spec: { services: [{ id: "sales", name: "sales", events: true, apis: [api], ...service }] } },
  );
  world.put(osbert.grants, { name: "sales", namespace: "shop", generation: 1 }, { spec: { application: "commerce" } });
  world.put(
    defaultFlowSettings.channelKind,
    { name: "commerce", namespace: integration, labels: { "application-name": "commerce" } },
    { status: { conditions: [{ type: "Ready", status: "True" }] } },
  );
  const { cluster } = world;
  const wiring = createWiring({ cluster, settings: { lingerMs: 50, mirror: false, ...settings } });
  const broker = await startEventBroker({ cluster, wiring, store });
  await until("the catalog is known", async () => (await broker.plans("shop")).length === 3);
  const path = "/shop/v2/service_instances/one";
  const ended = async () => {
    let last: { state: string; description?: string } = { state: "" };
    await until("the operation to end", async () => {
      last = (await broker.ask("GET", `${path}/last_operation`)).body;
      return last.state !== "in progress";
    });
    return last;
  };
  const change = async (method: "PUT" | "PATCH", plan: string, parameters?: object) => {
    const body = { service_id: "sales", plan_id: `sales-${plan}`, organization_guid: "o", space_guid: "s", parameters };
    const { status, body: answer } = await broker.ask(method, `${path}?accepts_incomplete=true`, { body });
    expect(`${status} ${JSON.stringify(answer)}`).toMatch(/^202/);
    return ended();
  };
  const stored = async () => namespaceResource.resource(await broker.broker.journal.read(namespaceKey("shop")))?.data;
  const remove = async () => {
    const query = new URLSearchParams({ service_id: "sales", plan_id: "sales-events", accepts_incomplete: "true" });
    expect((await broker.ask("DELETE", `${path}?${query}`)).status).toBe(202);
  };
  const subscription = () => world.all(kinds.subscription)[0] as { spec: { delivery?: object } } | undefined;
  return { ...broker, world, path, ended, change, remove, stored, subscription };
}

test("an update that says nothing of the delivery leaves it as it was", async () => {
  const { change, subscription } = await start();
  expect(await change("PUT", "events", { delivery: { retry: 5 } })).toMatchObject({ state: "succeeded" });
  expect(await change("PATCH", "all")).toMatchObject({ state: "succeeded" });
  expect(subscription()?.spec.delivery).toEqual({ retry: 5 });
  expect(await change("PATCH", "all", { delivery: {} })).toMatchObject({ state: "succeeded" });
  expect(subscription()?.spec.delivery ?? {}).toEqual({});
});

test("a change to a plan with events that fails leaves an instance without events without a flow", async () => {
  const { change, stored, world } = await start();
  expect(await change("PUT", "api")).toMatchObject({ state: "succeeded" });
  world.fails = (verb, kind) =>
    verb === "apply" && kind === kinds.subscription ? new ClusterError("invalid", "not so") : undefined;
  expect(await change("PATCH", "events", { delivery: { retry: 5 } })).toMatchObject({ state: "failed" });
  expect((await stored())?.holders).toEqual([]);
});

test("a Broker of which cannot be found out whether others use it stays, and holds up nothing else", async () => {
  const { change, remove, ended, stored, broker, world } = await start();
  expect(await change("PUT", "events")).toMatchObject({ state: "succeeded" });
  world.fails = (verb, kind) => {
    if (verb === "list" && kind === kinds.trigger) return new ClusterError("forbidden");
    return verb === "remove" && kind === kinds.subscription ? new ClusterError("unavailable") : undefined;
  };
  await remove();
  await until("the Triggers to be asked for", async () => world.calls.includes("list triggers"));
  world.fails = (verb, kind) => (verb === "list" && kind === kinds.trigger ? new ClusterError("forbidden") : undefined);
  expect(await ended()).toMatchObject({ state: "succeeded" });
  const [follow] = (await broker.journal.read(namespaceKey("shop")))?.open ?? [];
  expect(follow?.failures).toBe(0);
  expect((await stored())?.broker.state).toBe("lingering");
});

test("what an application's own schema lets through is no delivery unless it is one", async () => {
  const { change, subscription } = await start({ service: { parameters: { type: "object" } } });
  const delivery = { retry: 1_000_000_000, deadLetterSink: { uri: "http://other.example" }, carrier: "express" };
  expect(await change("PUT", "events", { delivery })).toMatchObject({ state: "succeeded" });
  expect(subscription()?.spec.delivery).toBeUndefined();
  expect(await change("PATCH", "events", { delivery: { retry: 3 } })).toMatchObject({ state: "succeeded" });
  expect(subscription()?.spec.delivery).toEqual({ retry: 3 });
});

test("policies that were made before go when none are wanted any more; without the right to look for them flows are well", async () => {
  const store = memoryStore();
  const first = await start({ store, settings: { policies: "required" } });
  expect(await first.change("PUT", "events")).toMatchObject({ state: "succeeded" });
  expect(first.world.all(kinds.authorizationPolicy)).toHaveLength(1);
  const foreign = { name: "allow-others", namespace: "knative-eventing" };
  first.world.put(kinds.authorizationPolicy, foreign);
  await first.stop();
  const { world, stop } = await start({ world: first.world, store });
  await until("ours to go", async () => world.all(kinds.authorizationPolicy).length === 1);
  expect(world.get(kinds.authorizationPolicy, foreign)).toBeDefined();
  await stop();
  world.state = (kind) => (kind.group === "security.istio.io" ? "forbidden" : "current");
  const third = await start({ world, store: memoryStore() });
  expect(await third.change("PUT", "events")).toMatchObject({ state: "succeeded" });
});

test("a moment without Knative after the cluster was silent for long fails no provision that waits", async () => {
  const appearMs = 1_500;
  const { ask, world, path, ended } = await start({ settings: { appearMs } });
  world.state = (kind) => (kind === kinds.broker ? "behind" : "current");
  const body = { service_id: "sales", plan_id: "sales-events", organization_guid: "o", space_guid: "s" };
  expect((await ask("PUT", `${path}?accepts_incomplete=true`, { body })).status).toBe(202);
  const sink = async () => {
    const { flows = [] } = (await ask("GET", "/admin/v1/events/namespaces/shop")).body;
    return flows[0]?.conditions.find(({ type }: { type: string }) => type === "SinkReady");
  };
  const isFor = (reason: string) =>
    until(`the reason ${reason}`, async () => {
      await ask("POST", "/admin/v1/events/namespaces/shop/look", { body: { reason: "test" } });
      return (await sink())?.reason === reason;
    });
  await isFor("ClusterSilent");
  await until("that to be so for long", async () => Date.now() - Date.parse((await sink()).since) > appearMs);
  world.state = (kind) => (kind === kinds.broker ? "no such kind" : "current");
  await isFor("KnativeMissing");
  world.state = () => "current";
  await isFor("Ready");
  expect(await ended()).toMatchObject({ state: "succeeded" });
});

test("a Broker that the cluster refuses for ever is tried less and less often, and nothing is written for that", async () => {
  const settings = { refusedMs: 300, softDeadlineMs: 300, debounceMs: 0, hysteresisMs: 0 };
  const { change, world, broker } = await start({ settings });
  expect(await change("PUT", "events")).toMatchObject({ state: "succeeded" });
  world.fails = (verb, kind) =>
    verb === "apply" && kind === kinds.broker ? new ClusterError("forbidden", "exceeded quota") : undefined;
  world.calls.length = 0;
  world.delete(kinds.broker, { namespace: "shop", name: "default" });
  const tried = (times: number) =>
    until("tries", async () => world.calls.filter((call) => call === "apply brokers").length >= times);
  await tried(3);
  const seq = async () => (await broker.journal.read(namespaceKey("shop")))?.seq;
  const before = await seq();
  await tried(4);
  expect(await seq()).toBe(before);
});

test("a Broker that is kept for the Triggers of others says so, until a flow needs it again", async () => {
  const { change, remove, ended, ask, world } = await start();
  expect(await change("PUT", "events")).toMatchObject({ state: "succeeded" });
  for (const name of ["mine", "yours", "hers", "his"])
    world.put(kinds.trigger, { name, namespace: "shop" }, { spec: { broker: "default" } });
  await remove();
  expect(await ended()).toMatchObject({ state: "succeeded" });
  const kept = async () => (await ask("GET", "/admin/v1/events/namespaces/shop")).body.kept_because;
  await until("it to be kept", async () => (await kept()) === "Triggers use it: hers, mine, yours and others");
  expect(await change("PUT", "events")).toMatchObject({ state: "succeeded" });
  expect(await kept()).toBeNull();
});

test("flows and their history have the names of what they tell by an id", async () => {
  const { ask, path, ended } = await start({ service: { name: "sales-of-today" } });
  const context = { platform: "kubernetes", instance_name: "my sales" };
  const body = { service_id: "sales", plan_id: "sales-events", organization_guid: "o", space_guid: "s", context };
  expect((await ask("PUT", `${path}?accepts_incomplete=true`, { body })).status).toBe(202);
  expect(await ended()).toMatchObject({ state: "succeeded" });
  const names = { instance: "one", instance_name: "my sales", service: "sales", service_name: "sales-of-today" };
  const { flows } = (await ask("GET", "/admin/v1/events/namespaces/shop")).body;
  expect(flows).toMatchObject([{ ...names, application: "commerce" }]);
  const { items } = (await ask("GET", "/admin/v1/events/namespaces/shop/history")).body;
  const ofFlow = items.filter(({ kind }: { kind: string }) => kind.startsWith("flow-"));
  expect(ofFlow.length).toBeGreaterThan(1);
  for (const { what } of ofFlow) expect(what).toMatchObject({ ...names, application: "commerce" });
});

const dayMs = 24 * 60 * 60 * 1_000;

/** A store whose clock can be put forward, for the next process. */
function storeInTime() {
  const time = { aheadMs: 0 };
  return { time, store: memoryStore({ clock: () => Date.now() + time.aheadMs }) };
}

test("whoever follows a namespace or the applications is relieved every day, so that what was noted can go some time", async () => {
  const { time, store } = storeInTime();
  const { change, stop, world } = await start({ store });
  expect(await change("PUT", "events")).toMatchObject({ state: "succeeded" });
  await stop();
  time.aheadMs = 2 * dayMs;
  const { broker, stored } = await start({ world, store });
  for (const key of [namespaceKey("shop"), catalogKey])
    await until("another operation to follow", async () => {
      const kindsOf = (await broker.journal.entries(key, { after: 0, limit: 1_000 })).map(({ kind }) => kind);
      return kindsOf.filter((kind) => kind === "accepted").length === 2 && kindsOf.includes("settled");
    });
  expect((await stored())?.broker.state).toBe("present");
  expect((await broker.journal.read(namespaceKey("shop")))?.open).toHaveLength(1);
});

test("the flow of an instance that an operator has purged goes, within a day", async () => {
  const { time, store } = storeInTime();
  const first = await start({ store });
  expect(await first.change("PUT", "events")).toMatchObject({ state: "succeeded" });
  const by = { operator: "anna", reason: "it is stuck", requestId: null };
  await first.broker.operator.purge({ platform: "shop", instance: "one" }, by);
  await first.stop();
  time.aheadMs = 2 * dayMs;
  const { stored, world } = await start({ world: first.world, store });
  await until("the flow to be released", async () => (await stored())?.holders.length === 0);
  await until("the Subscription to go", async () => world.all(kinds.subscription).length === 0);
});

test("a namespace where all is over is not looked at because of news", async () => {
  const { time, store } = storeInTime();
  const first = await start({ store, settings: { deleteBroker: "never" } });
  expect(await first.change("PUT", "events")).toMatchObject({ state: "succeeded" });
  await first.remove();
  await first.ended();
  await first.stop();
  time.aheadMs = 2 * dayMs;
  const { world } = first;
  const second = await start({ world, store, settings: { deleteBroker: "never" } });
  const shop = async () => second.broker.journal.read(namespaceKey("shop"));
  await until("all to be over", async () => (await shop())?.open.length === 0);
  const { seq } = (await shop()) ?? {};
  world.put(kinds.namespace, { name: "shop" });
  // Its news come after those of the other.
  await letGoOf(second.broker.journal, "stray");
  putWire(world, "stray");
  await until("the stray to go", async () => world.all(kinds.subscription).length === 0);
  expect((await shop())?.seq).toBe(seq);
});

test("objects of ours in a namespace that the store has never known are left alone: it may be a wrong store, or an old copy", async () => {
  const { world, broker } = await start({ settings: { lingerMs: 0 } });
  putWire(world, "unknown");
  await letGoOf(broker.journal, "stray");
  putWire(world, "stray");
  await until("the one that was let go of here to go", async () => world.all(kinds.subscription).length === 1);
  expect(await broker.journal.read(namespaceKey("unknown"))).toBeUndefined();
  expect(world.all(kinds.broker).map(({ metadata }) => metadata.namespace)).toContain("unknown");
});

/** An instance had the events of the application there, and has let go of them. */
async function letGoOf(journal: Journal, namespace: string): Promise<void> {
  const flow = { flow: "flow-1", namespace, platform: namespace, instance: "i" };
  const wanted = { application: "commerce", service: "sales", delivery: null };
  const decide = [
    namespaceResource.decide((resource, now) => claim(resource, { ...flow, ...wanted, operation: 1 }, now)),
    namespaceResource.decide((resource, now) => release(resource, { ...flow, operation: 2 }, now)),
  ];
  for (const each of decide) {
    const by = { actor: { type: "system", subject: "test" } } as const;
    await journal.transact<unknown>(namespaceKey(namespace), each, { by, parts: [flowPart(flow.flow)] });
  }
}

/** What a process that came late, or another store, has made for a namespace. */
function putWire(world: MemoryKnative, namespace: string): void {
  world.put(kinds.namespace, { name: namespace });
  world.put(kinds.broker, { name: "default", namespace, labels: ownLabels(defaultFlowSettings) });
  world.put(kinds.subscription, {
    ...{ name: subscriptionName("commerce", namespace), namespace: integration },
    labels: { ...ownLabels(defaultFlowSettings), [namespaceLabel]: namespace },
  });
}
