import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { findProgram } from "../../../tools/server-process.js";
import { openProcessRunner, type ProcessRunnerOptions } from "../src/runners/process-runner.js";
import type { Job, JobLimits } from "../src/runners/runner.js";
import { bundleSpec, givenUpOncePlaced, limits } from "./bundle-jobs.js";

const run = promisify(execFile);
const { signal } = new AbortController();
const isRoot = process.getuid?.() === 0;
const hasBubblewrap = required(
  "bubblewrap",
  findProgram("bwrap") === undefined ? { leftOut: "apt-get install bubblewrap" } : {},
);

let home = "";
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "osbert-sandbox-"));
  await chmod(home, 0o711);
});
afterAll(() => rm(home, { recursive: true, force: true }));

async function open(part: Partial<ProcessRunnerOptions> = {}) {
  return openProcessRunner({ directory: join(home, "runner"), files: async ({ digest }) => digest, ...part });
}

async function job(program: string, part: Partial<JobLimits> = {}): Promise<Job> {
  const folder = await mkdtemp(join(home, "bundle-"));
  await chmod(folder, 0o755);
  await writeFile(join(folder, "run"), program);
  return {
    id: randomUUID(),
    action: "provision",
    spec: bundleSpec({ command: ["bash", "./run"] }),
    // The runner of these tests finds a bundle by its folder.
    artifact: { kind: "files", repository: "x", digest: folder as `sha256:${string}` },
    input: { parameters: { password: "of-this-job" } },
    limits: { ...limits, ...part },
    operation: null,
  };
}

async function end(runner: Awaited<ReturnType<typeof open>>, each: Job) {
  await runner.start(each, signal);
  return runner.look(each.id, { waitMs: 30_000, signal });
}

if (hasBubblewrap) {
  test("in the sandbox nothing of the broker, of other jobs, or of homes can be seen", async () => {
    const runner = await open();
    await writeFile(join(home, "secret"), "of the broker", { mode: 0o644 });
    const other = await job("exit 0");
    await end(runner, other);
    const places = [
      join(home, "secret"),
      join(home, "runner/jobs", other.id, "input.json"),
      "/root",
      "/home",
      "/etc/shadow",
      // As root, a bundle could read the keys in them.
      "/etc/ssl/private",
      "/etc/pki/tls/private",
      "/etc/ansible/hosts",
    ];
    const looks = places.map((place) => `if [ -e ${place} ]; then echo "sees ${place}" >&2; exit 3; fi`);
    const each = await job(`${looks.join("\n")}\nls / >&2; ls /tmp | grep . && exit 4; exit 0`);
    const state = await end(runner, each);
    expect(await runner.log(each.id, 10_000)).not.toContain("sees");
    expect(state).toEqual({ kind: "ended", exitCode: 0, cause: "exit" });
  });

  test("a bundle that root runs is not root, in the sandbox or outside", async () => {
    const runner = await open();
    const each = await job("id -u >&2; tr -s ' ' </proc/self/uid_map >&2");
    expect(await end(runner, each)).toEqual({ kind: "ended", exitCode: 0, cause: "exit" });
    const [inside, map = ""] = (await runner.log(each.id, 1_000)).split("\n");
    expect(inside).toBe("65534");
    const ours = (await readFile("/proc/self/uid_map", "utf8")).trim().replaceAll(/ +/g, " ");
    // Where the numbers are others inside, nobody is this process' user outside.
    if (isRoot) expect(map.trim()).toBe(ours);
    else expect(map.trim()).toBe(`65534 ${process.getuid?.()} 1`);
  });

  test("in the sandbox nothing can be written but a bounded /tmp", async () => {
    const runner = await open({ tmpBytes: 1_048_576 });
    const each = await job(
      [
        `for place in / /usr /bin /etc /bundle /run /run/osbert /dev; do if echo x >$place/x; then exit 3; fi; done 2>/dev/null`,
        `echo x >>"$OSBERT_INPUT" 2>/dev/null && exit 4`,
        `echo x >/tmp/x || exit 5`,
        `for place in /tmp /dev/shm; do head -c 2000000 /dev/zero >$place/large 2>/dev/null && exit 6; done`,
        "exit 0",
      ].join("\n"),
    );
    expect(await end(runner, each)).toEqual({ kind: "ended", exitCode: 0, cause: "exit" });
  });

  test("in the sandbox no other process can be seen, and no capability is left", async () => {
    const runner = await open();
    const each = await job(
      `ls /proc | grep -c '^[0-9]' >&2; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q '[v]itest' && exit 3
       grep -q 'CapEff:.0000000000000000' /proc/self/status || exit 4; mount -t tmpfs x /tmp 2>/dev/null && exit 5; exit 0`,
    );
    expect(await end(runner, each)).toEqual({ kind: "ended", exitCode: 0, cause: "exit" });
    expect(Number.parseInt(await runner.log(each.id, 100), 10)).toBeLessThan(8);
  });

  test("where no sandbox can be made, the runner says so, and does without only if it is told", async () => {
    // A machine that has no bwrap, or whose kernel forbids it, is this one without its user namespaces: none is left for a child of this.
    const script = `import { openProcessRunner } from "@osbert/bundles";
      const options = { directory: ${JSON.stringify(join(home, "none"))}, files: async () => "/" };
      await openProcessRunner(options).catch((error) => console.log(error.failure, error.message));
      console.log((await openProcessRunner({ ...options, unsandboxed: true })).name);`;
    const child = [process.execPath, "--input-type=module", "--eval", script];
    const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"';
    const { stdout } = await run("unshare", ["--user", "--map-root-user", "sh", "-c", forbid, "-", ...child], {
      cwd: import.meta.dirname,
    });
    expect(stdout).toMatch(
      /^no sandbox bundles cannot be shut in here: install bubblewrap; .* make namespaces .*\nprocess\n$/,
    );
  });
}

