import { memoryStore } from "@osbert/journal/memory";
import { faultyStore, manualClock } from "@osbert/journal/testing";
import { expect, test } from "vitest";
import type { InstanceInfo, Work } from "../../src/index.js";
import { metricDefinitions, metrics } from "../../src/observe/index.js";
import { bindBody, gate, ids, lab, provisionBody } from "../lab.js";
import { type WatchedBroker, watchedBroker, watcher } from "./watched-broker.js";

/** What a scrape says: series → value. */
async function scrape({ ask }: WatchedBroker): Promise<ReadonlyMap<string, number>> {
  const answer = await ask("GET", "/metrics", { as: watcher });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const series = new Map<string, number>();
  for (const line of (await answer.text()).split("\n")) {
    const match = /^([a-z_]+(?:\{[^}]*\})?) (\S+)$/.exec(line);
    if (match !== null) series.set(match[1] ?? "", Number(match[2]));
  }
  return series;
}

const instance = "/v2/service_instances/i1";
const asynchronously = "?accepts_incomplete=true";

test("known traffic gives known counts: requests, operations, steps, retries, store", async () => {
  const laboratory = lab();
  let failures = 2;
  laboratory.behave.provision = () => {
    if (failures-- > 0) throw new Error("flaky");
  };
  const seen = metrics();
  const watched = await watchedBroker(
    { services: [laboratory.service], observe: seen.observe, journal: { random: () => 0 } },
    { metrics: seen },
  );
  const { ask, settles } = watched;
  for (let times = 0; times < 3; times++) expect((await ask("GET", "/v2/catalog")).status).toBe(200);
  expect((await ask("GET", "/v2/catalog", { as: null })).status).toBe(401);
  expect((await ask("PUT", instance + asynchronously, { body: provisionBody })).status).toBe(202);
  expect(await settles(instance)).toBe("succeeded");
  expect((await ask("PUT", instance + asynchronously, { body: { ...provisionBody, plan_id: ids.large } })).status).toBe(
    409,
  );
  expect((await ask("PUT", `${instance}2`, { body: { ...provisionBody, service_id: "none such" } })).status).toBe(400);
  expect((await ask("PUT", `${instance}/service_bindings/b1`, { body: bindBody })).status).toBe(201);
  expect((await ask("PATCH", instance, { body: { service_id: ids.service } })).status).toBe(200);

  const found = await scrape(watched);
  const requests = (labels: string) => found.get(`osbert_requests_total{${labels}}`);
  expect(requests('verb="catalog",service="none",plan="none",status="200"')).toBe(3);
  expect(requests('verb="none",service="none",plan="none",status="401"')).toBe(1);
  expect(requests('verb="provision",service="lab",plan="small",status="202"')).toBe(1);
  expect(requests('verb="provision",service="lab",plan="large",status="409"')).toBe(1);
  expect(requests('verb="provision",service="unknown",plan="unknown",status="400"')).toBe(1);
  expect(requests('verb="bind",service="lab",plan="small",status="201"')).toBe(1);
  expect(found.get('osbert_request_duration_seconds_count{verb="catalog",service="none",plan="none"}')).toBe(3);
  const of = 'service="lab",plan="small"';
  expect(found.get(`osbert_operations_accepted_total{kind="provision",${of}}`)).toBe(1);
  expect(found.get(`osbert_operations_total{kind="provision",${of},outcome="succeeded"}`)).toBe(1);
  expect(found.get(`osbert_operations_total{kind="bind",${of},outcome="succeeded"}`)).toBe(1);
  expect(found.get(`osbert_operation_duration_seconds_count{kind="bind",${of},outcome="succeeded"}`)).toBe(1);
  expect(found.get(`osbert_operation_retries_total{kind="provision",${of}}`)).toBe(2);
  expect(found.get('osbert_step_duration_seconds_count{kind="provision",service="lab",step="create"}')).toBe(1);
  expect(found.get('osbert_store_duration_seconds_count{call="commit"}')).toBeGreaterThanOrEqual(4);
  expect(found.get("osbert_store_up")).toBe(1);
  expect(found.get('osbert_operations_open{service="lab"}')).toBe(0);
  expect(found.get("osbert_operations_waiting")).toBe(0);
  expect(found.get('osbert_oldest_operation_age_seconds{service="lab"}')).toBe(0);
  expect(found.get("process_resident_memory_bytes")).toBeGreaterThan(0);
});

