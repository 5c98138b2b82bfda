import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createBroker, type Work } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import { testBroker } from "@osbert/broker/testing";
import { type Json, type Look, openJournal } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { OrphanedJobs } from "../src/catalog/orphaned-jobs.js";
import { stopJobsOf } from "../src/catalog/run-action.js";
import { openProcessRunner, type Runner, RunnerError } from "../src/index.js";
import { bundleSpec, limits } from "./bundle-jobs.js";
import { bundleFolder, folderServices } from "./folder-services.js";

const patience = { timeout: 30_000 };
const ann = { actor: { type: "operator", subject: "ann" } } as const;
const description = `
osbert: 1
name: slow
version: 1.0.0
description: Its update ends when the file go is there
bindable: true
command: [sh, ./run.sh]
plans:
  small:
    description: A small one
    free: true
`;

/** Each update leaves a line with its process, and waits. */
async function slowBundle() {
  const [bundles, work] = [await bundleFolder(), await bundleFolder()];
  await mkdir(join(bundles, "slow"));
  await writeFile(join(bundles, "slow", "osbert.yaml"), description);
  const wait = `echo $$ >>'${work}/pids'; i=0; while [ ! -e '${work}/go' ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done`;
  await writeFile(join(bundles, "slow", "run.sh"), `case "$1" in update) ${wait};; esac\nexit 0\n`);
  const pids = async () =>
    (await readFile(join(work, "pids"), "utf8").catch(() => "")).split("\n").filter(Boolean).map(Number);
  return { bundles, work, pids };
}

const isAlive = (pid: number) => existsSync(`/proc/${pid}`);

/** So that an operation is nearly always asleep: a look waits for nothing. */
async function impatient(opening: Promise<Runner>): Promise<Runner> {
  const runner = await opening;
  return {
    name: runner.name,
    place: runner.place,
    start: (job, signal) => runner.start(job, signal),
    look: (id, { signal }) => runner.look(id, { waitMs: 0, signal }),
    jobs: () => runner.jobs(),
    output: (id, from) => runner.output(id, from),
    log: (id, lastBytes) => runner.log(id, lastBytes),
    stop: (id) => runner.stop(id),
    forget: (id) => runner.forget(id),
  };
}

async function startBroker(
  bundles: string,
  data: string,
): Promise<{ readonly process: ChildProcess; readonly url: string }> {
  const fixture = fileURLToPath(new URL("bundle-broker.fixture.ts", import.meta.url));
  const args = ["--conditions=@osbert/source", "--import", "tsx", fixture, bundles, data];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const url of createInterface({ input: child.stdout })) return { process: child, url };
  throw new Error("the broker ended before it answered");
}

async function ask({ url }: { readonly url: string }, method: string, path: string, body?: object) {
  const headers = { "x-broker-api-version": "2.17", "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they like.
  return { status: answer.status, body: (await answer.json()) as any };
}

async function offered(broker: { readonly url: string }) {
  await expect.poll(async () => (await ask(broker, "GET", "/v2/catalog")).status, patience).toBe(200);
  const { services } = (await ask(broker, "GET", "/v2/catalog")).body;
  return { service_id: services[0].id, plan_id: services[0].plans[0].id };
}

const instance = "/v2/service_instances/i1";
const update = `${instance}?accepts_incomplete=true`;
const wanted = { organization_guid: "o", space_guid: "s" };

test("a cancel while the operation rests between two looks stops the bundle, and the next update does not meet it", async () => {
  const { bundles, work, pids } = await slowBundle();
  const services = await folderServices(bundles, {
    runner: (files) =>
      impatient(openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true, graceMs: 500 })),
  });
  const broker = createBroker({ services, store: memoryStore(), stderr: "nothing" });
  const served = await serve(broker, { port: 0, credentials: "none" });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const ids = await offered(served);
  expect((await ask(served, "PUT", instance, { ...ids, ...wanted })).status).toBe(201);
  const asked = await ask(served, "PATCH", update, { ...ids, parameters: { a: 1 } });
  expect(asked.status).toBe(202);
  await expect.poll(async () => (await pids()).length, patience).toBe(1);
  const by = { operator: "ann", reason: "enough", requestId: null };
  await broker.operator.cancel({ platform: "", instance: "i1" }, asked.body.operation, by);
  const state = async () => (await ask(served, "GET", `${instance}/last_operation`)).body.state;
  await expect.poll(state, patience).toBe("failed");
  // At once: whatever is left of the first one has ended before the second begins.
  expect((await ask(served, "PATCH", update, { ...ids, parameters: { a: 2 } })).status).toBe(202);
  await expect.poll(async () => (await pids()).length, patience).toBe(2);
  const [first = 0, second = 0] = await pids();
  expect([isAlive(first), isAlive(second)]).toEqual([false, true]);
  await writeFile(join(work, "go"), "");
  await expect.poll(state, patience).toBe("succeeded");
});

