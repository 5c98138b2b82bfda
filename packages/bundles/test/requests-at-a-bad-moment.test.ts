import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Service } from "@osbert/broker";
import { type TestBroker, testBroker } from "@osbert/broker/testing";
import { RetryLater, type Store, systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { interposedStore } from "@osbert/journal/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { judgeRequests } from "../src/catalog/judge-requests.js";
import { type BundleServicesOptions, type BundleSource, SourceError, withdraw } from "../src/index.js";
import { keepsRevision } from "../src/reconcile/keeps-revision.js";
import type { BundleObserver } from "../src/watch/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";
import { bundle, hourMs, SourceLab } from "./source-lab.js";

const id = "2b0c4a52-7f7e-4a1c-9a53-6f6e3d1c0001";
const plans = {
  small: "2b0c4a52-7f7e-4a1c-9a53-6f6e3d1c0002",
  large: "2b0c4a52-7f7e-4a1c-9a53-6f6e3d1c0003",
};
const by = { actor: { type: "operator", subject: "ann" } } as const;
const ann = { ...by, why: "CVE-2026-1" };

function yaml({ version = "1.0.0", offered = ["small", "large"] as readonly (keyof typeof plans)[] } = {}): string {
  const lines = offered.map(
    (name) =>
      `  ${name}: { id: ${plans[name]}, description: One, updatesTo: [${offered.filter((other) => name === "small" && other !== name)}] }`,
  );
  return `osbert: 1\nname: notes\nid: ${id}\nversion: ${version}\ndescription: Notes\ncommand: [sh, ./run.sh]\nplans:\n${lines.join("\n")}\n`;
}

async function write(bundles: string, text = yaml(), script = "exit 0"): Promise<void> {
  await mkdir(join(bundles, "notes"), { recursive: true });
  await writeFile(join(bundles, "notes", "osbert.yaml"), text);
  await writeFile(join(bundles, "notes", "run.sh"), script);
}

interface Options extends Partial<BundleServicesOptions> {
  readonly change?: (source: BundleSource) => BundleSource;
  readonly store?: Store;
}

async function start({ store = memoryStore(), ...options }: Options = {}) {
  const bundles = await bundleFolder();
  const services = await folderServices(bundles, options);
  // Bundles are real processes: their time passes by itself.
  const flow = await testBroker({ services, store, journal: { clock: systemClock } });
  onTestFinished(() => flow.stop());
  const put = (instance: string, { incomplete = false, plan = plans.small, service = id } = {}) =>
    flow.request("PUT", `/v2/service_instances/${instance}${incomplete ? "?accepts_incomplete=true" : ""}`, {
      body: { service_id: service, plan_id: plan, organization_guid: "o", space_guid: "s" },
    });
  const remove = (instance: string) =>
    flow.request("DELETE", `/v2/service_instances/${instance}?service_id=${id}&plan_id=${plans.small}`);
  const state = () => {
    const record = services.sources().get("folder")?.specs.get("notes");
    return record?.kind === "service" ? record.state.kind : record?.kind;
  };
  const refresh = () => services.refresh("folder", by);
  return { flow, services, bundles, put, remove, state, refresh };
}

/** A source whose readings wait until the test lets them go. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let reading = 0;
  const change = (source: BundleSource): BundleSource => ({
    ...source,
    async observe(stored, request) {
      reading += 1;
      const stopped = new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()));
      await Promise.race([opened, stopped]);
      return source.observe(stored, request);
    },
  });
  return { change, open: () => open(), reading: () => reading };
}

const patiently = { timeout: 20_000 };

async function until(flow: TestBroker, instance: string, state: string): Promise<void> {
  await expect.poll(async () => (await flow.lastOperation(instance)).body.state, patiently).toBe(state);
}

describe("before every source was read once", () => {
  test("F5-46: a provision waits for the catalog as an operation, and is one like any other then", async () => {
    const { change, open } = gate();
    const { flow, bundles, put, remove } = await start({ change });
    await write(bundles);
    const accepted = await put("i1", { incomplete: true });
    expect(accepted.status).toBe(202);
    const told = async () => (await flow.lastOperation("i1")).body;
    await expect.poll(told).toEqual({ state: "in progress", description: "waits for the catalog" });
    open();
    await until(flow, "i1", "succeeded");
    expect((await flow.fetch("i1")).body).toMatchObject({ service_id: id, plan_id: plans.small });
    expect((await remove("i1")).status).toBe(200);
  });

  test("F5-46: it is 503 with Retry-After where 202 is not taken, and 400 once all were read", async () => {
    const { change, open } = gate();
    const { flow, put, bundles } = await start({ change });
    await write(bundles);
    const early = await put("i1", { service: "unknown" });
    expect([early.status, early.headers["retry-after"], early.body.description]).toEqual([
      503,
      "10",
      "not all sources have been read yet: folder",
    ]);
    open();
    await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).status).toBe(200);
    expect((await put("i1", { service: "unknown" })).status).toBe(400);
  });

  test("F5-46: services in code are had meanwhile", async () => {
    const inCode: Service = {
      ...{ id: "in-code", name: "in-code", description: "In code", bindable: false },
      plans: { only: { id: "only", description: "The only one" } },
      provision: async () => undefined,
    };
    const { change } = gate();
    const { put } = await start({ change, services: [inCode] });
    expect((await put("i1", { service: "in-code", plan: "only" })).status).toBe(201);
    expect((await put("i2")).status).toBe(503);
  });

  test("F5-52: a delete of an unknown instance is 410, whatever is known", async () => {
    const { change } = gate();
    const { flow, remove } = await start({ change });
    expect((await flow.request("GET", "/v2/catalog")).status).toBe(503);
    expect((await remove("i1")).status).toBe(410);
  });
});

describe("while a service goes", () => {
  test("F5-45: a provision does not wait for a reading", async () => {
    const second = gate();
    let isHeld = false;
    const change = (source: BundleSource): BundleSource => {
      const held = second.change(source);
      return { ...source, observe: (...asked) => (isHeld ? held : source).observe(...asked) };
    };
    const { bundles, put, state, refresh } = await start({ change });
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    isHeld = true;
    await refresh();
    await expect.poll(second.reading).toBe(1);
    expect((await put("i1")).status).toBe(201);
  });

  test("F5-47, F5-49, F5-52: what has retired is refused with its reason, what was accepted before is answered as then", async () => {
    const { flow, services, bundles, put, remove, state, refresh } = await start();
    const marker = join(await bundleFolder(), "go");
    await write(bundles, yaml(), `[ "$1" = provision ] && until [ -e '${marker}' ]; do sleep 0.05; done; exit 0`);
    await refresh();
    await expect.poll(state).toBe("active");
    const first = await put("i1", { incomplete: true });
    expect(first.status).toBe(202);
    await services.decide("folder", (stored, decider) => withdraw(stored, "notes", decider), ann);
    await expect.poll(state).toBe("retired");
    const again = await put("i1", { incomplete: true });
    expect([again.status, again.body]).toEqual([202, first.body]);
    const other = await put("i2", { incomplete: true });
    expect([other.status, other.body]).toEqual([
      400,
      { error: "ServiceRetired", description: "notes is not offered any more: CVE-2026-1; read the catalog again" },
    ]);
    expect((await remove("i2")).status).toBe(410);
    await writeFile(marker, "");
    await until(flow, "i1", "succeeded");
    expect((await put("i1", { incomplete: true })).status).toBe(200);
    expect((await remove("i1")).status).toBe(200);
  });

  test("F5-47: of what is missing the registry is asked, which has it, has lost it, or does not answer", async () => {
    let answer: "there" | "gone" | "away" = "there";
    let asked = 0;
    const change = (source: BundleSource): BundleSource => ({
      ...source,
      rules: { ...source.rules, missing: { runs: 100, ms: 0 } },
      source: {
        ...bound(source.source),
        async has() {
          asked += 1;
          if (answer === "away") throw new SourceError("unreachable", "folder");
          return answer === "there";
        },
      },
    });
    const { flow, bundles, put, state, refresh } = await start({ change });
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    expect((await put("i0")).status).toBe(201);
    expect(asked).toBe(0);
    await rm(join(bundles, "notes"), { recursive: true });
    await refresh();
    await expect.poll(state).toBe("missing");
    expect((await put("i1")).status).toBe(201);
    expect((await put("i1")).status).toBe(200);
    expect(asked).toBe(1);
    answer = "gone";
    const gone = await put("i2");
    expect([gone.status, gone.body.error]).toEqual([400, "ServiceRetired"]);
    answer = "away";
    expect((await put("i2")).status).toBe(503);
    expect((await put("i3", { incomplete: true })).status).toBe(202);
    await expect.poll(async () => (await flow.lastOperation("i3")).body.description).toBe("waits for the catalog");
    answer = "there";
    await until(flow, "i3", "succeeded");
  });

  test("F5-50: no instance changes to a plan that has left, and parameters are changed all the same", async () => {
    const { flow, bundles, put, state, refresh, services } = await start();
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    expect((await put("i1")).status).toBe(201);
    await write(bundles, yaml({ version: "1.1.0", offered: ["small"] }));
    await refresh();
    const version = () => {
      const record = services.sources().get("folder")?.specs.get("notes");
      return record?.kind === "service" ? record.current.version : undefined;
    };
    await expect.poll(version).toBe("1.1.0");
    await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).body.services[0].plans.length).toBe(1);
    const patch = (body: object) =>
      flow.request("PATCH", "/v2/service_instances/i1", { body: { service_id: id, ...body } });
    const refused = await patch({ plan_id: plans.large });
    expect([refused.status, refused.body]).toEqual([
      400,
      {
        error: "ServiceRetired",
        description: "plan_id is not a plan of this service any more; read the catalog again",
      },
    ]);
    expect((await patch({ parameters: { a: 1 } })).status).toBe(200);
  });

  test("F5-51: when the last instance of what has retired goes, it is collected without waiting for the next pass", async () => {
    const collected: string[] = [];
    const collection = { retiredMs: 0, intervalMs: 10 * 24 * hourMs };
    const observe: BundleObserver = (event) => {
      if (event.kind === "source collected") collected.push(...event.collection.deleted);
    };
    const { bundles, put, remove, state, refresh } = await start({ collection, observe });
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    expect((await put("i1")).status).toBe(201);
    await rm(join(bundles, "notes"), { recursive: true });
    await refresh();
    await expect.poll(state).toBe("retired");
    expect(collected).toEqual([]);
    expect((await remove("i1")).status).toBe(200);
    await expect.poll(state).toBe("deleted");
    await expect.poll(() => collected).toEqual(["notes"]);
  });
});

describe("F5-48: a spec that retires while a provision is accepted", () => {
  test("a process that knows nothing of the service refuses nothing: another one may know it", async () => {
    const lab = new SourceLab();
    lab.read({ a: bundle() });
    const { serviceId, current } = lab.service("a");
    const copy = { stored: lab.stored, refresh: async () => lab.stored };
    const accepted = (copies: readonly (typeof copy)[], digest: string) =>
      judgeRequests({
        ...{ isInCode: () => false, entry: () => undefined, unread: () => [], source: () => undefined },
        ...{ copies: () => copies, followOthers: async () => false, retiredMs: hourMs },
      }).accepted(serviceId, digest, lab.now);
    expect(await accepted([copy], current.digest)).toBeNull();
    expect(await accepted([copy], "sha256:other")).toMatchObject({ kind: "refused", code: "service-retired" });
    await expect(accepted([], current.digest)).rejects.toThrow(RetryLater);
  });

  test("an instance keeps its revision if it was accepted before a collection could look", () => {
    const lab = new SourceLab();
    lab.read({ a: bundle({ version: "1.0.0" }) });
    const { digest } = lab.service("a").current;
    const keeps = (acceptedAt: number, retiredMs = hourMs) =>
      keepsRevision(lab.service("a"), digest, acceptedAt, retiredMs);
    expect(keeps(lab.now + 1_000 * hourMs)).toBe(true);
    lab.read({ a: bundle({ version: "1.1.0" }) });
    const superseded = lab.now;
    expect([keeps(superseded - 1), keeps(superseded + hourMs / 2), keeps(superseded + hourMs)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([keeps(superseded, 0), keeps(superseded + 1, 0)]).toEqual([true, false]);
    lab.read({ a: bundle({ version: "1.2.0" }) }, { afterMs: 2 * hourMs });
    // By the one that followed it, not by the newest.
    expect(keeps(superseded + hourMs)).toBe(false);
    const current = lab.service("a").current.digest;
    for (let run = 0; run < 3; run++) lab.read({});
    expect(lab.state("a")).toBe("retired");
    expect(keepsRevision(lab.service("a"), current, lab.now, hourMs)).toBe(true);
    expect(keepsRevision(lab.service("a"), current, lab.now + hourMs, hourMs)).toBe(false);
  });

  test("a provision that is committed after all of its service was collected ends before anything is done for it", async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let held = 0;
    const store = interposedStore(memoryStore(), async ({ method, args }, go) => {
      const isLate = method === "commit" && JSON.stringify(args).includes("i-late");
      if (isLate && held++ === 0) await released;
      return go();
    });
    const { bundles, put, remove, state, refresh } = await start({
      store,
      collection: { retiredMs: 0, intervalMs: 20 },
    });
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    const late = put("i-late");
    await expect.poll(() => held).toBe(1);
    await rm(join(bundles, "notes"), { recursive: true });
    await refresh();
    await expect.poll(state, patiently).toBe("deleted");
    release();
    const { status, body } = await late;
    expect([status, body.error]).toEqual([400, "ServiceRetired"]);
    expect((await remove("i-late")).status).toBe(410);
  });

  /**
   * Removed, brought back and collected without any grace while instances are made all the time: each is refused, or made and removed by the
   * revision that it was made of, whichever moment it met.
   */
  test("whichever is first, no instance is stranded", { timeout: 60_000 }, async () => {
    const seen = await bundleFolder();
    // As a registry, it has every digest for ever.
    const change = (source: BundleSource): BundleSource => ({
      ...source,
      source: {
        ...bound(source.source),
        fetch: (_, digest, folder) =>
          writeFile(
            join(folder, "run.sh"),
            `echo ${digest} >>"${seen}/$(grep -o '"id":"i-[0-9]*"' "$OSBERT_INPUT" | head -1 | tr -dc '0-9a-z-')"`,
          ),
      },
    });
    const { flow, bundles, put, state, refresh } = await start({
      change,
      collection: { retiredMs: 0, intervalMs: 20 },
    });
    await write(bundles);
    await refresh();
    await expect.poll(state).toBe("active");
    let version = 1;
    let isOver = false;
    const churn = async () => {
      for (; !isOver; version++) {
        await rm(join(bundles, "notes"), { recursive: true, force: true });
        await refresh();
        await expect.poll(state, { timeout: 20_000 }).not.toBe("active");
        await write(bundles, yaml({ version: `1.0.${version}` }));
        await refresh();
        await expect.poll(state, { timeout: 20_000 }).toBe("active");
      }
    };
    const churning = churn();
    const made: string[] = [];
    const refusals = new Set<number>();
    for (let number = 0; number < 1_000 && version < 12; number++) {
      const instance = `i-${number}`;
      const { status } = await put(instance);
      if (status === 201) made.push(instance);
      else refusals.add(status);
    }
    isOver = true;
    await churning;
    expect([...refusals].filter((status) => status !== 400)).toEqual([]);
    expect(made.length).toBeGreaterThan(0);
    expect(refusals.size).toBeGreaterThan(0);
    for (const instance of made) {
      const removed = await flow.request(
        "DELETE",
        `/v2/service_instances/${instance}?service_id=${id}&plan_id=${plans.small}`,
      );
      expect(removed.status).toBe(200);
      const [by = "", removedBy, ...rest] = (await readFile(join(seen, `id${instance}`), "utf8")).trim().split("\n");
      expect([instance, removedBy, rest]).toEqual([instance, by, []]);
    }
  });
});

/** A source's methods, for one that differs in some. */
function bound(source: BundleSource["source"]): BundleSource["source"] {
  return {
    repositories: (signal) => source.repositories(signal),
    tags: (repository, signal) => source.tags(repository, signal),
    resolve: (ref, signal) => source.resolve(ref, signal),
    read: (repository, digest, signal) => source.read(repository, digest, signal),
    fetch: (repository, digest, folder, signal) => source.fetch(repository, digest, folder, signal),
    probe: (signal) => source.probe(signal),
  };
}
