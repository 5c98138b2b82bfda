import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Journal, openJournal, type Store } from "@osbert/journal";
import { encryptedStore, newKey, parseKeyRing } from "@osbert/journal/encryption";
import { memoryStore } from "@osbert/journal/memory";
import { sqliteStore } from "@osbert/journal/sqlite";
import { interposedStore } from "@osbert/journal/testing";
import { generate } from "selfsigned";
import { expect, onTestFinished, test, vi } from "vitest";
import { type OpenedBrokers, openBrokers } from "../src/brokers/open-brokers.js";
import { brokerRecords } from "../src/records/broker-record.js";
import { instanceLabels } from "../src/records/instance-labels.js";
import type { InstanceData } from "../src/records/instance-record.js";
import { brokerLane, keys } from "../src/records/keys.js";
import { type OrphanData, orphanLabels } from "../src/records/orphan-record.js";
import { type CatalogServer, catalogOf, catalogServer } from "./catalog-server.js";

const asking = { by: { actor: { type: "operator", subject: "olga" } } } as const;
const waiting = { timeout: 20_000, interval: 10 };

interface Process extends OpenedBrokers {
  readonly journal: Journal;
  /** Sends something to a broker, in its lane, as the platform's operations do. Answers the operation's key. */
  send(broker: string): Promise<string>;
  readonly sent: string[];
  stop(): Promise<void>;
}

/** One process of a platform that has brokers, and operations that send each of them a request. */
async function startProcess(
  store: Store = memoryStore(),
  { runs = true, ...options }: { leaseMs?: number; runs?: boolean } = {},
): Promise<Process> {
  let journal: Journal | undefined;
  const opened = () => journal as Journal;
  const brokers = openBrokers({ journal: opened });
  const sent: string[] = [];
  const call = {
    lane: (input: unknown) => brokerLane(String(input)),
    deadlineMs: null,
    run: async (operation: { readonly input: unknown; readonly key: string }) => {
      const broker = String(operation.input);
      const body = { service_id: "s", plan_id: "p", organization_guid: "o", space_guid: "s" };
      try {
        await brokers.port.client(broker)?.provision("i", body);
        brokers.port.saw(broker, "done", null);
      } catch (error) {
        brokers.port.saw(broker, "unknown", String(error));
        throw error;
      }
      sent.push(operation.key);
      return null;
    },
    backoff: { firstMs: 10, factor: 1, longestMs: 10 },
  };
  journal = await openJournal({ store, kinds: { ...brokers.kinds, call }, ...options });
  await brokers.open();
  if (runs) await journal.start();
  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    brokers.close();
    await opened().stop({ drainMs: 0 });
  };
  onTestFinished(stop);
  let calls = 0;
  const send = async (broker: string) => {
    const key = `call/${broker}/${++calls}`;
    await opened().transact(
      key,
      () => ({ result: null, change: { accept: [{ kind: "call", input: broker }] } }),
      asking,
    );
    return key;
  };
  return { ...brokers, journal, send, sent, stop };
}

function at({ url }: CatalogServer, more: object = {}) {
  return { url, authentication: { kind: "none" } as const, limits: { timeoutMs: 300 }, ...more };
}

/** An instance, as far as brokers know of it. */
async function putInstance(journal: Journal, name: string, broker: string, plan?: string): Promise<void> {
  const applied = plan === undefined ? null : { plan: { id: plan, name: plan }, parameters: null, maintenance: null };
  const data = { broker, phase: "ready", applied, revision: 1, changes: [] } as unknown as InstanceData;
  const change = { data: data as never, labels: instanceLabels(data) };
  await journal.transact(keys.instance("space", name), () => ({ result: null, change }), asking);
}

async function putOrphan(
  journal: Journal,
  key: string,
  { broker, state }: Pick<OrphanData, "broker" | "state">,
): Promise<void> {
  const endedAt = state === "dismissed" ? journal.now() : null;
  const data = { broker, space: "space", state, endedAt } as unknown as OrphanData;
  const change = { data: data as never, labels: orphanLabels(data) };
  await journal.transact(key, () => ({ result: null, change }), asking);
}

/** A certificate of its own authority. */
async function certified(name: string): Promise<{ readonly certificate: string; readonly key: string }> {
  const altName = /^[0-9.]+$/.test(name) ? ({ type: 7, ip: name } as const) : ({ type: 2, value: name } as const);
  const made = await generate([{ name: "commonName", value: name }], {
    extensions: [{ name: "subjectAltName", altNames: [altName] }],
  });
  return { certificate: made.cert, key: made.private };
}

