import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { required } from "../../../tools/required.js";
import { endOf, noOutput, readOutput } from "../src/runners/action-output.js";
import { openContainerRunner } from "../src/runners/container-runner.js";
import type { Job, JobLimits, Runner } from "../src/runners/runner.js";
import type { RunnerError } from "../src/runners/runner-error.js";
import type { Digest } from "../src/sources/source.js";
import { bundleSpec, limits } from "./bundle-jobs.js";
import { openTestEngine, type TestEngine, testEngineLeftOut } from "./test-engine.js";

// What becomes of jobs in containers when the engine fails at a bad moment, and of classic bundles that hand over too much.

const { signal } = new AbortController();
const patience = { timeout: 30_000 };

let engine: TestEngine;

/** Podman, until a file is there: then it does not answer, and writes into the file what it was asked. What runs goes on. */
async function fallible(): Promise<{ readonly program: string; readonly down: string }> {
  const folder = join(engine.home, randomUUID());
  await mkdir(folder);
  const [program, down] = [join(folder, "engine"), join(folder, "down")];
  const script = `#!/bin/sh
if [ -e ${down} ]; then echo "$*" >>${down}; echo "cannot connect to the daemon" >&2; exit 1; fi
exec podman "$@"
`;
  await writeFile(program, script, { mode: 0o755 });
  return { program, down };
}

async function open(program: string, directory = join(engine.home, randomUUID()), unanswered = false): Promise<Runner> {
  return openContainerRunner({
    engine: program,
    engineArguments: engine.engineArguments,
    runArguments: engine.runArguments,
    directory,
    files: async ({ digest }) => digest,
    baseImage: "localhost/base:1",
    graceMs: 500,
    unanswered,
  });
}

async function job(program: string, part: Partial<Job> = {}, limit: Partial<JobLimits> = {}): Promise<Job> {
  const folder = join(engine.home, randomUUID());
  await mkdir(folder);
  await writeFile(join(folder, "run"), program);
  return {
    id: randomUUID(),
    action: "provision",
    spec: bundleSpec({ command: ["bash", "./run"] }),
    // The runner of these tests finds a bundle by its folder.
    artifact: { kind: "files", repository: "x", digest: folder as `sha256:${string}` },
    input: {},
    limits: { ...limits, ...limit },
    operation: null,
    ...part,
  };
}

/** A classic bundle, by the programs of its image. */
async function classic(entrypoint: string, credentials: string): Promise<Partial<Job>> {
  const folder = join(engine.home, randomUUID());
  await mkdir(join(folder, "opt"), { recursive: true });
  await writeFile(join(folder, "opt/entrypoint"), `#!/bin/bash\n${entrypoint}\n`, { mode: 0o755 });
  await writeFile(join(folder, "opt/broker-bind-creds"), `#!/bin/bash\n${credentials}\n`, { mode: 0o755 });
  const changes = ['ENTRYPOINT ["/opt/entrypoint"]', "ENV PATH=/opt:/usr/bin:/bin"];
  const image = await engine.image(`localhost/classic-${randomUUID()}`, folder, changes);
  const digest = (await engine.run("image", "inspect", "--format", "{{.Digest}}", image)) as Digest;
  const spec = bundleSpec({ format: "apb", runtime: 1, command: null });
  return { action: "bind", spec, artifact: { kind: "image", image, digest } };
}

async function runs({ id }: Job): Promise<boolean> {
  return (await engine.run("ps", "--quiet", "--filter", `label=osbert.job=${id}`)) !== "";
}

async function killScript(directory: string, { id }: Job): Promise<void> {
  const [pid] = (await readFile(join(directory, "jobs", id, "claim"), "utf8")).split(" ");
  // With it goes the engine's program, and the container stays: as when the broker's unit is killed.
  process.kill(Number(pid), "SIGKILL");
}

