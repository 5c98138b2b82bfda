import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, readlink, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OrphanedJobs } from "../src/catalog/orphaned-jobs.js";
import type { BundleSpec } from "../src/formats/bundle-spec.js";
import { openContainerRunner, type Runner } from "../src/index.js";
import { livesFunction } from "../src/runners/jobs/job-script.js";
import { bundleSpec, limits } from "./bundle-jobs.js";
import { bundleFolder } from "./folder-services.js";

// Jobs in containers whose script was killed, with an engine that is a script itself: what is asked of it is what counts here.

const { signal } = new AbortController();
const patience = { timeout: 30_000 };
const id = "lost-provision-1";
const run = promisify(execFile);

/** `until`: it is killed then. */
async function lostJob(
  part: Partial<BundleSpec> = {},
  until: (folder: string) => Promise<void> = async () => undefined,
) {
  const directory = await bundleFolder();
  const [engine, asked, down] = ["engine", "asked", "down"].map((name) => join(directory, name)) as [
    ...[string, string, string],
  ];
  const script = `#!/bin/sh
case "$1" in
run) exec sleep 60;;
version | image) exit 0;;
*) echo "$1" >>${asked}; [ ! -e ${down} ];;
esac
`;
  await writeFile(engine, script, { mode: 0o755 });
  const jobs = join(directory, "jobs");
  const open = (): Promise<Runner> =>
    openContainerRunner({ engine, directory: jobs, baseImage: "base", files: async () => directory, graceMs: 500 });
  const runner = await open();
  const artifact = { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` } as const;
  const operation = { key: "/i1", id: "over" };
  const spec = bundleSpec({ command: ["run"], ...part });
  await runner.start({ id, action: "provision", spec, artifact, input: {}, limits, operation }, signal);
  const folder = join(jobs, "jobs", id);
  const [pid = ""] = (await readFile(join(folder, "claim"), "utf8")).split(" ");
  await until(folder);
  process.kill(Number(pid), "SIGKILL");
  await expect.poll(() => isGone(pid), patience).toBe(true);
  const questions = async () => (await readFile(asked, "utf8").catch(() => "")).split("\n").filter(Boolean).length;
  const look = async () => (await runner.look(id, { waitMs: 0, signal })).kind;
  return { runner, open, folder, questions, look, down, running: join(jobs, "running", id) };
}

async function isGone(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return stat === null || / [ZX] /.test(stat);
}

function orphansOf(runner: Runner, now: () => number): OrphanedJobs {
  const over = {
    key: "/i1",
    id: "over",
    kind: "provision",
    part: null,
    open: null,
    outcome: null,
    endedAt: 0,
  } as const;
  const operation = async () => ({ ...over, status: "failed" }) as const;
  return new OrphanedJobs({ runner: () => runner, journal: () => ({ operation, now }) });
}

test("a lost job is ended once, and is lost from then on, whatever becomes of the engine", async () => {
  const { questions, look, down } = await lostJob();
  expect(await look()).toBe("lost");
  const once = await questions();
  expect(once).toBeGreaterThan(0);
  await writeFile(down, "");
  expect(await look()).toBe("lost");
  expect(await questions()).toBe(once);
});

test("a lost job that was forgotten stays lost, does not hold up the next action of its instance, and goes when it is old", async () => {
  const { runner, open, folder, look, running } = await lostJob();
  expect(await look()).toBe("lost");
  await runner.forget(id);
  expect(await readdir(folder)).not.toContain("input.json");
  // As versions leave it that did not write down that it is lost; and killed before the last line of it.
  await rm(join(folder, "lost"), { force: true });
  await writeFile(running, "");
  expect(await look()).toBe("lost");
  await orphansOf(runner, () => 0).stop("/i1");
  await utimes(join(folder, "exit"), new Date(0), new Date(0));
  await open();
  expect([existsSync(folder), existsSync(running)]).toEqual([false, false]);
});

test("who asks for the jobs of a place waits for no engine: a lost one is ended by whoever looks at it or stops it", async () => {
  const { runner, questions } = await lostJob();
  const jobs = await runner.jobs();
  expect(jobs).toEqual([{ id, operation: { key: "/i1", id: "over" } }]);
  expect(await questions()).toBe(0);
  await runner.stop(id);
  expect(await questions()).toBeGreaterThan(0);
});

test("a job that cannot be forgotten keeps no action of its instance from being started, and is tried again", async () => {
  let tries = 0;
  const runner: Runner = {
    ...{ name: "r", place: "here", start: async () => undefined, stop: async () => undefined, log: async () => "" },
    look: async () => ({ kind: "ended", exitCode: 0, cause: "exit" }),
    jobs: async () => [{ id, operation: { key: "/i1", id: "over" } }],
    output: async (_, from) => ({ lines: [], next: from }),
    forget: async () => {
      tries += 1;
      // Whoever runs in a container may leave files that the broker's user cannot remove.
      throw Object.assign(new Error("EACCES: permission denied, rmdir 'state/x'"), { code: "EACCES" });
    },
  };
  let now = 0;
  const orphans = orphansOf(runner, () => now);
  for (let days = 0; days < 4; days++) {
    await orphans.stop("/i1");
    now += 86_400_000;
  }
  expect(tries).toBe(3);
});

test("what watches a job's files ends with a script that was killed", async () => {
  const { folder } = await lostJob({ format: "apb", runtime: 1 }, async (its) => {
    await expect.poll(async () => (await besides(its)).length, patience).toBeGreaterThan(0);
  });
  await expect.poll(() => besides(folder), patience).toEqual([]);
});

/** Processes of its script that run beside the program. */
async function besides(folder: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => "");
      const command = cwd === folder ? await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "") : "";
      return command.includes("beside.sh") ? [pid] : [];
    }),
  );
  return found.flat();
}

test("a signal for a job's script is not sent to whoever has its number later", async () => {
  const stat = await readFile("/proc/self/stat", "utf8");
  const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  const lives = (pid: string, since: string) =>
    run("/bin/sh", ["-c", `${livesFunction}\nif lives "$1" "$2"; then echo yes; else echo no; fi`, "-", pid, since]);
  const answers = [
    await lives(String(process.pid), start),
    await lives(String(process.pid), `${Number(start) - 1}`),
    await lives("4194305", start),
  ];
  expect(answers.map(({ stdout, stderr }) => stdout + stderr)).toEqual(["yes\n", "no\n", "no\n"]);
});
