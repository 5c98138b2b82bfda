import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testBroker } from "@osbert/broker/testing";
import { systemClock } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { bundleFolder, folderServices } from "./folder-services.js";

const by = { actor: { type: "operator", subject: "ann" } } as const;
const patiently = { timeout: 20_000 };

async function write(bundles: string, name: string, description = "A test"): Promise<void> {
  await mkdir(join(bundles, name), { recursive: true });
  const yaml = `osbert: 1\nname: ${name}\nversion: 1.0.0\ndescription: ${description}\ncommand: [sh, ./run.sh]\nplans:\n  small: { description: One }\n`;
  await writeFile(join(bundles, name, "osbert.yaml"), yaml);
  await writeFile(join(bundles, name, "run.sh"), "exit 0\n");
}

async function start(bundles: string, store = memoryStore(), readings: string[] = []) {
  const services = await folderServices(bundles, {
    observe: (event) => {
      if (event.kind === "source read") readings.push(event.observation.completeness);
    },
  });
  const flow = await testBroker({ services, store, journal: { clock: systemClock } });
  onTestFinished(() => flow.stop());
  const get = (headers: Record<string, string> = {}) => flow.request("GET", "/v2/catalog", { headers });
  const reread = async () => {
    const before = readings.length;
    await services.refresh("folder", by);
    await expect.poll(() => readings.length, patiently).toBeGreaterThan(before);
  };
  return { flow, services, get, reread };
}

test("F5-79: the catalog has a strong ETag of its bytes: 304 for who has it, the same after a restart, another with other bytes", async () => {
  const bundles = await bundleFolder();
  for (const name of ["a", "b", "c"]) await write(bundles, name);
  const store = memoryStore();
  const { flow, get } = await start(bundles, store);
  await expect.poll(async () => (await get()).body.services?.length, patiently).toBe(3);
  const { etag = "", vary, "last-modified": changedAt = "", "cache-control": caching } = (await get()).headers;
  expect(vary).toBe("Authorization");
  // With Last-Modified alone, caches would not ask for as long as a tenth of the time since then.
  expect(caching).toBe("no-cache");
  // The commit, whichever process is asked, and whenever.
  const commit = (await flow.broker.journal.entries("bundles.source.folder", { after: 0, limit: 100 }))
    .filter(({ kind }) => kind === "bundles.changed")
    .at(-1);
  expect(changedAt).toBe(new Date(commit?.at ?? 0).toUTCString());
  expect(etag).toMatch(/^"[\w-]{27}"$/);
  const again = await get({ "if-none-match": etag });
  expect([again.status, again.body, again.headers.etag]).toEqual([304, undefined, etag]);
  expect((await get({ "if-none-match": '"another"' })).status).toBe(200);
  await flow.stop();

  const next = await start(bundles, store);
  const same = await next.get({ "if-none-match": etag });
  expect([same.status, same.headers["last-modified"], same.headers.vary]).toEqual([304, changedAt, vary]);
  await write(bundles, "b", "Something else");
  await next.reread();
  await expect.poll(async () => (await next.get({ "if-none-match": etag })).status, patiently).toBe(200);
  expect((await next.get()).headers.etag).not.toBe(etag);
});

test("F5-84: the catalog is rendered once for all who ask, and a change costs what has changed", async () => {
  const bundles = await bundleFolder();
  for (let number = 0; number < 50; number++) await write(bundles, `b${number}`);
  const readings: string[] = [];
  const { flow, services, get, reread } = await start(bundles, memoryStore(), readings);
  await expect.poll(async () => (await get()).body.services?.length, patiently).toBe(50);
  const { pieces } = flow.broker.catalog;
  await get();
  await reread();
  expect(flow.broker.catalog.pieces).toBe(pieces);
  const before = new Map((services.services ?? []).map((service) => [service.name, service]));
  await write(bundles, "b7", "Something else");
  await reread();
  await expect.poll(() => flow.broker.catalog.pieces !== pieces, patiently).toBe(true);
  const made = (services.services ?? []).filter((service) => before.get(service.name) !== service);
  expect(made.map(({ name }) => name)).toEqual(["b7"]);
});