test("a registered broker's catalog is read before anybody is told that it is registered", async () => {
  const server = await catalogServer();
  const { brokers, port } = await startProcess();
  const view = await brokers.register("acme", at(server), asking);
  expect(view).toMatchObject({
    ...{ name: "acme", authentication: "none", registeredBy: "olga", waiting: false },
    ...{ health: { state: "ok" }, catalog: { revision: 1, fault: null, offerings: 1 } },
  });
  expect(port.plan("acme", "postgres-id", "postgres-large-id")?.name).toBe("large");
  expect(brokers.offerings().map(({ offering }) => offering.name)).toEqual(["postgres"]);
  expect(await brokers.list()).toHaveLength(1);
  await expect(brokers.register("acme", at(server), asking)).rejects.toMatchObject({ code: "exists" });
});

test("registrations that make no sense are refused, and no refusal repeats a secret", async () => {
  const { brokers } = await startProcess();
  const url = "http://127.0.0.1:1";
  const none = { kind: "none" } as const;
  const wrong = [
    ["a/b", { url, authentication: none }],
    ["a", { url: "ftp://127.0.0.1", authentication: none }],
    ["a", { url: "http://user:s3cret@127.0.0.1", authentication: none }],
    ["a", { url: `${url}?token=s3cret`, authentication: none }],
    ["a", { url, authentication: { kind: "basic", username: "a:b", password: "s3cret" } }],
    ["a", { url, authentication: { kind: "bearer", token: "s3cret\r\nx: y" } }],
    ["a", { url, authentication: none, ca: "s3cret" }],
    ["a", { url, authentication: none, clientCertificate: { certificate: "x", key: "s3cret" } }],
    ["a", { url, authentication: none, limits: { inFlight: 0 } }],
    ["a", { url, authentication: none, relistMs: 1 }],
  ] as const;
  for (const [name, wanted] of wrong) {
    const refused = await brokers.register(name, wanted as never, asking).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "invalid" });
    expect(String(refused)).not.toContain("s3cret");
  }
});

test("offerings are found by name and by id, at one broker or at all, also when they have left the catalog", async () => {
  const server = await catalogServer({ catalog: catalogOf({ postgres: ["small"], redis: ["tiny"] }) });
  const { brokers } = await startProcess();
  await brokers.register("acme", at(server), asking);
  await brokers.register("twin", at(server), asking);
  const called = (idOrName: string, broker?: string) =>
    brokers.offeringsCalled(idOrName, broker).map((one) => `${one.broker} ${one.offering.name}`);
  expect(called("redis")).toEqual(["acme redis", "twin redis"]);
  expect(called("redis-id", "twin")).toEqual(["twin redis"]);
  expect(called("mysql")).toEqual([]);
  expect(called("redis", "nobody")).toEqual([]);
  server.catalog = catalogOf({ postgres: ["small"] });
  await brokers.relist("acme", asking);
  expect(brokers.offeringsCalled("redis", "acme")).toMatchObject([{ leftAt: expect.any(Number) }]);
});

test("P-CAT-06: a catalog that is the same is not sent again, and one on demand is read at once", async () => {
  const server = await catalogServer({ etag: '"one"' });
  const { brokers } = await startProcess();
  await brokers.register("acme", at(server), asking);
  const view = await brokers.relist("acme", asking);
  expect(server.seen.at(-1)?.headers["if-none-match"]).toBe('"one"');
  expect(view.catalog).toMatchObject({ revision: 1, fault: null });
  Object.assign(server, { etag: '"two"', catalog: catalogOf({ postgres: ["small"], redis: ["tiny"] }) });
  expect((await brokers.relist("acme", asking)).catalog).toMatchObject({ revision: 2, offerings: 2 });
});

test("the tag of a catalog that was on its way when the address was changed is not shown to the new one", async () => {
  const old = await catalogServer({ etag: '"0"' });
  const moved = await catalogServer({ etag: '"1"', catalog: catalogOf({ redis: ["tiny"] }) });
  const { brokers } = await startProcess();
  await brokers.register("acme", at(old, { limits: { timeoutMs: 5_000 } }), asking);
  let answer: (() => void) | undefined;
  old.delayed = (send) => {
    answer = send;
  };
  const relisted = brokers.relist("acme", asking);
  await vi.waitFor(() => expect(answer).toBeDefined(), waiting);
  const changed = brokers.change("acme", { url: moved.url }, asking);
  await vi.waitFor(async () => expect((await brokers.read("acme"))?.url).toBe(moved.url), waiting);
  old.etag = '"1"';
  answer?.();
  await relisted;
  expect((await changed).catalog).toMatchObject({ fault: null, offerings: 1 });
  expect(brokers.offerings("acme").find(({ leftAt }) => leftAt === null)?.offering.name).toBe("redis");
});

