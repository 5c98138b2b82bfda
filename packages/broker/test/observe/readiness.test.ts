import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "@osbert/journal/memory";
import { sqliteStore } from "@osbert/journal/sqlite";
import { faultyStore } from "@osbert/journal/testing";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { fetchHandler } from "../../src/http/index.js";
import { createBroker } from "../../src/index.js";
import { metrics } from "../../src/observe/index.js";
import { ids, lab } from "../lab.js";
import { platform, watchedBroker, watcher } from "./watched-broker.js";

test("/readyz: 200 with a platform's or a watcher's credential while the broker has started and its store answers", async () => {
  const { ask } = await watchedBroker({ services: [lab().service] });
  for (const as of [platform, watcher]) {
    const answer = await ask("GET", "/readyz", { as });
    expect([answer.status, await answer.json()]).toEqual([200, { status: "ready" }]);
  }
  expect((await ask("HEAD", "/readyz")).status).toBe(200);
  expect((await ask("PUT", "/readyz", { body: {} })).status).toBe(405);
});

test("/readyz and /metrics are for those with a credential, and a watcher's opens nothing else", async () => {
  const seen = metrics({ process: false });
  const { ask } = await watchedBroker({ services: [lab().service], observe: seen.observe }, { metrics: seen });
  const wrong = { ...watcher, password: "wrong" };
  for (const path of ["/readyz", "/metrics"]) {
    expect((await ask("GET", path, { as: null })).status).toBe(401);
    expect((await ask("GET", path, { as: wrong })).status).toBe(401);
    expect((await ask("GET", path)).status).toBe(200);
  }
  expect((await ask("GET", "/v2/catalog", { as: watcher })).status).toBe(401);
  expect((await ask("PUT", "/v2/service_instances/i", { as: watcher, body: {} })).status).toBe(401);
  expect((await ask("GET", "/healthz", { as: null })).status).toBe(200);
});

test("without metrics there is no /metrics", async () => {
  const { ask } = await watchedBroker({ services: [lab().service] });
  expect((await ask("GET", "/metrics")).status).toBe(404);
  expect((await ask("GET", "/metrics", { as: watcher })).status).toBe(401);
});

test("/readyz is open to all if the operator says so; /metrics is not", async () => {
  const seen = metrics({ process: false });
  const options = { openReadiness: true, metrics: seen };
  const { ask } = await watchedBroker({ services: [lab().service], observe: seen.observe }, options);
  expect((await ask("GET", "/readyz", { as: null })).status).toBe(200);
  expect((await ask("GET", "/metrics", { as: null })).status).toBe(401);
});

test("/readyz: 503 with the reason when the store refuses, when it hangs, and 200 again after", async () => {
  const store = faultyStore(memoryStore());
  const { ask } = await watchedBroker({ services: [lab().service], store });
  store.breakDown("refused");
  const refused = await ask("GET", "/readyz");
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { status: "not ready", reasons: ["the store does not answer"] },
  ]);
  store.breakDown("hangs");
  const asked = () => store.calls.filter(({ method }) => method === "read").length;
  const before = asked();
  const hanging = await Promise.all(Array.from({ length: 5 }, () => ask("GET", "/readyz")));
  expect(hanging.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
  for (const answer of hanging)
    expect(await answer.json()).toEqual({
      status: "not ready",
      reasons: [expect.stringMatching(/not answered within/)],
    });
  // Probes do not pile up in a store that hangs.
  expect(asked() - before).toBe(1);
  store.comeBack();
  await expect.poll(async () => (await ask("GET", "/readyz")).status).toBe(200);
});

test("/readyz and the metric tell of a store that answers and takes no writes, once one has failed, until one succeeds", async () => {
  const { service } = lab();
  const store = faultyStore(memoryStore());
  const seen = metrics({ process: false });
  const options = { services: [service], store, observe: seen.observe, journal: { timeoutMs: 200 } };
  const { ask } = await watchedBroker(options, { metrics: seen });
  const up = async () => /^osbert_store_up (\d)$/m.exec(await (await ask("GET", "/metrics")).text())?.[1];
  const commits = () => store.calls.filter(({ method }) => method === "commit").length;
  const before = commits();
  expect([(await ask("GET", "/readyz")).status, await up()]).toEqual([200, "1"]);
  // In peace nothing is written for it.
  expect(commits()).toBe(before);

  store.breakDown("refused", ["commit"]);
  const body = { service_id: ids.service, plan_id: ids.large, organization_guid: "o", space_guid: "s" };
  expect((await ask("PUT", "/v2/service_instances/i?accepts_incomplete=true", { body })).status).toBe(503);
  const refused = await ask("GET", "/readyz");
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { status: "not ready", reasons: [expect.stringMatching(/does not take what is written|not answered within/)] },
  ]);
  expect(await up()).toBe("0");
  store.comeBack();
  await expect.poll(async () => (await ask("GET", "/readyz")).status, { timeout: 10_000 }).toBe(200);
  expect(await up()).toBe("1");
});

test("/readyz: 503 while the disk is full, and 200 when there is room again", async () => {
  const folder = mkdtempSync(join(tmpdir(), "osbert-full-"));
  const path = join(folder, "broker.db");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { service } = lab();
  const store = sqliteStore(path, { maxPages: 150 });
  const { ask } = await watchedBroker({ services: [service], store, journal: { timeoutMs: 200 } });
  const parameters = { text: "x".repeat(20_000) };
  const body = {
    service_id: ids.service,
    plan_id: ids.large,
    organization_guid: "o",
    space_guid: "s",
    parameters,
  };
  const isReady = async () => (await ask("GET", "/readyz")).status;
  // On a busy machine a request may take too long, too: that alone is no full disk.
  for (let n = 0; n < 200 && (await isReady()) === 200; n++) {
    const { status } = await ask("PUT", `/v2/service_instances/i${n}?accepts_incomplete=true`, { body });
    expect([202, 503]).toContain(status);
  }
  expect(await isReady()).toBe(503);
  // The disk grows: past the store, which may not.
  const database = new Database(path, { timeout: 5_000 });
  for (const table of ["entry", "part"]) database.exec(`delete from ${table} where resource <= 12`);
  database.close();
  await expect.poll(isReady, { timeout: 10_000 }).toBe(200);
});

test("/readyz: 503 before the start, and from the moment that a stop is announced, while requests are still answered", async () => {
  const broker = createBroker({ stderr: "nothing", services: [lab().service], store: memoryStore() });
  const handle = fetchHandler(broker, { credentials: "none" });
  const ready = async () => {
    const answer = await handle(new Request("http://broker.example/readyz"));
    return [answer.status, ((await answer.json()) as { reasons?: string[] }).reasons];
  };
  expect(await ready()).toEqual([503, ["the broker is starting"]]);
  await broker.start();
  expect(await ready()).toEqual([200, undefined]);
  broker.announceStop();
  expect(await ready()).toEqual([503, ["the broker is stopping"]]);
  const headers = { "x-broker-api-version": "2.17" };
  const catalog = await handle(new Request("http://broker.example/v2/catalog", { headers }));
  expect(catalog.status).toBe(200);
  await broker.stop();
  expect(await ready()).toEqual([503, ["the broker is stopping"]]);
});
