import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { watch } from "node:fs";
import { chmod, chown, link, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { BundleFormat } from "../../sources/source.js";
import { noOutput, readOutput } from "../action-output.js";
import { addressSecrets, redact, secretParts } from "../redact.js";
import type { Job, JobOperation, JobSecrets, JobState, KnownJob, Runner } from "../runner.js";
import { checkJobId, RunnerError } from "../runner-error.js";
import { classicOutput } from "./classic-output.js";
import {
  type Claim,
  isAlive,
  type JobRecord,
  openExit,
  readBoot,
  readIfThere,
  readLines,
  readRecord,
  readTail,
  stoppedClaim,
} from "./job-files.js";
import { jobScript } from "./job-script.js";
import { namePlace } from "./name-place.js";

/** How a kind of runner runs a job. */
export interface Launch {
  /** What is run, with its arguments. Nothing of the input is in them. */
  readonly program: readonly string[];
  /** Shell, read by the job's script: ends what the program has left behind, and may set `cause`; and `left`, if it cannot tell that all has ended. */
  readonly finish: string;
  /** Shell: tells what runs to end. It fails where it cannot be told: then the program itself is. Default: that alone. */
  readonly stop?: string;
  /** Shell, run in the job's folder as long as the program runs; its arguments are the process of the job's script and the start time of that. It ends by itself when that was killed: see `livesFunction`. */
  readonly beside?: string;
  /** Folders and files in the job's folder that whoever runs in a container may write; files by their paths, with what is in them. */
  readonly writable?: { readonly folders: readonly string[]; readonly files: Readonly<Record<string, string>> };
}

export interface JobFoldersOptions {
  readonly name: string;
  /** A folder of its own, on a disk of this machine. Processes of one machine may share it, machines and containers may not. */
  readonly directory: string;
  /** What the place is called that this is a part of. Default: its own name, in its directory. */
  readonly place?: string | undefined;
  /** How a job is run. It throws what keeps it from running. `folder`: where its files will be. */
  readonly launch: (job: Job, folder: string, signal: AbortSignal) => Promise<Launch>;
  /** Ends all that is left of a job whose script was killed, or throws: such a job is started again. */
  readonly end: (id: string, folder: string) => Promise<void>;
  /** What the job's script runs with. `tmp`: a folder of the job. */
  readonly environment: (tmp: string) => Readonly<Record<string, string>>;
  /** Whom the job's script runs as. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Of the input, which is in a folder that nobody else may enter. A container may run as anyone. */
  readonly inputMode: number;
  /** How long a program has to clear up after TERM. Default 5 seconds. */
  readonly graceMs?: number | undefined;
  /** Folders of jobs that ended longer ago are removed. Default 30 days. */
  readonly keepMs?: number | undefined;
}

/**
 * A runner that has a folder for each job, named by its id:
 *
 *   input.json   what the bundle gets        out, err     what it printed
 *   job.json     how to read its log         claim        which process runs it: see job-script.ts
 *   run.sh       that process' script        exit         how it ended; blank before
 *   kept.json    what becomes of input.json when it has ended: the same without the operator's secrets
 *   secrets      these, as files; gone when it has ended
 *   log          what is left of out and err when it is forgotten
 *   lost         empty: its process was killed, and all that was left of it has ended
 *
 * The order of effects in `start`: the folder is made whole under another name, and gets its own by a rename, which succeeds for one of all
 * who try. Then a process is spawned that claims the job before it does anything else. Killed before the rename: a nameless folder is left,
 * which goes some time later. Between rename and claim: the job is placed, nothing runs, and the next `start` spawns a process again;
 * when that meets an earlier one which was only slow, one of both claims the job and the other ends. After the claim: the job is
 * started. So there may be any number of starters, at any time, and one program. Who stops a job that is only placed takes the claim
 * away from all of them.
 *
 * Beside the folders of jobs, `running` has an empty file for each that may run or has more files than are to be kept, so that these are
 * found without looking through all. It is there before the folder has its name, and goes when the job is forgotten.
 */
export async function openJobFolders(options: JobFoldersOptions): Promise<Runner> {
  const directory = resolve(options.directory);
  const [jobs, running] = [join(directory, "jobs"), join(directory, "running")];
  for (const each of [jobs, running]) await mkdir(each, { recursive: true, mode: 0o700 });
  // Whom bundles run as may pass to a folder whose name it knows, and list none.
  if (options.user !== undefined) for (const each of [directory, jobs]) await chmod(each, 0o711);
  const place = options.place ?? (await namePlace(directory));
  const runner = new JobFolders({ jobs, running, boot: await readBoot(), place }, options);
  await runner.forgetOld();
  return runner;
}

const lookMs = { first: 10, most: 500 };
const maxReadBytes = 1_048_576;
const hourMs = 3_600_000;
const keptLog = "log";
/** What is left of a job that is forgotten: how it ended, and how to read its log. */
const lostMark = "lost";
const keptFiles: readonly string[] = [keptLog, lostMark, "exit", "claim", "job.json"];
const defaultGraceMs = 5_000;

/** To stop a job takes its grace and a moment. What takes so much longer hangs in the kernel. */
const stopMs = 15_000;

interface Ground {
  readonly jobs: string;
  readonly running: string;
  readonly boot: string;
  readonly place: string;
}

class JobFolders implements Runner {
  readonly name: string;
  readonly place: string;
  readonly #jobs: string;
  readonly #running: string;
  readonly #boot: string;
  readonly #options: JobFoldersOptions;
  #forgotOldAt = 0;

  constructor({ jobs, running, boot, place }: Ground, options: JobFoldersOptions) {
    this.name = options.name;
    this.place = place;
    this.#jobs = jobs;
    this.#running = running;
    this.#boot = boot;
    this.#options = options;
  }

  async start(job: Job, signal: AbortSignal): Promise<void> {
    const folder = this.#folder(job.id);
    if (performance.now() - this.#forgotOldAt > hourMs) await this.forgetOld();
    if (isStarted(await readRecord(folder))) return;
    const launch = await this.#options.launch(job, folder, signal);
    // Who gave it up has stopped it, which finds nothing before there is a folder: what is left then stays until it is old.
    signal.throwIfAborted();
    await this.#put(folder, job, launch);
    signal.throwIfAborted();
    await this.#spawn(folder, launch, job);
    if (!isStarted(await readRecord(folder))) throw new RunnerError("not started", "its folder cannot be written");
  }

  async look(
    id: string,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<JobState> {
    const folder = this.#folder(id);
    const end = performance.now() + waitMs;
    let pauseMs = lookMs.first;
    for (;;) {
      signal.throwIfAborted();
      // The watch begins before the look: an end between the two wakes it.
      const change = watchExit(folder);
      try {
        const state = await this.#state(folder);
        const leftMs = end - performance.now();
        if (state.kind !== "running" || leftMs <= 0) return state;
        await Promise.race([sleep(Math.min(pauseMs, leftMs), undefined, { signal }), change.happens]);
      } finally {
        change.close();
      }
      pauseMs = Math.min(pauseMs * 2, lookMs.most);
    }
  }

  async jobs(): Promise<readonly KnownJob[]> {
    const found: KnownJob[] = [];
    for (const id of await readdir(this.#running)) {
      const folder = this.#folder(id);
      const { kind } = await readRecord(folder);
      // What a lost one has left is ended by whoever looks at it or stops it: of one instance, and not of all that somebody asks for.
      if (kind === "claimed" || kind === "ended") found.push({ id, operation: await operationOf(folder) });
      // One that is unknown may be about to be started.
      else if (await isOlder(join(this.#running, id), hourMs)) {
        await this.#abandon(folder);
        await rm(join(this.#running, id), { force: true });
      }
    }
    return found;
  }

  /** Removes what a start has left that was given up or killed. First the claim is taken: nobody will run it while it goes. */
  async #abandon(folder: string): Promise<void> {
    if ((await readRecord(folder)).kind !== "placed") return;
    if (await claimStopped(folder)) await this.#remove(folder);
  }

  async output(id: string, from: number): Promise<{ readonly lines: readonly string[]; readonly next: number }> {
    const folder = this.#folder(id);
    const ended = (await readRecord(folder)).kind === "ended";
    if ((await formatOf(folder)) === "apb") return ended ? classicOutput(folder, from) : { lines: [], next: from };
    return readLines(join(folder, "out"), from, { ended, maxBytes: maxReadBytes });
  }

  async log(id: string, lastBytes: number): Promise<string> {
    const folder = this.#folder(id);
    const kept = await readTail(join(folder, keptLog), lastBytes);
    if (kept !== "") return kept;
    const format = await formatOf(folder);
    // A classic bundle prints for people on both.
    const names = format === "apb" ? ["out", "err"] : ["err"];
    const texts = await Promise.all(names.map((name) => readTail(join(folder, name), lastBytes)));
    const { credentials, state, dashboard } = readOutput(noOutput, await this.#allLines(folder, format));
    const secrets = secretParts(format, await readJson(join(folder, "input.json")));
    // Cut when nothing is left that a cut could make unrecognisable.
    return redact(texts.join(""), [...secrets, credentials, state, addressSecrets(dashboard)]).slice(-lastBytes);
  }

  async #allLines(folder: string, format: BundleFormat): Promise<readonly string[]> {
    if (format === "apb") return (await classicOutput(folder, 0)).lines;
    return (await readLines(join(folder, "out"), 0, { ended: true, maxBytes: Number.MAX_SAFE_INTEGER })).lines;
  }

  async stop(id: string): Promise<void> {
    const folder = this.#folder(id);
    const { signal } = new AbortController();
    const end = performance.now() + (this.#options.graceMs ?? defaultGraceMs) + stopMs;
    while (performance.now() < end) {
      const record = await readRecord(folder);
      if (record.kind === "placed") {
        await claimStopped(folder);
        await dropSecrets(folder);
        continue;
      }
      if (record.kind !== "claimed") return;
      if (!(await this.#isRunning(record.claim))) {
        // What it has left may run on.
        await this.#state(folder);
        return;
      }
      // Between the look and the signal the number could become another's only if all numbers were used up meanwhile.
      sendSignal(record.claim.pid, "SIGTERM");
      if ((await this.look(id, { waitMs: 1_000, signal })).kind !== "running") return;
    }
    throw new RunnerError("not stopped", id);
  }

  /**
   * The log is written first, without the secrets, which nobody can tell from the rest when these have gone. Killed before it has its name:
   * nothing has changed. After: it is read instead of what was printed, and the next call removes what is left. The job is told of until all
   * is gone. What cannot be removed, as files that a container's user has left, is thrown when all else is gone.
   */
  async forget(id: string, secrets: readonly unknown[] = []): Promise<void> {
    const folder = this.#folder(id);
    const { kind } = await this.#state(folder);
    if (kind !== "ended" && kind !== "lost") return;
    const names = await readdir(folder);
    if (!names.includes(keptLog)) {
      const made = join(folder, `${keptLog}.${randomUUID()}`);
      await writeFile(made, redact(await this.log(id, maxReadBytes), secrets), { mode: 0o600 });
      await rename(made, join(folder, keptLog));
    }
    const failures: unknown[] = [];
    for (const name of names.filter((each) => !keptFiles.includes(each)))
      await rm(join(folder, name), { recursive: true, force: true }).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
    await rm(join(this.#running, id), { force: true });
  }

  /** Removes what is left of jobs that ended long ago, and of starts that were killed. What cannot be removed is left, and tried again. */
  async forgetOld(): Promise<void> {
    this.#forgotOldAt = performance.now();
    for (const name of await readdir(this.#jobs)) await this.#forgetIfOld(name).catch(() => undefined);
  }

  async #forgetIfOld(name: string): Promise<void> {
    const folder = join(this.#jobs, name);
    // To make a folder takes a moment: one that has no name yet after an hour never gets it, and may have secrets in it.
    const keepMs = name.startsWith(".") ? hourMs : (this.#options.keepMs ?? 30 * 24 * hourMs);
    const exit = await stat(join(folder, "exit")).catch(() => stat(folder).catch(() => null));
    if (exit === null || exit.mtimeMs > Date.now() - keepMs) return;
    if (name.startsWith(".")) await rm(folder, { recursive: true, force: true });
    else if ((await this.#state(folder)).kind !== "running") await this.#remove(folder);
  }

  #folder(id: string): string {
    return join(this.#jobs, checkJobId(id));
  }

  async #state(folder: string): Promise<JobState> {
    const record = await readRecord(folder);
    if (record.kind === "absent" || record.kind === "placed") return { kind: "unknown" };
    if (record.kind === "ended") return record.state;
    if (await this.#isRunning(record.claim)) return { kind: "running" };
    // It may have ended between the two looks.
    const again = await readRecord(folder);
    if (again.kind === "ended") return again.state;
    // Nothing of it goes on when it is told to be lost: it will be started again. Killed before that is written down: it is ended once more.
    if (!(await wasLost(folder))) {
      await this.#options.end(basename(folder), folder);
      await dropSecrets(folder);
      // On a disk that is full it is found out anew each time.
      await writeFile(join(folder, lostMark), "", { mode: 0o600 }).catch(() => undefined);
    }
    const why = record.claim.boot === this.#boot ? "its process was killed" : "the machine was restarted while it ran";
    return { kind: "lost", why };
  }

  async #isRunning(claim: Claim): Promise<boolean> {
    return claim.boot === this.#boot && (await isAlive(claim));
  }

  async #put(folder: string, job: Job, { finish, stop, beside, writable }: Launch): Promise<void> {
    const made = join(this.#jobs, `.${randomUUID()}`);
    const { user } = this.#options;
    try {
      await mkdir(join(made, "tmp"), { recursive: true, mode: 0o700 });
      const texts = {
        "input.json": `${JSON.stringify(job.input)}\n`,
        ...(job.secrets === undefined ? {} : { "kept.json": withoutSecrets(job.input, job.secrets) }),
        "job.json": JSON.stringify({ format: job.spec.format, operation: job.operation }),
        "run.sh": jobScript,
        "finish.sh": finish,
        ...(stop === undefined ? {} : { "stop.sh": stop }),
        ...(beside === undefined ? {} : { "beside.sh": beside }),
        exit: openExit,
      };
      for (const [name, text] of Object.entries(texts)) {
        await writeFile(join(made, name), text, { mode: name === "input.json" ? this.#options.inputMode : 0o600 });
      }
      const secrets = job.spec.format === "apb" ? Object.entries(job.secrets ?? {}) : [];
      for (const [name, values] of secrets) await writeSecret(join(made, "secrets", `apb-${name}`), values);
      for (const name of writable?.folders ?? []) {
        await mkdir(join(made, name));
        await chmod(join(made, name), 0o777);
      }
      for (const [name, text] of Object.entries(writable?.files ?? {})) {
        await writeFile(join(made, name), text, { flag: "wx" });
        await chmod(join(made, name), 0o666);
      }
      if (user !== undefined) {
        for (const name of [...Object.keys(texts), "tmp", "."]) await chown(join(made, name), user.uid, user.gid);
      }
      await writeFile(join(this.#running, job.id), "", { mode: 0o600 });
      // A folder that is not empty is not replaced.
      await rename(made, folder);
    } catch (error) {
      await rm(made, { recursive: true, force: true });
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST") return;
      if (code === "ENOSPC" || code === "EDQUOT") throw new RunnerError("disk full", null, { cause: error });
      throw error;
    }
  }

  async #spawn(folder: string, { program }: Launch, { limits }: Job): Promise<void> {
    const seconds = [limits.timeoutMs, this.#options.graceMs ?? defaultGraceMs].map((ms) => String(ms / 1_000));
    const args = ["run.sh", this.#boot, ...seconds, String(limits.outputBytes), join(folder, "input.json")];
    const child = spawn("/bin/sh", [...args, ...program], {
      cwd: folder,
      detached: true,
      env: this.#options.environment(join(folder, "tmp")),
      stdio: ["ignore", "ignore", "ignore", "pipe"],
      ...this.#options.user,
    });
    await claimed(child);
  }

  /** By a rename first: a folder of which half is gone must not look like a job that was never started. */
  async #remove(folder: string): Promise<void> {
    const gone = join(this.#jobs, `.${randomUUID()}`);
    await rename(folder, gone).catch(() => undefined);
    await rm(gone, { recursive: true, force: true });
    await rm(join(this.#running, basename(folder)), { force: true });
  }
}

/** Whether it was found out before: a job has a log of its own when it is forgotten, which it is not before all of it has ended. */
async function wasLost(folder: string): Promise<boolean> {
  for (const name of [lostMark, keptLog]) if ((await stat(join(folder, name)).catch(() => null)) !== null) return true;
  return false;
}

async function isOlder(path: string, ms: number): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found !== null && Date.now() - found.mtimeMs > ms;
}

/**
 * Claims a job that nobody runs for its end, in the way of the job's script: either that has the claim and can be sent signals, or this has it
 * and nothing will run. Answers whether it has it. Killed before the link: nothing has changed.
 */
async function claimStopped(folder: string): Promise<boolean> {
  const file = join(folder, `claim.${randomUUID()}`);
  try {
    await writeFile(file, stoppedClaim, { mode: 0o600, flag: "wx" });
    await link(file, join(folder, "claim"));
    return true;
  } catch (error) {
    // Another was first, or the job was forgotten.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOENT") throw error;
    return false;
  } finally {
    await rm(file, { force: true });
  }
}

/** For whoever runs in the container, in a folder that nobody else on this machine may enter. */
async function writeSecret(folder: string, values: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [key, text] of Object.entries(values)) await writeFile(join(folder, key), text, { mode: 0o644 });
}

/** The same document, wherever in it the secrets are. */
function withoutSecrets(input: JsonObject, secrets: JobSecrets): string {
  const texts = new Set(Object.values(secrets).flatMap((values) => Object.values(values)));
  const mask = (_: string, value: unknown) => (typeof value === "string" && texts.has(value) ? "***" : value);
  return `${JSON.stringify(input, mask)}\n`;
}

/** What the job's script does at its end, for one that was killed or never ran. */
async function dropSecrets(folder: string): Promise<void> {
  await rename(join(folder, "kept.json"), join(folder, "input.json")).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rm(join(folder, "secrets"), { recursive: true, force: true });
}

function isStarted({ kind }: JobRecord): boolean {
  return kind === "claimed" || kind === "ended";
}

/** The pipe ends when it is settled who runs the job. The process is not waited for, and this one may end before it. */
async function claimed(child: ChildProcess): Promise<void> {
  await new Promise<void>((settle, fail) => {
    child.once("error", fail);
    const pipe = child.stdio[3] as Readable;
    pipe.once("close", settle).resume();
  });
  child.unref();
}

function watchExit(folder: string): { readonly happens: Promise<void>; close(): void } {
  try {
    const watcher = watch(join(folder, "exit"), { persistent: false });
    const happens = new Promise<void>((settle) => {
      watcher.once("change", () => settle());
      watcher.once("error", () => undefined);
    });
    return { happens, close: () => watcher.close() };
  } catch {
    // There is none, or the machine has no watches left: looks alone do it.
    return { happens: new Promise(() => undefined), close: () => undefined };
  }
}

async function formatOf(folder: string): Promise<BundleFormat> {
  return (await readJson(join(folder, "job.json"))).format === "apb" ? "apb" : "osbert";
}

async function operationOf(folder: string): Promise<JobOperation | null> {
  const { operation } = await readJson(join(folder, "job.json"));
  if (!isJsonObject(operation)) return null;
  const { key, id } = operation;
  return typeof key === "string" && typeof id === "string" ? { key, id } : null;
}

async function readJson(path: string): Promise<JsonObject> {
  const value: unknown = JSON.parse((await readIfThere(path)) ?? "{}");
  return isJsonObject(value) ? value : {};
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