test("P-CAT-02: what left the catalog is marked and stays, and is as before when it comes back", async () => {
  const server = await catalogServer();
  const { brokers, port } = await startProcess();
  await brokers.register("acme", at(server), asking);
  server.catalog = catalogOf({ postgres: ["small"], redis: ["tiny"] });
  await brokers.relist("acme", asking);
  expect(port.offering("acme", "postgres-id")).toMatchObject({ leftAt: null });
  expect(Object.keys(port.offering("acme", "postgres-id")?.plansLeft ?? {})).toEqual(["postgres-large-id"]);
  server.catalog = catalogOf({ redis: ["tiny"] });
  await brokers.relist("acme", asking);
  expect(port.offering("acme", "postgres-id")?.leftAt).toEqual(expect.any(Number));
  expect(port.plan("acme", "postgres-id", "postgres-small-id")?.name).toBe("small");
  server.catalog = catalogOf({ postgres: ["small", "large"], redis: ["tiny"] });
  await brokers.relist("acme", asking);
  expect(port.offering("acme", "postgres-id")).toMatchObject({ leftAt: null, plansLeft: {} });
});

/** Two megabytes of plans that it has not had before. */
function renamedPlans(round: number) {
  const catalog = catalogOf({ a: Array.from({ length: 100 }, (_, at) => `round${round}-${at}`) });
  for (const plan of (catalog.services[0] as { plans: object[] }).plans)
    Object.assign(plan, { metadata: { text: "x".repeat(20_000) } });
  return catalog;
}

async function keptBytes(journal: Journal): Promise<number> {
  const { items } = await journal.parts(keys.broker("acme"), "page/", { limit: 1_000 });
  return JSON.stringify(items).length;
}

test("P-CAT-02: a broker that renames its plans for ever does not grow the platform's record for ever; what has instances stays", async () => {
  const server = await catalogServer();
  const { brokers, port, journal } = await startProcess();
  server.catalog = renamedPlans(0);
  await brokers.register("acme", at(server, { limits: { timeoutMs: 5_000 } }), asking);
  await putInstance(journal, "db", "acme", "a-round0-7-id");
  await putInstance(journal, "of-another", "other", "a-round0-8-id");
  const bytes: number[] = [];
  for (let round = 1; round <= 10; round++) {
    server.catalog = renamedPlans(round);
    expect((await brokers.relist("acme", asking)).catalog).toMatchObject({ revision: round + 1, fault: null });
    bytes.push(await keptBytes(journal));
  }
  expect(Math.max(...bytes)).toBeLessThan(11_000_000);
  expect(port.plan("acme", "a-id", "a-round0-7-id")).toMatchObject({ name: "round0-7" });
  expect(port.plan("acme", "a-id", "a-round0-8-id")).toBeUndefined();
  expect(port.plan("acme", "a-id", "a-round10-99-id")).toBeDefined();
  // What left last is there as long as there is room for it: most of it comes back.
  server.catalog = renamedPlans(9);
  await brokers.relist("acme", asking);
  expect(port.plan("acme", "a-id", "a-round10-99-id")).toBeDefined();
});

function withSchemaOf(bytes: number) {
  const catalog = catalogOf({ a: ["p"] });
  const parameters = { $schema: "http://json-schema.org/draft-07/schema#", title: "x".repeat(bytes) };
  const plan = (catalog.services[0] as { plans: object[] }).plans[0] ?? {};
  Object.assign(plan, { schemas: { service_instance: { create: { parameters } } } });
  return catalog;
}

test("G16: a broken catalog keeps the old one, and the fault is told", async () => {
  const server = await catalogServer();
  const { brokers, port } = await startProcess();
  await brokers.register("acme", at(server), asking);
  const deep = `{"services":[{"id":"x","name":"x","description":"x","bindable":true,"metadata":{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}},"plans":[{"id":"y","name":"y","description":"y"}]}]}`;
  const broken: readonly (readonly [catalog: unknown, fault: RegExp])[] = [
    [{ services: [{ id: "x" }] }, /services\[0\]\.name is missing/],
    ["no json", /without a JSON object/],
    [{ services: [...catalogOf({ a: ["p"] }).services, ...catalogOf({ a: ["p"] }).services] }, /is used by/],
    [deep, /nested too deep/],
    [withSchemaOf(65_537), /must have at most 65536 bytes/],
  ];
  for (const [catalog, fault] of broken) {
    server.catalog = catalog;
    expect(await brokers.relist("acme", asking)).toMatchObject({
      catalog: { revision: 1, fault: expect.stringMatching(fault) },
      health: { state: "ok" },
    });
    expect(port.plan("acme", "postgres-id", "postgres-small-id")).toBeDefined();
  }
  server.catalog = catalogOf({ postgres: ["small", "large"] });
  expect((await brokers.relist("acme", asking)).catalog).toMatchObject({ revision: 1, fault: null });
});

