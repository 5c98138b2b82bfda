import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createBroker, defineService } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import { expect, onTestFinished, test } from "vitest";
import { limitJobs, openProcessRunner, type Runner } from "../src/index.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const patience = { timeout: 50_000 };
const description = `
osbert: 1
name: slow
version: 1.0.0
description: Its provision ends when the file go is there
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;

/** Each provision leaves a line with where it runs, and waits. */
async function slowBundle() {
  const [bundles, work] = [await bundleFolder(), await bundleFolder()];
  await mkdir(join(bundles, "slow"));
  await writeFile(join(bundles, "slow", "osbert.yaml"), description);
  const wait = `i=0; while [ ! -e '${work}/go' ] && [ $i -lt 900 ]; do sleep 0.1; i=$((i+1)); done`;
  const script = `case "$1" in provision) echo "$OSBERT_INPUT" >>'${work}/runs'; ${wait};; esac\nexit 0\n`;
  await writeFile(join(bundles, "slow", "run.sh"), script);
  const runs = async () => (await readFile(join(work, "runs"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  const go = () => writeFile(join(work, "go"), "");
  onTestFinished(go);
  return { bundles, work, runs, go };
}

test("64 bundles at once wait for the places that the settings give them, and hold no other service up", async () => {
  const { bundles, work, runs, go } = await slowBundle();
  const quick = defineService({
    ...{ id: "quick-id", name: "quick", description: "In code", bindable: false },
    plans: { default: { id: "quick-plan", description: "The only one" } },
    provision: async () => ({}),
    deprovision: async () => undefined,
  });
  const services = await folderServices(bundles, {
    services: [quick],
    runner: async (files) =>
      limitJobs(await openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }), 4),
  });
  const broker = createBroker({ services, store: memoryStore(), stderr: "nothing" });
  const served = await serve(broker, { port: 0, credentials: "none" });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { "x-broker-api-version": "2.17", "content-type": "application/json" };
    const answer = await fetch(`${served.url}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they like.
    return { status: answer.status, body: (await answer.json()) as any };
  };
  type Offering = { readonly id: string; readonly name: string; readonly plans: readonly { readonly id: string }[] };
  const slow = async () =>
    ((await ask("GET", "/v2/catalog")).body.services as readonly Offering[]).find(({ name }) => name === "slow");
  await expect.poll(slow, patience).toBeDefined();
  const { id, plans } = (await slow()) as Offering;
  const wanted = { service_id: id, plan_id: plans[0]?.id, organization_guid: "o", space_guid: "s" };
  const names = Array.from({ length: 64 }, (_, at) => `i${at}`);
  for (const name of names)
    expect((await ask("PUT", `/v2/service_instances/${name}?accepts_incomplete=true`, wanted)).status).toBe(202);
  await expect.poll(async () => (await runs()).length, patience).toBe(4);

  const inCode = { ...wanted, service_id: "quick-id", plan_id: "quick-plan" };
  for (const name of ["q1", "q2", "q3"])
    expect((await ask("PUT", `/v2/service_instances/${name}`, inCode)).status).toBe(201);
  // All that while, nobody has got a fifth place.
  expect((await runs()).length).toBe(4);
  await go();
  for (const name of names) {
    const state = async () => (await ask("GET", `/v2/service_instances/${name}/last_operation`)).body.state;
    await expect.poll(state, patience).toBe("succeeded");
  }
  expect((await runs()).length).toBe(64);
}, 120_000);

test("a job at a place that does not come back is lost when its time limit is over, and only then started at another", async () => {
  const { bundles, work, runs } = await slowBundle();
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  /** A broker on a machine of its own, on the store that all share. */
  const startAt = async (machine: string) => {
    const services = await folderServices(bundles, {
      runner: async (files) =>
        impatient(await openProcessRunner({ directory: join(work, machine), files, unsandboxed: true })),
    });
    const started = await testBroker({ services, store, journal: { clock } });
    await expect.poll(async () => (await started.request("GET", "/v2/catalog")).status, patience).toBe(200);
    return started;
  };
  const first = await startAt("one");
  expect((await first.provision("i1")).status).toBe(202);
  await expect.poll(async () => (await runs()).length, patience).toBe(1);
  expect((await runs())[0]).toContain(join(work, "one"));
  const [stopped] = await Promise.all([first.stop(), clock.advance(60_000)]);
  expect(stopped).toBeUndefined();

  const flow = await startAt("other");
  onTestFinished(async () => void (await Promise.all([flow.stop(), clock.advance(60_000)])));
  const told = async () => {
    await clock.advance(10_000);
    return (await flow.lastOperation("i1")).body;
  };
  await expect
    .poll(told, patience)
    .toMatchObject({ state: "in progress", description: "waits for the machine that has begun it" });
  // The time limit is an hour.
  for (let minutes = 0; minutes < 55; minutes += 5) await clock.advance(300_000);
  expect((await runs()).length).toBe(1);
  const started = async () => {
    await clock.advance(60_000);
    return (await runs()).length;
  };
  await expect.poll(started, patience).toBe(2);
  expect((await runs())[1]).toContain(join(work, "other"));
}, 120_000);

test("a job that was started and not recorded as such is found by whoever comes back late, and not started again", async () => {
  const { bundles, work, runs, go } = await slowBundle();
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  const startAt = async (machine: string, change: (runner: Runner) => Runner) => {
    const services = await folderServices(bundles, {
      runner: async (files) =>
        change(impatient(await openProcessRunner({ directory: join(work, machine), files, unsandboxed: true }))),
    });
    const started = await testBroker({ services, store, journal: { clock } });
    await expect.poll(async () => (await started.request("GET", "/v2/catalog")).status, patience).toBe(200);
    return started;
  };
  const stop = (flow: { stop(): Promise<void> }) => Promise.all([flow.stop(), clock.advance(60_000)]);
  // It ends between the start and its record.
  const first = await startAt("one", (runner) => ({
    ...runner,
    async start(job, signal) {
      await runner.start(job, signal);
      await new Promise((_, fail) => signal.addEventListener("abort", () => fail(new Error("stopped"))));
    },
  }));
  expect((await first.provision("i1")).status).toBe(202);
  await expect.poll(async () => (await runs()).length, patience).toBe(1);
  await stop(first);
  const told = async (flow: typeof first) => {
    await clock.advance(10_000);
    return (await flow.lastOperation("i1")).body;
  };
  // The time for the start runs since somebody looked.
  const second = await startAt("other", (runner) => runner);
  await expect
    .poll(() => told(second), patience)
    .toMatchObject({ state: "in progress", description: "waits for the machine that has begun it" });
  await stop(second);
  await clock.advance(660_000);
  const back = await startAt("one", (runner) => runner);
  onTestFinished(async () => void (await stop(back)));
  for (let looks = 0; looks < 6; looks++) await told(back);
  await go();
  await expect.poll(async () => (await told(back)).state, patience).toBe("succeeded");
  expect(await runs()).toHaveLength(1);
}, 120_000);

/** Looks wait for nothing: the clock of the test stands still. */
function impatient(runner: Runner): Runner {
  return {
    ...{ name: runner.name, place: runner.place },
    start: (job, signal) => runner.start(job, signal),
    look: (id, { signal }) => runner.look(id, { waitMs: 0, signal }),
    jobs: () => runner.jobs(),
    output: (id, from) => runner.output(id, from),
    log: (id, lastBytes) => runner.log(id, lastBytes),
    stop: (id) => runner.stop(id),
    forget: (id) => runner.forget(id),
  };
}