test("a bundle whose broker was killed, and whose operation was cancelled meanwhile, is stopped by the next broker", async () => {
  const { bundles, work, pids } = await slowBundle();
  const first = await startBroker(bundles, work);
  const ids = await offered(first);
  expect((await ask(first, "PUT", instance, { ...ids, ...wanted })).status).toBe(201);
  const updated = await ask(first, "PATCH", update, { ...ids, parameters: { a: 1 } });
  expect(updated.status).toBe(202);
  await expect.poll(async () => (await pids()).length, patience).toBe(1);
  const [pid = 0] = await pids();
  first.process.kill("SIGKILL");
  await new Promise((settle) => first.process.once("exit", settle));

  const store = sqliteStore(join(work, "broker.db"));
  const journal = await openJournal({ store, kinds: {} });
  expect(await journal.cancel("/i1", updated.body.operation, "enough", ann)).toBe(true);
  await journal.stop();
  expect(isAlive(pid)).toBe(true);

  const second = await startBroker(bundles, work);
  await expect
    .poll(async () => (await ask(second, "GET", `${instance}/last_operation`)).body.state, patience)
    .toBe("failed");
  await expect.poll(() => isAlive(pid), patience).toBe(false);
});

test("what a bundle says last, when its provision is deleted under it, is told to its deprovision, and nothing of the job is kept", async () => {
  const { bundles, work } = await slowBundle();
  const say = (state: string) => `echo '{"state":{"${state}":true}}'`;
  const provision = `trap "${say("late").replaceAll('"', '\\"')}; exit 1" TERM; ${say("made")}; touch '${work}/began'; sleep 60 & wait`;
  // Once it fails: what was said is known to the second deprovision, too.
  const deprovision = `cat >>'${work}/asked'; [ -e '${work}/go' ]`;
  const program = `case "$1" in provision) ${provision};; deprovision) ${deprovision};; esac\n`;
  await writeFile(join(bundles, "slow", "run.sh"), program);
  const directory = join(work, "jobs");
  const services = await folderServices(bundles, {
    runner: (files) => openProcessRunner({ directory, files, unsandboxed: true, graceMs: 5_000 }),
  });
  const served = await serve(createBroker({ services, store: memoryStore(), stderr: "nothing" }), {
    ...{ port: 0, credentials: "none" },
  });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const ids = await offered(served);
  const asked = await ask(served, "PUT", update, { ...ids, ...wanted, parameters: { password: "s3cret" } });
  expect(asked.status).toBe(202);
  await expect.poll(() => existsSync(join(work, "began")), patience).toBe(true);
  const remove = async () => {
    const query = new URLSearchParams({ ...ids, accepts_incomplete: "true" });
    const { status, body } = await ask(served, "DELETE", `${instance}?${query}`);
    expect(status).toBe(202);
    const poll = `${instance}/last_operation?operation=${body.operation}`;
    const state = async () => (await ask(served, "GET", poll)).body.state ?? "gone";
    await expect.poll(state, patience).not.toBe("in progress");
    return state();
  };
  expect(await remove()).toBe("failed");
  await writeFile(join(work, "go"), "");
  expect(await remove()).toMatch(/gone|succeeded/);
  const inputs = (await readFile(join(work, "asked"), "utf8")).trim().split("\n");
  const states = inputs.map((input) => JSON.parse(input).state);
  expect(states).toEqual([
    { made: true, late: true },
    { made: true, late: true },
  ]);
  const [job = ""] = (await readdir(join(directory, "jobs"))).filter((name) => name.includes("-provision-"));
  expect((await readdir(join(directory, "jobs", job))).sort()).toEqual(["claim", "exit", "job.json", "log"]);
});