test("a job whose process was killed is lost, and nothing of it goes on", async () => {
  const runner = await open({ unsandboxed: true });
  const each = await job(`setsid sleep 300 & echo $! >${home}/pid; chmod 644 ${home}/pid; sleep 300`);
  await runner.start(each, signal);
  const read = () => readFile(join(home, "pid"), "utf8").catch(() => "");
  await expect.poll(read).toMatch(/\d+\n/);
  const claim = await readFile(join(home, "runner/jobs", each.id, "claim"), "utf8");
  process.kill(Number(claim.split(" ")[0]), "SIGKILL");
  await expect
    .poll(() => runner.look(each.id, { waitMs: 0, signal }))
    .toEqual({ kind: "lost", why: "its process was killed" });
  const child = Number(await read());
  await expect
    .poll(() =>
      readFile(`/proc/${child}/stat`, "utf8").then(
        (stat) => / Z /.test(stat),
        () => true,
      ),
    )
    .toBe(true);
  // It is not started again under its id.
  await runner.start(each, signal);
  expect((await runner.look(each.id, { waitMs: 0, signal })).kind).toBe("lost");
});

test("a job that is stopped before anyone ran it has ended, and whoever starts it later runs nothing", async () => {
  const runner = await open({ unsandboxed: true });
  const each = await job(`echo ran >${home}/ran`);
  // Given up between placing the job and running it.
  await expect(runner.start(each, givenUpOncePlaced(new Error("enough")))).rejects.toThrow("enough");
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "unknown" });
  await Promise.all([runner.stop(each.id), (await open({ unsandboxed: true })).stop(each.id)]);
  const stopped = { kind: "ended", exitCode: 0, cause: "stopped" };
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual(stopped);
  await runner.start(each, signal);
  // A starter that looked before the stop spawns its process all the same.
  const folder = join(home, "runner/jobs", each.id);
  const script = ["run.sh", "place", "60", "1", "1000", join(folder, "input.json"), "touch", join(home, "ran")];
  await expect(run("sh", script, { cwd: folder })).rejects.toMatchObject({ code: 1 });
  expect(await readdir(home)).not.toContain("ran");
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual(stopped);
  await runner.forget(each.id);
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual(stopped);
});

