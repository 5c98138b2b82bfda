import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Artifact } from "../sources/source.js";
import { bubblewrap, type Sandbox, sandboxAccounts, sandboxInput } from "./bubblewrap.js";
import { readIfThere } from "./jobs/job-files.js";
import { type Launch, openJobFolders, sendSignal } from "./jobs/job-folders.js";
import type { Job, Runner } from "./runner.js";
import { RunnerError } from "./runner-error.js";

export interface ProcessRunnerOptions {
  /** A folder of its own, on a disk of this machine. Processes of one machine may share it, machines and containers may not. */
  readonly directory: string;
  /** What the place is called that its jobs are at, beside those of other runners. Default: a name of its own. */
  readonly place?: string;
  /** Where the files of an artifact lie. They stay there while a job runs. */
  readonly files: (artifact: Artifact, signal: AbortSignal) => Promise<string>;
  /** Runs bundles without bubblewrap: they can do all that the broker's user can. Default false. */
  readonly unsandboxed?: boolean;
  /**
   * Whom bundles run as, for a broker that runs as root; they must be able to come to the bundle's files. Default: the broker's own user; in
   * a sandbox that root makes, nobody (65534).
   */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /**
   * Jobs that run at a time. Those that are nobody share their limit of processes, because the kernel counts them by user: together they may
   * have what so many jobs may. Default 16.
   */
  readonly jobs?: number;
  /** How long a program has to clear up after TERM. Default 5 seconds. */
  readonly graceMs?: number;
  /** Of /tmp in the sandbox, which is in memory. Default 256 MiB. */
  readonly tmpBytes?: number;
  /** Folders of jobs that ended longer ago are removed. Default 30 days. */
  readonly keepMs?: number;
}

/**
 * Runs bundles as processes of this machine, in bubblewrap. Where a sandbox cannot be made it throws, unless it is told to do without.
 * Limits of memory and processor time are for each process of a job.
 */
export async function openProcessRunner(options: ProcessRunnerOptions): Promise<Runner> {
  const { directory, place, user, graceMs, keepMs, unsandboxed = false } = options;
  if (!unsandboxed) {
    await trySandbox(user, sandboxUser(user));
    await writeAccounts(directory);
  }
  return openJobFolders({
    name: "process",
    directory,
    place,
    user,
    graceMs,
    keepMs,
    // The folder that it is in is closed to others.
    inputMode: sandboxUser(user) === "nobody" ? 0o644 : 0o600,
    environment,
    launch: (job, folder, signal) => launch(options, job, folder, signal),
    end: (_, folder) => sweep(join(folder, "input.json")),
  });
}

const run = promisify(execFile);
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

async function launch(options: ProcessRunnerOptions, job: Job, folder: string, signal: AbortSignal): Promise<Launch> {
  const { command } = job.spec;
  if (job.artifact.kind !== "files" || command === null) {
    throw new RunnerError("wrong artifact", "an image needs a runner of containers");
  }
  const bundle = await options.files(job.artifact, signal);
  const { memoryBytes, processes, cpuSeconds, network } = job.limits;
  const as = options.unsandboxed === true ? "own" : sandboxUser(options.user);
  const mostProcesses = as === "own" ? processes : processes * (options.jobs ?? 16);
  const limits = ["--core=0", `--data=${memoryBytes}`, `--cpu=${cpuSeconds}`, `--nproc=${mostProcesses}`];
  const program = ["prlimit", ...limits, "--", ...command, job.action];
  if (options.unsandboxed === true) return { program: ["env", "-C", bundle, ...program], finish: sweepScript };
  const sandbox = bubblewrap({
    bundle,
    input: join(folder, "input.json"),
    accounts: resolve(options.directory, "accounts"),
    ...{ network, as },
    tmpBytes: options.tmpBytes ?? 268_435_456,
    env: { ...environment("/tmp"), OSBERT_INPUT: sandboxInput },
  });
  return { program: [...sandbox, ...program], finish: "" };
}

/** All that a bundle's program finds in its environment, beside OSBERT_INPUT. Nothing of the broker's. */
function environment(tmp: string): Readonly<Record<string, string>> {
  return { PATH: searchPath, LANG: "C.UTF-8", HOME: tmp, TMPDIR: tmp };
}

/**
 * Who left the program's group still has its environment, unless it cleared that on purpose. A sandbox leaves nobody. To look through all
 * processes takes its time: only a job that was ended early waits for it, and one whose output somebody still holds.
 */
const sweepScript = `for each in $(grep -lszxF "OSBERT_INPUT=$input" /proc/[0-9]*/environ); do
  each=@{each#/proc/}
  kill -s KILL "@{each%/environ}" 2>/dev/null
done & sweeper=$!
[ "$cause" = exit ] || await "$sweeper"
`.replaceAll("@{", "${");

/** The same for a job whose script was killed. */
async function sweep(input: string): Promise<void> {
  const mark = `OSBERT_INPUT=${input}`;
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const environ = await readIfThere(`/proc/${name}/environ`).catch(() => null);
    if (environ?.split("\0").includes(mark)) sendSignal(Number(name), "SIGKILL");
  }
}

/** Under another name first: a sandbox that is made at this moment must not get half of a file. */
async function writeAccounts(directory: string): Promise<void> {
  const folder = resolve(directory, "accounts");
  await mkdir(resolve(directory), { recursive: true, mode: 0o700 });
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(sandboxAccounts)) {
    const file = join(folder, `.${randomUUID()}`);
    await writeFile(file, text, { mode: 0o644 });
    await rename(file, join(folder, name));
  }
}

/** A bundle that gets out of a sandbox which root has made must not be root. */
function sandboxUser(user: ProcessRunnerOptions["user"]): Sandbox["as"] {
  return user === undefined && process.getuid?.() === 0 ? "nobody" : "own";
}

/** Whether a sandbox can be made here, by making one: namespaces can be forbidden in many ways. */
async function trySandbox(user: ProcessRunnerOptions["user"], as: Sandbox["as"]): Promise<void> {
  const places = { bundle: "/usr", input: "/dev/null", accounts: "/etc" };
  const [program = "", ...args] = [
    ...bubblewrap({ ...places, network: false, as, tmpBytes: 65_536, env: {} }),
    ...["prlimit", "--nproc=8", "true"],
  ];
  try {
    await run(program, args, { env: { PATH: searchPath }, timeout: 10_000, ...user });
  } catch (error) {
    const { stderr } = error as { readonly stderr?: string };
    throw new RunnerError("no sandbox", stderr?.trim().split("\n").at(-1) ?? null, { cause: error });
  }
}