test("what a cancelled job was given and has said is forgotten some time later, however often the process that asks is another one", async () => {
  const directory = await bundleFolder();
  await writeFile(join(directory, "run"), 'echo \'{"state":{"a":1}}\'; sleep 60\n');
  const open = () =>
    openProcessRunner({
      ...{ directory: join(directory, "jobs"), files: async () => directory, unsandboxed: true, graceMs: 500 },
    });
  const { signal } = new AbortController();
  const runner = await open();
  const operation = { key: "/i1", id: "cancelled" };
  const part = {
    id: "cancelled-update-1",
    action: "update",
    operation,
    input: { parameters: { a: "s3cret" } },
  } as const;
  const spec = bundleSpec({ command: ["sh", "./run"] });
  const artifact = { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` } as const;
  await runner.start({ ...part, spec, artifact, limits }, signal);
  // Killed when it was stopped, and before anything else.
  await runner.stop(part.id);
  let now = 1_000_000;
  const over = { ...operation, kind: "update", part: null, status: "cancelled", open: null, outcome: null } as const;
  const ended = { ...over, endedAt: now };
  const other = await open();
  const newProcess = () =>
    new OrphanedJobs({ runner: () => other, journal: () => ({ operation: async () => ended, now: () => now }) });
  const kept = () => readdir(join(directory, "jobs/jobs", part.id));
  await newProcess().stop();
  now += 86_399_999;
  await newProcess().stop();
  expect(await kept()).toContain("input.json");
  now += 1;
  await newProcess().stop();
  expect((await kept()).sort()).toEqual(["claim", "exit", "job.json", "log"]);
  expect(await other.jobs()).toEqual([]);
});

test("a second provision of an instance, after one that failed and after a deprovision, has a job of its own", async () => {
  const { bundles, work } = await slowBundle();
  const program = `case "$1" in provision) cat >>'${work}/asked'; [ -e '${work}/go' ];; esac\n`;
  await writeFile(join(bundles, "slow", "run.sh"), program);
  const directory = join(work, "jobs");
  const services = await folderServices(bundles, {
    runner: (files) => openProcessRunner({ directory, files, unsandboxed: true }),
  });
  const served = await serve(createBroker({ services, store: memoryStore(), stderr: "nothing" }), {
    ...{ port: 0, credentials: "none" },
  });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const ids = await offered(served);
  const provision = async () => (await ask(served, "PUT", instance, { ...ids, ...wanted })).status;
  expect(await provision()).toBe(500);
  await writeFile(join(work, "go"), "");
  expect(await provision()).toBe(201);
  expect((await ask(served, "DELETE", `${instance}?${new URLSearchParams(ids)}`)).status).toBe(200);
  expect(await provision()).toBe(201);
  const inputs = (await readFile(join(work, "asked"), "utf8")).trim().split("\n");
  expect(new Set(inputs.map((input) => JSON.parse(input).idempotencyKey)).size).toBe(3);
  const jobs = (await readdir(join(directory, "jobs"))).filter((name) => name.includes("-provision-"));
  expect(jobs).toHaveLength(3);
});

test.each([
  ["had been started", { "start 1": true }, true],
  ["had been started, and the second was given up", { "begun 1": true, "start 1": false }, true],
  ["had ended", { "end 1": null }, true],
  ["was never started", {}, false],
  ["was never started, and given up", { "start 1": false }, false],
])("of two provisions whose steps have the same names, the job of the first %s", async (_, first, hasBegun) => {
  const directory = await bundleFolder();
  const files = async () => directory;
  const runner = await openProcessRunner({ directory: join(directory, "jobs"), files, unsandboxed: true });
  // The second one has recorded its job over the first one's, and could not start it.
  const job = { id: "second-provision-1", place: runner.place, timeoutMs: 60_000 };
  const steps = new Map<string, Json>(Object.entries({ "job 1": job, ...first }));
  const { signal } = new AbortController();
  const look = async (_name: string, once: (look: Look) => unknown) => once({ looks: 0, elapsedMs: 0, signal });
  const operation = { poll: look as Work["poll"], describe: () => undefined };
  const nothingSaid = async () => expect.unreachable("nothing of it ran");
  expect(await stopJobsOf({ runner }, operation, steps, nothingSaid)).toBe(hasBegun);
});

test.each([
  ["was tried", "tried"],
  ["was tried and given up", "given up"],
] as const)(
  "an instance whose bundle %s, and could never be started, is deleted without a run of it",
  async (_, until) => {
    const { bundles } = await slowBundle();
    const asked: string[] = [];
    const givenUp: string[] = [];
    const runner: Runner = {
      ...{ name: "none", place: "here", jobs: async () => [], log: async () => "" },
      start: async ({ action }) => {
        asked.push(action);
        throw new RunnerError("image forbidden", "the registry wants a password");
      },
      look: async () => ({ kind: "unknown" }),
      output: async (_id, from) => ({ lines: [], next: from }),
      stop: async (id) => void givenUp.push(id),
      forget: async () => undefined,
    };
    const flow = await testBroker({ services: await folderServices(bundles, { runner: async () => runner }) });
    onTestFinished(() => flow.stop());
    await expect.poll(async () => (await flow.request("GET", "/v2/catalog")).status, patience).toBe(200);
    expect((await flow.provision("i1")).status).toBe(202);
    const last = async () => (await flow.request("GET", "/v2/service_instances/i1/last_operation")).body;
    const later = async (state: () => Promise<unknown>, ms: number) => {
      await flow.advance(ms);
      return state();
    };
    const tries = async () => (until === "tried" ? asked.length : givenUp.length);
    await expect.poll(() => later(tries, 20_000), patience).toBeGreaterThan(0);
    const why = async () => (await last()).description;
    await expect.poll(() => later(why, 1_000), patience).toContain("wants a password");
    const { services } = (await flow.request("GET", "/v2/catalog")).body;
    const ids = { service_id: services[0].id, plan_id: services[0].plans[0].id };
    const query = new URLSearchParams({ ...ids, accepts_incomplete: "true" });
    await flow.request("DELETE", `/v2/service_instances/i1?${query}`);
    const state = async () => (await last()).state ?? "gone";
    await expect.poll(() => later(state, 1_000), patience).toMatch(/gone|succeeded/);
    expect(asked).not.toContain("deprovision");
  },
);