test("a job that ran when the machine was restarted is lost, also if a process has its number now", async () => {
  const runner = await open({ unsandboxed: true });
  const each = await job("exit 0");
  await end(runner, each);
  const folder = join(home, "runner/jobs", each.id);
  await writeFile(join(folder, "exit"), `${" ".repeat(31)}\n`);
  const [pid, start] = (await readFile("/proc/self/stat", "utf8"))
    .replace(/\(.*\) /, "")
    .split(" ")
    .filter((_, at) => at === 0 || at === 20);
  await writeFile(join(folder, "claim"), `${pid} ${start} another-boot pid:[1]\n`);
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({
    kind: "lost",
    why: "the machine was restarted while it ran",
  });
  // The same number in this start of the machine, but another process.
  const place = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  await writeFile(join(folder, "claim"), `${pid} 1 ${place} ${await readlink("/proc/self/ns/pid")}\n`);
  expect(await runner.look(each.id, { waitMs: 0, signal })).toEqual({ kind: "lost", why: "its process was killed" });
});

test("to stop a job that does not end fails in bounded time, and it can be stopped later", async () => {
  const runner = await open({ unsandboxed: true, graceMs: 100 });
  const each = await job("sleep 60");
  await runner.start(each, signal);
  const claim = await readFile(join(home, "runner/jobs", each.id, "claim"), "utf8");
  const pid = Number(claim.split(" ")[0]);
  // One that hangs in the kernel hears no signal, either.
  process.kill(pid, "SIGSTOP");
  await expect(runner.stop(each.id)).rejects.toMatchObject({ failure: "not stopped" });
  process.kill(pid, "SIGCONT");
  await runner.stop(each.id);
  const state = await runner.look(each.id, { waitMs: 10_000, signal });
  expect(state.kind === "ended" && state.cause).toBe("stopped");
});

test("folders of jobs that ended long ago are removed, younger ones stay", async () => {
  const runner = await open({ unsandboxed: true });
  const [old, young] = [await job("exit 0"), await job("exit 0")];
  for (const each of [old, young]) await end(runner, each);
  await utimes(join(home, "runner/jobs", old.id, "exit"), new Date(0), new Date(0));
  await open({ unsandboxed: true });
  const left = await readdir(join(home, "runner/jobs"));
  expect(left).not.toContain(old.id);
  expect(left).toContain(young.id);
});

if (hasBubblewrap && required("a sandbox of root's", isRoot ? {} : { leftOut: "the broker is root there" })) {
  test("bundles of a broker that is root share a limit of processes, for as many jobs as run at a time", async () => {
    const many = "exec sh -c 'for i in $(seq 60); do sleep 20 & done; exit 0'";
    const states = [];
    for (const jobs of [2, 20]) states.push(await end(await open({ jobs }), await job(many, { processes: 20 })));
    expect(states.map((state) => state.kind === "ended" && state.exitCode === 0)).toEqual([false, true]);
  });
}

