import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { type Store, systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { faultyStore } from "@osbert/journal/testing";
import { expect, onTestFinished, test } from "vitest";
import type { BundleServicesOptions, BundleSource } from "../src/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";
import { hourMs } from "./source-lab.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;
const patiently = { timeout: 20_000 };

async function write(bundles: string, name: string, version = "1.0.0"): Promise<void> {
  await mkdir(join(bundles, name), { recursive: true });
  const yaml = `osbert: 1\nname: ${name}\nversion: ${version}\ndescription: A test\ncommand: [sh, ./run.sh]\nplans:\n  small: { description: One }\n`;
  await writeFile(join(bundles, name, "osbert.yaml"), yaml);
  await writeFile(join(bundles, name, "run.sh"), "exit 0\n");
}

interface Options extends Partial<BundleServicesOptions> {
  readonly change?: (source: BundleSource) => BundleSource;
  readonly store?: Store;
}

async function start({ store = memoryStore(), ...options }: Options = {}) {
  const bundles = await bundleFolder();
  await write(bundles, "notes");
  const services = await folderServices(bundles, options);
  const flow = await testBroker({
    services,
    store,
    stderr: "nothing",
    journal: { clock: systemClock, timeoutMs: 2_000 },
  });
  onTestFinished(() => flow.stop());
  const names = async () => {
    const { status, body } = await flow.request("GET", "/v2/catalog");
    return status === 200 ? body.services.map(({ name }: { name: string }) => name).sort() : status;
  };
  await expect.poll(names, patiently).toEqual(["notes"]);
  return { flow, services, bundles, names };
}

/** Counts readings, and lets each wait for the test once it is told to. */
function watched() {
  const seen = { begun: 0, atOnce: 0, most: 0, ids: [] as string[] };
  let isHeld = false;
  let waiting: (() => void)[] = [];
  const change = (source: BundleSource): BundleSource => ({
    ...source,
    async observe(stored, request) {
      seen.begun += 1;
      seen.ids.push(request.id);
      seen.atOnce += 1;
      seen.most = Math.max(seen.most, seen.atOnce);
      try {
        if (isHeld)
          await new Promise<void>((resolve) => {
            waiting.push(resolve);
            request.signal.addEventListener("abort", () => resolve());
          });
        return await source.observe(stored, request);
      } finally {
        seen.atOnce -= 1;
      }
    },
  });
  const hold = () => {
    isHeld = true;
  };
  const letGo = () => {
    const before = waiting;
    waiting = [];
    for (const go of before) go();
  };
  return { seen, change, hold, letGo };
}

test("F5-73: of many who ask for a reading while one runs, one more reading comes of it, and it sees what they knew", async () => {
  const { seen, change, hold, letGo } = watched();
  const { services, bundles, names } = await start({ change });
  hold();
  const before = seen.begun;
  await services.refresh("folder", by);
  await expect.poll(() => seen.begun, patiently).toBe(before + 1);
  await write(bundles, "other");
  const told = new Set<string | undefined>();
  for (let caller = 0; caller < 20; caller++) told.add(await services.refresh("folder", by));
  letGo();
  await expect.poll(() => seen.begun, patiently).toBe(before + 2);
  letGo();
  await expect.poll(names, patiently).toEqual(["notes", "other"]);
  // All were told the one that came.
  expect([...told]).toEqual(seen.ids.slice(-1));
  await services.refresh("folder", by);
  // Had there been a third for the twenty, this would be the fourth.
  await expect.poll(() => seen.begun, patiently).toBe(before + 3);
  expect(seen.most).toBe(1);
});

test("F5-74: a reading that takes longer than the interval is followed by the next, never beside it", async () => {
  const { seen, change, hold, letGo } = watched();
  const { services } = await start({ change: (source) => change({ ...source, intervalMs: 1 }) });
  hold();
  for (let reading = 0; reading < 5; reading++) {
    await expect.poll(() => seen.atOnce, patiently).toBe(1);
    const { begun } = seen;
    // Even asked for, the next one does not begin.
    for (let asked = 0; asked < 3; asked++) await services.refresh("folder", by);
    expect(seen.begun).toBe(begun);
    letGo();
    await expect.poll(() => seen.begun, patiently).toBeGreaterThan(begun);
  }
  expect(seen.most).toBe(1);
});

test("F5-76: while the store is down the catalog is served from memory, changes are 503, and readings go on after it", async () => {
  const store = faultyStore(memoryStore());
  const { flow, services, bundles, names } = await start({ store });
  store.breakDown("refused");
  expect(await names()).toEqual(["notes"]);
  const provision = await flow.provision("i1", { acceptsIncomplete: true });
  expect([provision.status, provision.headers["retry-after"]]).toEqual([503, "5"]);
  expect((await flow.deprovision("i1")).status).toBe(503);
  await write(bundles, "other");
  await expect(services.refresh("folder", by)).rejects.toThrow();
  expect(await names()).toEqual(["notes"]);
  store.comeBack();
  await services.refresh("folder", by);
  await expect.poll(names, patiently).toEqual(["notes", "other"]);
  expect((await flow.provision("i1", { acceptsIncomplete: false, service: "notes" })).status).toBe(201);
});

test("F5-78: graces go by the clock of the store, whatever the machine's says", async () => {
  let ahead = 1_000 * 24 * hourMs;
  const now = () => Date.now() + ahead;
  const { services, bundles, names } = await start({
    store: memoryStore({ clock: now }),
    collection: { intervalMs: 20 },
  });
  await write(bundles, "other");
  await services.refresh("folder", by);
  await expect.poll(names, patiently).toEqual(["notes", "other"]);
  await rm(join(bundles, "other"), { recursive: true });
  await services.refresh("folder", by);
  const state = () => {
    const record = services.sources().get("folder")?.specs.get("other");
    return record?.kind === "service" ? record.state : record;
  };
  await expect.poll(state, patiently).toMatchObject({ kind: "retired" });
  const retired = state();
  const since = retired?.kind === "retired" ? retired.since : 0;
  expect(Math.abs(since - now())).toBeLessThan(hourMs);
  // An hour passes in the store and nowhere else.
  ahead += hourMs;
  await expect.poll(state, patiently).toMatchObject({ kind: "deleted" });
});