if (required("podman", testEngineLeftOut())) {
  beforeAll(async () => {
    engine = await openTestEngine();
    await engine.image("localhost/base:1", null);
  });
  afterAll(() => engine.remove());

  test("a job whose container cannot be removed is not called lost, and is when it can", async () => {
    const { program, down } = await fallible();
    const directory = join(engine.home, randomUUID());
    const runner = await open(program, directory);
    const each = await job("sleep 300");
    await runner.start(each, signal);
    await expect.poll(() => runs(each), patience).toBe(true);
    await writeFile(down, "");
    await killScript(directory, each);
    const look = () => runner.look(each.id, { waitMs: 0, signal });
    const seen = () =>
      look().then(
        ({ kind }) => kind,
        ({ failure }: RunnerError) => failure,
      );
    await expect.poll(seen, patience).not.toBe("running");
    expect(await seen()).toBe("not stopped");
    expect(await runner.jobs()).toEqual([{ id: each.id, operation: null }]);
    // Nor does it keep a broker from starting.
    await utimes(join(directory, "jobs", each.id, "exit"), new Date(0), new Date(0));
    await open(program, directory, true);
    await expect(runner.stop(each.id)).rejects.toMatchObject({ failure: "not stopped" });
    expect(await runs(each)).toBe(true);
    await rm(down);
    expect(await look()).toMatchObject({ kind: "lost" });
    expect(await runs(each)).toBe(false);
  });

  test("a job that is stopped while the engine does not answer has ended when its container is gone", async () => {
    const { program, down } = await fallible();
    const runner = await open(program);
    const each = await job("trap '' TERM; sleep 300");
    await runner.start(each, signal);
    await expect.poll(() => runs(each), patience).toBe(true);
    await writeFile(down, "");
    const stopped = runner.stop(each.id);
    // Podman's program was killed after the grace, and has left the container.
    await expect.poll(() => readFile(down, "utf8"), patience).toContain("rm --force");
    expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    expect(await runs(each)).toBe(true);
    await rm(down);
    await stopped;
    expect(await runner.look(each.id, { waitMs: 0, signal })).toMatchObject({ kind: "ended", cause: "stopped" });
    expect(await runs(each)).toBe(false);
  });

  test("a classic bundle that waits for its credentials to be fetched, and has none to give, is told as that when its time is over", async () => {
    const runner = await open("podman");
    const each = await job("", await classic("sleep 300", "exit 7"), { timeoutMs: 3_000 });
    await runner.start(each, signal);
    const state = await runner.look(each.id, { waitMs: 30_000, signal });
    expect(state).toMatchObject({ kind: "ended", cause: "timeout" });
    const { lines } = await runner.output(each.id, 0);
    const reason =
      "the bundle took longer than it may, and was ended: broker-bind-creds has printed no credentials until then";
    expect(endOf(state, readOutput(noOutput, lines))).toEqual({ kind: "failed", reason });
  });

  test("credentials of a classic bundle that have no end are output beyond its limit: they end the action", async () => {
    const directory = join(engine.home, randomUUID());
    const runner = await open("podman", directory);
    const endless = await classic("sleep 300", "while :; do echo YWJj; done");
    const each = await job("", endless, { outputBytes: 100_000 });
    await runner.start(each, signal);
    const state = await runner.look(each.id, { waitMs: 30_000, signal });
    expect(state).toMatchObject({ kind: "ended", cause: "output" });
    expect(await bytesIn(join(directory, "jobs", each.id))).toBeLessThan(200_000);
  });

  test("so is a state that has no end", async () => {
    const directory = join(engine.home, randomUUID());
    const runner = await open("podman", directory);
    const endless = await classic(
      'while :; do head -c 65536 /dev/zero >>"$BUNDLE_STATE_LOCATION/x"; sleep 0.01; done',
      "",
    );
    const each = await job("", endless, { outputBytes: 100_000, timeoutMs: 20_000 });
    await runner.start(each, signal);
    const state = await runner.look(each.id, { waitMs: 30_000, signal });
    expect(state).toMatchObject({ kind: "ended", cause: "output" });
  });
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  // Pipes go when the end of the job is told.
  const sizeOf = async (name: string) => (await stat(join(folder, name)).catch(() => ({ size: 0 }))).size;
  const sizes = await Promise.all(names.map(sizeOf));
  return sizes.reduce((sum, size) => sum + size, 0);
}