test("a broker that says that nothing has changed to who knows nothing is told as faulty", async () => {
  const liar = createServer((_, response) => response.writeHead(304).end());
  await new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void liar.close());
  const { brokers } = await startProcess();
  const url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}`;
  expect(await brokers.register("acme", { url, authentication: { kind: "none" } }, asking)).toMatchObject({
    catalog: { revision: 0, readAt: null, fault: "the broker answered 304, although it was not told what is known" },
  });
});

test("ids and names that are words of JavaScript are ids and names", async () => {
  const server = await catalogServer();
  server.catalog = JSON.parse(
    '{"services":[{"id":"__proto__","name":"constructor","description":"x\\u0000","bindable":true,"metadata":{"__proto__":{"a":1}},"plans":[{"id":"toString","name":"p","description":"y"},{"id":"valueOf","name":"q","description":"y"}]}]}',
  );
  const { brokers, port } = await startProcess();
  await brokers.register("acme", at(server), asking);
  expect(port.plan("acme", "__proto__", "toString")?.name).toBe("p");
  const { services } = server.catalog as { services: { plans: unknown[] }[] };
  services[0]?.plans.pop();
  await brokers.relist("acme", asking);
  expect(Object.keys(port.offering("acme", "__proto__")?.plansLeft ?? {})).toEqual(["valueOf"]);
  expect(port.offering("acme", "constructor")).toBeUndefined();
});

test("a catalog of 15,000 plans is taken and one of more than 20,000 is not", async () => {
  const names = (count: number) => Array.from({ length: count }, (_, at) => `plan-${at}`);
  const server = await catalogServer({ catalog: catalogOf({ big: names(15_000) }) });
  const { brokers, port } = await startProcess();
  const wanted = at(server, { limits: { timeoutMs: 30_000 } });
  expect((await brokers.register("acme", wanted, asking)).catalog).toMatchObject({ revision: 1, fault: null });
  expect(port.plan("acme", "big-id", "big-plan-14999-id")?.name).toBe("plan-14999");
  server.catalog = catalogOf({ big: names(20_001) });
  expect((await brokers.relist("acme", asking)).catalog.fault).toMatch(/20001 plans/);
  expect(port.plan("acme", "big-id", "big-plan-14999-id")).toBeDefined();
});

test("offerings are told in the order of brokers, names and ids, from any place on", async () => {
  const { brokers } = await startProcess();
  const catalog = catalogOf({ redis: ["p"], "a b": ["p"], a: ["p"], 'a"': ["p"] });
  for (const name of ["two", "one"]) await brokers.register(name, at(await catalogServer({ catalog })), asking);
  const all = [...brokers.offeringsBehind({})].map(({ broker, offering: { name, id } }) => ({ broker, name, id }));
  expect(all.map(({ broker, name }) => `${broker} ${name}`)).toEqual([
    ...["one a", "one a b", 'one a"', "one redis"],
    ...["two a", "two a b", 'two a"', "two redis"],
  ]);
  const told = (query: Parameters<typeof brokers.offeringsBehind>[0]) =>
    [...brokers.offeringsBehind(query)].map(({ broker, offering: { name, id } }) => ({ broker, name, id }));
  for (const [at, after] of all.entries()) expect(told({ after })).toEqual(all.slice(at + 1));
  expect(told({ name: "redis", after: { broker: "one", name: "redis", id: "redis-id" } })).toEqual([all[7]]);
  expect(told({ broker: "one", name: "a" })).toEqual([all[0]]);
  // A place of which nothing is left.
  expect(told({ after: { broker: "one", name: "b", id: "" } })).toEqual(all.slice(3));
  expect(told({ after: { broker: "onf", name: "z", id: "" } })).toEqual(all.slice(4));
});

test("the secret of a dashboard client is neither kept nor told", async () => {
  const catalog = catalogOf({ postgres: ["small"] });
  Object.assign(catalog.services[0] ?? {}, { dashboard_client: { id: "d", secret: "s3cret" } });
  const server = await catalogServer({ catalog });
  const { brokers, journal } = await startProcess();
  await brokers.register("acme", at(server), asking);
  const pages = await journal.parts(keys.broker("acme"), "page/");
  expect(JSON.stringify([brokers.offerings(), pages])).not.toContain("s3cret");
});

test("every process has a copy of what any of them has registered, changed and removed", async () => {
  const server = await catalogServer();
  const store = memoryStore();
  const [one, other] = [await startProcess(store), await startProcess(store)];
  await one.brokers.register("acme", at(server), asking);
  await vi.waitFor(() => expect(other.port.plan("acme", "postgres-id", "postgres-small-id")).toBeDefined(), waiting);
  await other.brokers.change("acme", { authentication: { kind: "bearer", token: "t" } }, asking);
  await vi.waitFor(() => expect(one.port.broker("acme")?.authentication.kind).toBe("bearer"), waiting);
  await one.port.client("acme")?.catalog();
  expect(server.seen.at(-1)?.headers.authorization).toBe("Bearer t");
  await one.brokers.remove("acme", {}, asking);
  await vi.waitFor(() => expect(other.port.client("acme")).toBeUndefined(), waiting);
  const late = await startProcess(store);
  expect(late.port.broker("acme")).toBeUndefined();
});

test("E10-14: credentials are exchanged while operations wait because the old ones are refused", async () => {
  const server = await catalogServer({ authorization: "Bearer old" });
  const process = await startProcess();
  const { brokers, port } = process;
  await brokers.register("acme", at(server, { authentication: { kind: "bearer", token: "old" } }), asking);
  server.authorization = "Bearer new";
  port.saw("acme", "unauthorized", "401");
  await vi.waitFor(
    async () => expect(await brokers.read("acme")).toMatchObject({ health: { state: "unauthorized" }, waiting: true }),
    waiting,
  );
  const key = await process.send("acme");
  await brokers.change("acme", { authentication: { kind: "bearer", token: "new" } }, asking);
  await vi.waitFor(() => expect(process.sent).toContain(key), waiting);
  expect(await brokers.read("acme")).toMatchObject({
    health: { state: "ok" },
    authentication: "bearer",
    waiting: false,
  });
  const stored = JSON.stringify([await brokers.list(), await process.journal.entries(keys.broker("acme"))]);
  expect(stored).not.toMatch(/"(old|new)"/);
});

test("E10-56: what is asked of a broker that is down waits, and goes on when it comes back", async () => {
  const server = await catalogServer();
  const process = await startProcess();
  const { brokers } = process;
  await brokers.register("acme", at(server, { relistMs: 1_000 }), asking);
  await server.goDown();
  const sent = await Promise.all(Array.from({ length: 10 }, () => process.send("acme")));
  await vi.waitFor(
    async () => expect(await brokers.read("acme")).toMatchObject({ health: { state: "failing" }, waiting: true }),
    waiting,
  );
  sent.push(await process.send("acme"));
  expect((await process.journal.read(sent[10] ?? ""))?.open[0]).toMatchObject({ state: "paused", attempts: 0 });
  await server.comeUp();
  await vi.waitFor(() => expect(new Set(process.sent)).toEqual(new Set(sent)), waiting);
  await vi.waitFor(
    async () =>
      expect(await brokers.read("acme")).toMatchObject({ health: { state: "ok", failures: 0 }, waiting: false }),
    waiting,
  );
});

/** One whose process is killed at its nth commit from now on: nothing of it is heard any more, whether that commit was made or not. */
function mortal(store: Store): {
  readonly store: Store;
  dieAt(commit: number, when: "before" | "after"): void;
  readonly dead: Promise<void>;
} {
  let left = Number.POSITIVE_INFINITY;
  let isAfter = false;
  let die: () => void = () => undefined;
  const dead = new Promise<void>((resolve) => {
    die = resolve;
  });
  const never = new Promise<never>(() => undefined);
  const interposed = interposedStore(store, async ({ method }, go) => {
    if (left <= 0) return method === "close" ? undefined : never;
    if (method !== "commit" || --left > 0) return go();
    if (isAfter) await go();
    die();
    return never;
  });
  const dieAt = (commit: number, when: "before" | "after") => {
    left = commit;
    isAfter = when === "after";
  };
  return { store: interposed, dieAt, dead };
}

/** Nothing happens to the broker by itself before the next reading. */
async function followsAsleep(journal: Journal): Promise<void> {
  await vi.waitFor(
    async () => expect((await journal.read(keys.broker("acme")))?.open[0]).toMatchObject({ state: "waiting" }),
    waiting,
  );
}

const deaths = [1, 2, 3, 4, 5].flatMap((commit) => [
  { commit, when: "before" as const },
  { commit, when: "after" as const },
]);

test.each(deaths)(
  "E10-56: a lane is free again by itself if who paused it is killed $when its commit $commit",
  async ({ commit, when }) => {
    const server = await catalogServer();
    const store = memoryStore();
    const killed = mortal(store);
    const first = await startProcess(killed.store, { leaseMs: 300 });
    const daily = { relistMs: 24 * 60 * 60_000 };
    await first.brokers.register("acme", at(server, daily), asking);
    await followsAsleep(first.journal);
    killed.dieAt(commit, when);
    first.port.saw("acme", "unauthorized", "401");
    // Else it has done all of it, and lives.
    await Promise.race([
      killed.dead,
      vi.waitFor(
        async () => expect((await first.brokers.read("acme"))?.health).toMatchObject({ state: "ok", failures: 1 }),
        waiting,
      ),
    ]);
    void first.journal.kill();
    const second = await startProcess(store, { leaseMs: 300 });
    const key = await second.send("acme");
    await vi.waitFor(() => expect(second.sent).toContain(key), waiting);
    await vi.waitFor(async () => expect(await second.brokers.read("acme")).toMatchObject({ waiting: false }), waiting);
  },
);

test("E10-20, E10-56: a pause that comes late, when the broker was found to be well again, is lifted", async () => {
  const server = await catalogServer();
  const store = memoryStore();
  let go: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  // It stands still when the health is written, and the lane is not paused yet.
  const frozen = interposedStore(store, async ({ method, args }, make) => {
    const answer = await make();
    if (method === "commit" && JSON.stringify(args).includes("unauthorized")) await held;
    return answer;
  });
  const [slow, other] = [await startProcess(frozen, { runs: false }), await startProcess(store)];
  await other.brokers.register("acme", at(server, { relistMs: 24 * 60 * 60_000 }), asking);
  await vi.waitFor(() => expect(slow.port.broker("acme")).toBeDefined(), waiting);
  await followsAsleep(other.journal);
  slow.port.saw("acme", "unauthorized", "401");
  await vi.waitFor(
    async () => expect(await other.brokers.read("acme")).toMatchObject({ health: { state: "ok", failures: 1 } }),
    waiting,
  );
  await followsAsleep(other.journal);
  const paused = vi.waitFor(async () => expect(await slow.brokers.read("acme")).toMatchObject({ waiting: true }), {
    ...waiting,
    interval: 1,
  });
  go?.();
  await paused;
  const key = await other.send("acme");
  await vi.waitFor(() => expect(other.sent).toContain(key), waiting);
  await vi.waitFor(async () => expect(await other.brokers.read("acme")).toMatchObject({ waiting: false }), waiting);
});

test("a broker that hangs holds nobody else up", async () => {
  const hanging = await catalogServer({ changes: "hangs" });
  const healthy = await catalogServer();
  const process = await startProcess();
  const limits = { timeoutMs: 5_000, inFlight: 4 };
  await process.brokers.register("hanging", at(hanging, { limits }), asking);
  await process.brokers.register("healthy", at(healthy), asking);
  for (let count = 0; count < 300; count++) await process.send("hanging");
  await vi.waitFor(() => expect(hanging.seen.filter(({ method }) => method === "PUT").length).toBe(4), waiting);
  const sent = await Promise.all(Array.from({ length: 20 }, () => process.send("healthy")));
  await vi.waitFor(() => expect(new Set(process.sent)).toEqual(new Set(sent)), waiting);
  expect(hanging.seen.filter(({ method }) => method === "PUT").length).toBe(4);
  await hanging.goDown();
});

test("one that answers its catalog and nothing else is tried with one request at a time", async () => {
  const server = await catalogServer({ changes: "fails" });
  const process = await startProcess();
  await process.brokers.register("acme", at(server), asking);
  for (let count = 0; count < 10; count++) await process.send("acme");
  const rule = async () => (await process.journal.lanes()).value.find(({ lane }) => lane === brokerLane("acme"));
  await vi.waitFor(
    async () => expect(await rule()).toEqual({ lane: brokerLane("acme"), paused: false, limit: 1 }),
    waiting,
  );
  server.changes = "answers";
  await vi.waitFor(() => expect(process.sent).toHaveLength(10), waiting);
  await vi.waitFor(async () => expect(await rule()).toMatchObject({ paused: false, limit: 32 }), waiting);
  await process.brokers.change("acme", { limits: { inFlight: 3 } }, asking);
  await vi.waitFor(async () => expect(await rule()).toMatchObject({ paused: false, limit: 3 }), waiting);
});

test("E10-13, G15: a broker with instances is not removed; forced, they stay as unmanaged", async () => {
  const server = await catalogServer();
  const { brokers, journal, port } = await startProcess();
  await brokers.register("acme", at(server), asking);
  for (let count = 0; count < 120; count++) await putInstance(journal, `db-${count}`, "acme");
  await expect(brokers.remove("acme", {}, asking)).rejects.toMatchObject({ code: "has-instances" });
  expect(port.broker("acme")).toBeDefined();
  await brokers.remove("acme", { force: true }, asking);
  expect(await brokers.read("acme")).toBeUndefined();
  const { items } = await journal.find({ prefix: keys.instances, limit: 1_000 });
  expect(items.map(({ data }) => (data as unknown as InstanceData).phase)).toEqual(items.map(() => "unmanaged"));
  expect(items).toHaveLength(120);
  const again = await brokers.register("acme", at(server), asking);
  expect(again).toMatchObject({ health: { state: "ok" }, catalog: { offerings: 1 } });
  expect(port.plan("acme", "postgres-id", "postgres-small-id")).toBeDefined();
});

test.each(["open", "held", "abandoned"] as const)(
  "E10-29: a broker of which the ledger has something that is %s is not removed; forced, the row stays",
  async (state) => {
    const { brokers, journal } = await startProcess();
    await brokers.register("acme", at(await catalogServer()), asking);
    const key = keys.orphan("acme", "osb-1", null);
    await putOrphan(journal, key, { broker: "acme", state });
    await putOrphan(journal, keys.orphan("acme", "osb-2", null), { broker: "acme", state: "dismissed" });
    await expect(brokers.remove("acme", {}, asking)).rejects.toMatchObject({
      code: "has-orphans",
      details: { orphans: [key] },
    });
    expect(await brokers.read("acme")).toBeDefined();
    await brokers.remove("acme", { force: true }, asking);
    expect(await brokers.read("acme")).toBeUndefined();
    expect((await journal.read(key))?.data).toMatchObject({ state });
  },
);

test("E10-29: what came into the ledger when the broker was about to be removed keeps it, too", async () => {
  const { brokers, journal } = await startProcess();
  await brokers.register("acme", at(await catalogServer()), asking);
  const remove = { kind: "remove", input: { force: false } };
  const decide = brokerRecords.decide((broker) => {
    if (broker === undefined) throw new Error("it is registered");
    return { result: null, change: { data: { ...broker.data, removed: true }, accept: [remove as never] } };
  });
  await putOrphan(journal, keys.orphan("acme", "osb-1", null), { broker: "acme", state: "open" });
  const { accepted } = await journal.transact(keys.broker("acme"), decide, asking);
  const end = await journal.ended(keys.broker("acme"), accepted[0]?.id ?? "", { withinMs: 10_000 });
  expect(end).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("orphan/acme/osb-1") } });
  expect(await brokers.read("acme")).toBeDefined();
});

test("a broker can be registered anew as soon as it is removed, although its catalog was being read", async () => {
  const server = await catalogServer();
  const { brokers } = await startProcess();
  await brokers.register("acme", at(server), asking);
  const seen = server.seen.length;
  server.mood = "hangs";
  const relisted = brokers.relist("acme", asking).catch(() => undefined);
  await vi.waitFor(() => expect(server.seen.length).toBeGreaterThan(seen), waiting);
  await brokers.remove("acme", {}, asking);
  server.mood = "answers";
  expect(await brokers.register("acme", at(server), asking)).toMatchObject({ catalog: { offerings: 1 } });
  await relisted;
});

test("a broker that is registered anew is followed by a process that was still beginning to follow the one before", async () => {
  const server = await catalogServer();
  const store = memoryStore();
  const [hears, reads] = [gate(), gate()];
  // It hears of the broker when that has a catalog, and reads that when the broker is gone.
  const slow = interposedStore(store, async ({ method, args }, make) => {
    if (method === "versions") await hears.opened;
    if (method === "read" && JSON.stringify(args).includes("page/")) await reads.pass();
    return make();
  });
  const [one, other] = [await startProcess(store), await startProcess(slow, { runs: false })];
  await one.brokers.register("acme", at(server), asking);
  hears.open();
  await reads.reached;
  await one.brokers.remove("acme", {}, asking);
  await vi.waitFor(() => expect(other.port.client("acme")).toBeUndefined(), waiting);
  reads.open();
  await one.brokers.register("acme", at(server), asking);
  await vi.waitFor(() => expect(other.port.plan("acme", "postgres-id", "postgres-small-id")).toBeDefined(), waiting);
});

test("P-AUTH-03: a broker with a certificate of its own authority that asks for the platform's", async () => {
  const [own, client] = [await certified("127.0.0.1"), await certified("platform")];
  const tls = { key: own.key, cert: own.certificate, ca: client.certificate, requestCert: true };
  const server = await catalogServer({ tls });
  const { brokers } = await startProcess();
  const untrusted = await brokers.register("untrusted", at(server), asking);
  expect(untrusted.catalog).toMatchObject({ revision: 0, fault: "the broker did not answer: no connection" });
  const unknown = await brokers.register("unknown", at(server, { ca: own.certificate }), asking);
  expect(unknown.catalog).toMatchObject({ revision: 0 });
  const wanted = at(server, { ca: own.certificate, clientCertificate: client });
  expect((await brokers.register("acme", wanted, asking)).catalog).toMatchObject({ revision: 1, fault: null });
  const other = await certified("other");
  const mixed = { certificate: client.certificate, key: other.key };
  await expect(brokers.change("acme", { clientCertificate: mixed }, asking)).rejects.toMatchObject({ code: "invalid" });
  expect(JSON.stringify(await brokers.list())).not.toContain("PRIVATE KEY");
});

test("a broker that is not there is not found", async () => {
  const { brokers } = await startProcess();
  for (const name of ["nobody", "a/b", ""]) {
    await expect(brokers.relist(name, asking)).rejects.toMatchObject({ code: "not-found" });
    await expect(brokers.change(name, {}, asking)).rejects.toMatchObject({ code: "not-found" });
    await expect(brokers.remove(name, {}, asking)).rejects.toMatchObject({ code: "not-found" });
    expect(await brokers.read(name)).toBeUndefined();
  }
});

test("E10-54: a freeze of a space holds in every process until it is lifted, or over", async () => {
  const store = memoryStore();
  const [one, other] = [await startProcess(store), await startProcess(store)];
  const freeze = await one.freezes.freeze({ space: "suspended", reason: "not paid" }, asking);
  expect(freeze).toMatchObject({ by: "olga", effect: "queue", deletesExempt: false, broker: null, plan: null });
  await vi.waitFor(() => expect(other.port.freezes()).toEqual([freeze]), waiting);
  const soon = one.journal.now() + 200;
  await other.freezes.freeze({ broker: "acme", reason: "incident", effect: "reject", until: soon }, asking);
  await other.freezes.thaw(freeze.id, asking);
  await vi.waitFor(() => expect(one.freezes.list()).toEqual([]), waiting);
  await expect(one.freezes.thaw(freeze.id, asking)).rejects.toMatchObject({ code: "not-found" });
  for (const wrong of [
    { reason: "" },
    { reason: "x", until: 5 },
    { reason: "x", effect: "melt" },
    { reason: "x", space: 7 },
  ])
    await expect(one.freezes.freeze(wrong as never, asking)).rejects.toMatchObject({ code: "invalid" });
});

test("E10-39: secrets of a registration are neither told nor to be found in the file of an encrypted store", async () => {
  const folder = await mkdtemp(join(tmpdir(), "osbert-brokers-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "platform.db");
  const server = await catalogServer({ mood: "fails" });
  const secret = "s3cret-that-nobody-sees";
  const process = await startProcess(encryptedStore(sqliteStore(file), parseKeyRing(newKey())));
  const authentication = { kind: "basic", username: "platform", password: secret } as const;
  const view = await process.brokers.register("acme", at(server, { authentication }), asking);
  expect(view.catalog.fault).toMatch(/answered 500/);
  await process.brokers.change("acme", { authentication: { kind: "bearer", token: secret } }, asking);
  expect(server.seen.at(-1)?.headers.authorization).toBe(`Bearer ${secret}`);
  const told = [await process.brokers.list(), await process.journal.entries(keys.broker("acme"), { limit: 500 })];
  expect(JSON.stringify(told)).not.toContain(secret);
  await process.stop();
  for (const name of await readdir(folder)) expect((await readFile(join(folder, name))).includes(secret)).toBe(false);
});

/** Whoever passes it waits until it is open. */
function gate() {
  let [open, reach] = [(): void => undefined, (): void => undefined];
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const pass = () => {
    reach();
    return opened;
  };
  return { open: () => open(), opened, reached, pass };
}
