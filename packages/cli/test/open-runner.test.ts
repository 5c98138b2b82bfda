import { randomUUID } from "node:crypto";
import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Job, Runner } from "@osbert/bundles";
import { pino } from "pino";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { bundleSpec, limits } from "../../bundles/test/bundle-jobs.js";
import { openTestEngine, type TestEngine, testEngineLeftOut } from "../../bundles/test/test-engine.js";
import { openRunner } from "../src/serve/open-runner.js";
import type { Settings } from "../src/settings/table.js";

// Which jobs a broker finds again after a restart with other settings, or where something of the machine does not answer.

const { signal } = new AbortController();
let engine: TestEngine;

interface Place {
  readonly directory: string;
  readonly program: string;
  /** While this file is there the engine does not answer. */
  readonly down: string;
}

async function place(): Promise<Place> {
  const directory = join(engine.home, randomUUID());
  await mkdir(join(directory, "bundle"), { recursive: true });
  await writeFile(join(directory, "bundle/run"), "until [ -e /bundle/leave ] || [ -e ./leave ]; do sleep 0.1; done\n");
  const [program, down] = [join(directory, "engine"), join(directory, "down")];
  const script = `#!/bin/sh\nif [ -e ${down} ]; then echo "cannot connect" >&2; exit 1; fi\nexec podman "$@"\n`;
  await writeFile(program, script, { mode: 0o755 });
  return { directory, program, down };
}

async function open({ directory, program }: Place, part: Partial<Settings["bundles"]>): Promise<Runner> {
  const { engineArguments, runArguments } = engine;
  const containers = { program, arguments: engineArguments, runArguments, image: "localhost/base:1" };
  const bundles = { runner: "process", unsandboxed: true, concurrency: 4, containers, ...part };
  const files = async () => join(directory, "bundle");
  return openRunner({ bundles } as unknown as Settings, directory, files, pino({ enabled: false }));
}

function job(part: Partial<Job> = {}): Job {
  return {
    id: randomUUID(),
    action: "provision",
    spec: bundleSpec({ command: ["bash", "./run"] }),
    artifact: { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` },
    input: {},
    limits,
    operation: null,
    ...part,
  };
}

/** Starts a job that runs until the end of the test. */
async function running(runner: Runner, each: Job): Promise<void> {
  await runner.start(each, signal);
  onTestFinished(() => runner.stop(each.id));
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
}

if (required("podman", testEngineLeftOut())) {
  beforeAll(async () => {
    engine = await openTestEngine();
    await engine.image("localhost/base:1", null);
  });
  afterAll(() => engine.remove());

  test("a job in a container is found again although the engine does not answer at the restart", async () => {
    const at = await place();
    const before = await open(at, { runner: "container" });
    const each = job();
    await running(before, each);
    await writeFile(at.down, "");
    for (const runner of ["container", "process"] as const) {
      const after = await open(at, { runner });
      expect(after.place).toBe(before.place);
      expect(await after.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
      const image = job({ artifact: { kind: "image", image: "localhost/base", digest: `sha256:${"0".repeat(64)}` } });
      await expect(after.start(image, signal)).rejects.toMatchObject({ failure: "no engine" });
    }
    await rm(at.down);
  });

  test("an engine that is named and has never answered is told at the start", async () => {
    const at = await place();
    await writeFile(at.down, "");
    await expect(open(at, {})).rejects.toMatchObject({ failure: "no engine" });
    await expect(access(join(at.directory, "containers"))).rejects.toThrow();
  });

  test("a job that runs as a process is found again when all bundles are to run in containers", async () => {
    const at = await place();
    const before = await open(at, { runner: "process" });
    const each = job();
    await running(before, each);
    const after = await open(at, { runner: "container" });
    expect(after.place).toBe(before.place);
    expect(await after.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "running" });
    expect(await after.jobs()).toEqual([{ id: each.id, operation: null }]);
    const other = job();
    await running(after, other);
    const containers = () => engine.run("ps", "--quiet", "--filter", `label=osbert.job=${other.id}`);
    await expect.poll(containers, { timeout: 30_000 }).not.toBe("");
  });
}
