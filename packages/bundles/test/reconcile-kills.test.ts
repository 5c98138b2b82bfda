import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openJournal } from "@osbert/journal";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { startRegistry } from "../../../tools/servers.js";
import { changedEntry } from "../src/catalog/source-copy.js";
import { changedKind, sourceResource } from "../src/catalog/source-resource.js";
import { revisionPrefix, sourceKey, specPrefix, specState } from "../src/reconcile/records.js";
import { brokerFolder, bundleContent, RegistryBroker } from "./registry-broker.js";
import { archive, push } from "./registry-lab.js";

/** OSBERT_KILLS=200 kills more often. */
const kills = Number(process.env.OSBERT_KILLS ?? 5);
const key = sourceKey("hub");
/** More than fit into one commit. */
const atFirst = 210;
const readAtOnce = { missing: { runs: 1, ms: 0 }, guard: { least: 10_000, share: 1 } };

/** What a registry holds, and the changes that a test makes to it. */
class Hub {
  readonly url: string;
  readonly #layer: Uint8Array;
  readonly #versions = new Map<string, number>();
  readonly #digests = new Map<string, string>();

  constructor(url: string, layer: Uint8Array) {
    this.url = url;
    this.#layer = layer;
  }

  get names(): readonly string[] {
    return [...this.#digests.keys()];
  }

  /** The first five have something to run. */
  async push(name: string): Promise<void> {
    const version = (this.#versions.get(name) ?? 0) + 1;
    this.#versions.set(name, version);
    const content = bundleContent(name, `1.${version}.0`, name < "b005" ? [this.#layer] : []);
    await push(this.url, name, "latest", content);
    this.#digests.set(name, content.digest);
  }

  async remove(name: string): Promise<void> {
    const { status } = await fetch(`${this.url}/v2/${name}/manifests/${this.#digests.get(name)}`, { method: "DELETE" });
    expect(status).toBe(202);
    this.#digests.delete(name);
  }

  async change(): Promise<void> {
    const some = (count: number) =>
      [...this.names]
        .map((name) => [Math.random(), name] as const)
        .sort(([one], [other]) => one - other)
        .slice(0, count)
        .map(([, name]) => name);
    const next = this.#versions.size;
    const fresh = Array.from({ length: 3 }, (_, index) => `b${String(next + index).padStart(3, "0")}`);
    await Promise.all([...some(12), ...fresh].map((name) => this.push(name)));
    for (const name of some(3)) await this.remove(name);
  }
}

/** What every look at the store is held to, and to the looks before it. */
class Witness {
  readonly #ids = new Map<string, string>();
  readonly #revisions = new Map<string, string>();
  #snapshot = 0;
  #seq = 0;

  async look(data: string): Promise<void> {
    const journal = await openJournal({ store: sqliteStore(join(data, "broker.db")), kinds: {} });
    try {
      const resource = sourceResource.resource(await journal.read(key));
      if (resource === undefined) return;
      const partsUnder = async (prefix: typeof specPrefix | typeof revisionPrefix) => {
        const found = new Map<string, unknown>();
        for (let after: string | undefined; ; ) {
          const page = await journal.parts(key, prefix, { limit: 500, ...(after !== undefined && { after }) });
          for (const { id, value } of page.items) found.set(id.slice(prefix.length), value);
          if (page.next === null) return found;
          after = page.next;
        }
      };
      const revisions = await partsUnder(revisionPrefix);
      const specs = await partsUnder(specPrefix);
      const counts = { pending: 0, rejected: 0, active: 0, missing: 0, retired: 0, deleted: 0 };
      const ids: string[] = [];
      const referred = new Set<string>();
      for (const [spec, value] of specs) {
        const record = value as Parameters<typeof specState>[0];
        counts[specState(record)] += 1;
        if (record.kind === "candidate") continue;
        for (const [name, id] of [["", record.serviceId], ...record.knownPlans.map((plan) => [plan.name, plan.id])]) {
          expect(this.#ids.get(`${spec} ${name}`) ?? id, `the id of ${spec} ${name}`).toBe(id);
          this.#ids.set(`${spec} ${name}`, id as string);
          ids.push(id as string);
        }
        if (record.kind !== "service") continue;
        for (const { digest } of record.history) referred.add(`${spec}@${digest}`);
        expect(record.history[0]?.digest).toBe(record.current.digest);
      }
      expect(new Set(ids).size, "no id twice").toBe(ids.length);
      expect(resource.data.counts).toEqual(counts);
      for (const revision of referred) {
        const text = JSON.stringify(revisions.get(revision));
        expect(text, `${revision} is readable`).toBeDefined();
        expect(this.#revisions.get(revision) ?? text, `${revision} never changes`).toBe(text);
        this.#revisions.set(revision, text);
      }
      expect(resource.data.snapshot).toBeGreaterThanOrEqual(this.#snapshot);
      expect(resource.seq).toBeGreaterThanOrEqual(this.#seq);
      this.#snapshot = resource.data.snapshot;
      this.#seq = resource.seq;
      let last = { seq: 0, snapshot: 0 };
      for (;;) {
        const entries = await journal.entries(key, { after: last.seq, limit: 200 });
        for (const { seq, kind, payload } of entries) {
          expect(seq).toBe(last.seq + 1);
          const { snapshot } = kind === changedKind ? changedEntry(payload) : last;
          expect(snapshot).toBeGreaterThanOrEqual(last.snapshot);
          last = { seq, snapshot };
        }
        if (entries.length < 200) break;
      }
    } finally {
      await journal.stop();
    }
  }
}

test("F5-75: a broker that is killed at random instants of reading and collecting keeps every snapshot whole, and loses nothing", async () => {
  const registry = required("kills while a registry is read", await startRegistry({ kind: "none" }));
  if (registry === undefined) return;
  onTestFinished(() => registry.stop());
  const hub = new Hub(registry.url, await archive({ "run.sh": "exit 0\n" }));
  const names = Array.from({ length: atFirst }, (_, index) => `b${String(index).padStart(3, "0")}`);
  for (let from = 0; from < names.length; from += 16)
    await Promise.all(names.slice(from, from + 16).map((name) => hub.push(name)));
  const data = await brokerFolder();
  const options = {
    ...{ registry: registry.url, data, intervalMs: 50, ...readAtOnce },
    collection: { retiredMs: 0, intervalMs: 50 },
  };
  const witness = new Witness();
  // Killed while it reads for the first time, too.
  for (const afterMs of [150, 400]) {
    const first = new RegistryBroker(options);
    await first.says("reading ");
    await sleep(Math.random() * afterMs);
    await first.kill();
    await witness.look(data);
  }
  let broker = new RegistryBroker(options);
  const catalog = () => broker.ask("GET", "/v2/catalog");
  await expect.poll(async () => (await catalog()).body.services?.length, { timeout: 30_000 }).toBe(atFirst);
  const { services } = (await catalog()).body;
  const idsOf = (name: string) => {
    const service = services.find((each: { name: string }) => each.name === name);
    return { service_id: service.id, plan_id: service.plans[0].id };
  };
  const instances = names.slice(0, 5);
  for (const name of instances) {
    const body = { ...idsOf(name), organization_guid: "o", space_guid: "s" };
    expect((await broker.ask("PUT", `/v2/service_instances/${name}`, body)).status).toBe(201);
  }
  for (let round = 0; round < kills; round++) {
    await hub.change();
    // From before it reads until after it has written, with changes while it does.
    await broker.says("reading ", broker.lines.length);
    await Promise.all([sleep(Math.random() * 300), hub.change()]);
    await broker.kill();
    await witness.look(data);
    broker = new RegistryBroker(options);
    expect((await catalog()).status, "the stored catalog is served at once").toBe(200);
  }
  for (const name of instances) if (hub.names.includes(name)) await hub.remove(name);
  await broker.says("read complete", broker.lines.length);
  // What nobody has killed makes the same of it.
  const clean = new RegistryBroker({ ...options, data: await brokerFolder() });
  await clean.says("read complete");
  await expect
    .poll(async () => (await clean.ask("GET", "/v2/catalog")).body.services?.length, { timeout: 30_000 })
    .toBe(hub.names.length);
  const expected = await clean.ask("GET", "/v2/catalog");
  await expect.poll(async () => (await catalog()).etag, { timeout: 30_000 }).toBe(expected.etag);
  expect((await catalog()).body).toEqual(expected.body);
  // And no instance has lost what it was made of, though the registry has.
  for (const name of instances) {
    const { status, body } = await broker.ask(
      "DELETE",
      `/v2/service_instances/${name}?${new URLSearchParams(idsOf(name))}`,
    );
    expect([status, body]).toEqual([200, {}]);
  }
  await broker.kill();
  await witness.look(data);
}, 600_000);