test("what is open, waits, is stuck and how old it is, is told of now; a finished instance is not", async () => {
  const opens = gate();
  const { service, done } = lab({
    async provision(work: Work, { instance: { id } }: { instance: InstanceInfo }) {
      done.push(id);
      if (id === "runs") await opens.wait();
      if (id === "sleeps") await work.sleep("a day", 86_400_000);
      if (id === "fails") throw new Error("never");
    },
  });
  const seen = metrics({ process: false });
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  const options = { services: [service], observe: [seen.observe], store, journal: { clock } };
  const watched = await watchedBroker(options, { metrics: seen });
  for (const id of ["done", "sleeps", "fails", "runs"]) {
    await watched.ask("PUT", `/v2/service_instances/${id}${asynchronously}`, { body: provisionBody });
    await expect.poll(() => done).toContain(id);
  }
  expect(await watched.settles("/v2/service_instances/done")).toBe("succeeded");
  expect((await scrape(watched)).get('osbert_operations_stuck{service="lab"}')).toBe(0);
  await clock.advance(60_000);

  const found = await scrape(watched);
  expect(found.get('osbert_operations_stuck{service="lab"}')).toBe(1);
  expect(found.get('osbert_operations_open{service="lab"}')).toBe(3);
  expect(found.get('osbert_operations_open{service="unknown"}')).toBe(0);
  expect(found.get("osbert_operations_running")).toBe(1);
  expect(found.get("osbert_operations_waiting")).toBe(2);
  expect(found.get('osbert_oldest_operation_age_seconds{service="lab"}')).toBe(60);
  expect(found.get('osbert_backlog_complete{service="lab"}')).toBe(1);
  expect(found.has("process_resident_memory_bytes")).toBe(false);
  opens.open();
  expect(await watched.settles("/v2/service_instances/runs")).toBe("succeeded");
  expect((await scrape(watched)).get('osbert_operations_open{service="lab"}')).toBe(2);
});

test("a store that does not answer is told, and does not hold the scrape up", async () => {
  const store = faultyStore(memoryStore());
  const seen = metrics({ process: false });
  const watched = await watchedBroker({ services: [lab().service], observe: seen.observe, store }, { metrics: seen });
  store.breakDown("hangs");
  const hanging = await scrape(watched);
  expect(hanging.get("osbert_store_up")).toBe(0);
  expect([...hanging.keys()].filter((name) => name.startsWith("osbert_operations_open"))).toEqual([]);
  store.comeBack();
  store.breakDown("refused", ["read"]);
  expect((await watched.ask("GET", instance)).status).toBe(503);
  const refused = await scrape(watched);
  expect(refused.get('osbert_store_failures_total{call="read"}')).toBeGreaterThanOrEqual(1);
  expect(refused.get("osbert_store_up")).toBe(0);
  store.comeBack();
});

test("however many names come from outside or from authors, the number of series is bounded", async () => {
  const laboratory = lab();
  laboratory.behave.provision = async (work) => {
    for (let number = 0; number < 250; number++) await work.step(`step ${number}`, () => number);
    return undefined;
  };
  const seen = metrics({ process: false });
  const watched = await watchedBroker({ services: [laboratory.service], observe: seen.observe }, { metrics: seen });
  const { ask, settles } = watched;
  for (let number = 0; number < 20; number++) {
    const body = { ...provisionBody, service_id: `s${number}`, plan_id: `p${number}` };
    await ask("PUT", `/v2/service_instances/many${number}`, { body });
    await ask("GET", `/nowhere/${number}`);
  }
  await ask("PUT", instance + asynchronously, { body: provisionBody });
  expect(await settles(instance)).toBe("succeeded");
  const names = [...(await scrape(watched)).keys()];
  expect(names.filter((name) => name.startsWith("osbert_requests_total")).length).toBeLessThan(6);
  const steps = names.filter((name) => name.startsWith("osbert_step_duration_seconds_count"));
  expect(steps).toHaveLength(201);
  expect(steps.some((name) => name.includes('step="other"'))).toBe(true);
});

test("every metric of the table is registered, and no other of the broker's", async () => {
  const { registry } = metrics();
  const registered = registry.getMetricsAsArray().map(({ name }) => name);
  const own = registered.filter((name) => name.startsWith("osbert_"));
  expect(own.sort()).toEqual(
    Object.values(metricDefinitions)
      .map(({ name }) => name)
      .sort(),
  );
});