if (required("a folder that root cannot remove", isRoot ? {} : { leftOut: "root can mount one" })) {
  test("what of a job cannot be removed keeps nothing else of it when it is forgotten, and it is told of still", async () => {
    const directory = join(home, "unforgettable");
    const runner = await open({ unsandboxed: true, directory });
    const each = await job("echo said; exit 0");
    await end(runner, each);
    const folder = join(directory, "jobs", each.id);
    // Before `out` and `input.json` in the order of the alphabet, and after them.
    const stubborn = ["a-mount", "tmp"].map((name) => join(folder, name));
    await mkdir(stubborn[0] ?? "");
    for (const path of stubborn) await run("mount", ["-t", "tmpfs", "tmpfs", path]);
    try {
      await expect(runner.forget(each.id)).rejects.toMatchObject({ code: "EBUSY" });
      expect((await readdir(folder)).sort()).toEqual(["a-mount", "claim", "exit", "job.json", "log", "tmp"]);
      expect((await runner.jobs()).map(({ id }) => id)).toEqual([each.id]);
    } finally {
      for (const path of stubborn) await run("umount", ["--lazy", path]);
    }
    await runner.forget(each.id);
    expect(await runner.jobs()).toEqual([]);
  });

  test("an old folder that cannot be removed keeps no runner from opening, and no other one from going", async () => {
    const directory = join(home, "stubborn");
    const runner = await open({ unsandboxed: true, directory });
    const all = await Promise.all([job("exit 0"), job("exit 0"), job("exit 0")]);
    for (const each of all) {
      await end(runner, each);
      await utimes(join(directory, "jobs", each.id, "exit"), new Date(0), new Date(0));
    }
    const [first] = (await readdir(join(directory, "jobs"))).sort();
    const stubborn = join(directory, "jobs", first ?? "", "tmp");
    await run("mount", ["-t", "tmpfs", "tmpfs", stubborn]);
    try {
      const again = await open({ unsandboxed: true, directory });
      expect((await readdir(join(directory, "jobs"))).filter((name) => !name.startsWith("."))).toHaveLength(0);
      expect(await end(again, await job("exit 0"))).toMatchObject({ kind: "ended", exitCode: 0 });
    } finally {
      const { stdout } = await run("findmnt", ["--noheadings", "--output", "TARGET", "--type", "tmpfs", "--list"]);
      const left = stdout.split("\n").filter((path) => path.startsWith(directory));
      for (const path of left) await run("umount", ["--lazy", path]);
    }
  });
}

if (required("a small disk", isRoot ? {} : { leftOut: "root can mount one" })) {
  test("a full disk is told as such, at the start and in the middle, and the end of the job is kept", async () => {
    const disk = join(home, "disk");
    await mkdir(disk);
    await run("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]);
    try {
      const runner = await open({ unsandboxed: true, directory: disk });
      const each = await job("head -c 1000000 /dev/zero; exit 0");
      const state = await end(runner, each);
      expect(state.kind === "ended" && state.cause).toBe("disk");
      await expect(runner.start(await job("exit 0"), signal)).rejects.toThrow("the disk of the runner is full");
    } finally {
      await run("umount", ["--lazy", disk]);
    }
  });
}

/** A program that leaves a process behind which nobody finds: it has nothing of the job's environment, and holds what it prints to. */
function leavingBehind(pids: string, then: string): string {
  return `env -i setsid /bin/sh -c 'echo $$ >>${pids}; exec sleep 120' &\nuntil [ -s ${pids} ]; do sleep 0.05; done\n${then}`;
}

test.each([
  ["ends when its program has", "echo done; exit 0", "exit"],
  ["can be stopped", "sleep 120", "stopped"],
])("without a sandbox, a job whose output is held by a process that it has left behind %s", async (_, then, cause) => {
  const runner = await open({ unsandboxed: true, graceMs: 500 });
  const pids = join(home, randomUUID());
  await writeFile(pids, "");
  const each = await job(leavingBehind(pids, then));
  await runner.start(each, signal);
  const left = async () => Number((await readFile(pids, "utf8")).trim());
  await expect.poll(left, { timeout: 30_000 }).toBeGreaterThan(0);
  const pid = await left();
  onTestFinished(() => void process.kill(pid, "SIGKILL"));
  if (cause === "stopped") await runner.stop(each.id);
  expect(await runner.look(each.id, { waitMs: 20_000, signal })).toMatchObject({ kind: "ended", cause });
  expect((await readFile(`/proc/${pid}/cmdline`, "utf8")).startsWith("sleep")).toBe(true);
  if (cause === "exit") expect((await runner.output(each.id, 0)).lines).toEqual(["done"]);
});
