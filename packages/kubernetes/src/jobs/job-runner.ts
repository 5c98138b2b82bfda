import { setTimeout as sleep } from "node:timers/promises";
import { checkJobId, type Job, type JobState, type KnownJob, type Runner, RunnerError, redact } from "@osbert/bundles";
import { ClassicWords } from "./classic-words.js";
import { JobClearing } from "./job-clearing.js";
import { JobEnds } from "./job-ends.js";
import { JobLauncher } from "./job-launcher.js";
import { JobMemory } from "./job-memory.js";
import { JobPods, orNull } from "./job-pods.js";
import { inStates, type JobRecord, JobRecords, type RecordState } from "./job-record.js";
import { JobRemoval } from "./job-removal.js";
import { fillOptions, type JobRunnerOptions, type JobRunnerSettings } from "./job-runner-options.js";
import { JobSight, stopMs } from "./job-sight.js";
import { kinds } from "./kinds.js";
import { planJob } from "./plan-job.js";
import { podState } from "./pod-state.js";
import { type Lines, lastLines, Said, wholeLines } from "./said.js";

/**
 * Runs bundles as Jobs of a Kubernetes cluster. Whoever reaches the namespace finds all its jobs: brokers on any number of machines are one place.
 *
 * The order of effects of a start:
 *
 * 1. The record, a ConfigMap named by the id: `placed`. Killed after: the job is unknown, and the next start goes on from here.
 * 2. The sandbox, if it has one; the Job, suspended, under its fixed name: of several starters, one makes it, the others find it. No controller makes
 *    a pod of a suspended Job. Then its service account, roles, Secrets, network policy, which belong to the Job and go with it. Killed between any
 *    two of these: nothing runs; the next start makes what is missing.
 * 3. The record becomes `started`, with the uid of that Job. This is the commit, and only one can do it, once: the state before it is compared. From
 *    here on the job counts as started, whatever becomes of the Job. Who stops a job that is placed changes the same state, so that of
 *    both one wins.
 * 4. The Job is resumed, if it still has that uid and never was before. Killed before: whoever starts it or looks at it next does it.
 *
 * So a starter that was asleep all the time while others ran the job, ended it and removed the Job can make a new Job, and that is never resumed: the
 * record does not name it. It is removed by that starter, or swept later. And a Job that somebody deletes by hand is not made again:
 * the record says that it was started.
 *
 * The order of effects of an end: see `JobEnds`.
 */
export async function openJobRunner(options: JobRunnerOptions): Promise<Runner> {
  const settings = fillOptions(options);
  const place = options.place ?? (await placeOfNamespace(settings));
  return new JobRunner(settings, place);
}

const lookMs = { first: 200, most: 2_000 };
/** How long a start waits to see the bundle begin; a cluster that takes longer is believed to do it later. */
const beginMs = 20_000;
/** A program that was told to end has its grace, and this for its last words. */
const lastWordsMs = 10_000;

async function placeOfNamespace({ cluster, namespace }: JobRunnerSettings): Promise<string> {
  const found = await cluster.read(kinds.namespace, { namespace: "", name: namespace });
  if (found?.metadata.uid === undefined)
    throw new RunnerError("no engine", `the cluster has no namespace ${namespace}`);
  return `kubernetes:${found.metadata.uid}`;
}

class JobRunner implements Runner {
  readonly name = "kubernetes";
  readonly place: string;
  readonly #settings: JobRunnerSettings;
  readonly #records: JobRecords;
  readonly #said: Said;
  readonly #launcher: JobLauncher;
  readonly #clearing: JobClearing;
  readonly #pods: JobPods;
  readonly #removal: JobRemoval;
  readonly #sight: JobSight;
  readonly #memory = new JobMemory();

  constructor(settings: JobRunnerSettings, place: string) {
    this.place = place;
    this.#settings = settings;
    const { cluster, namespace } = settings;
    const memory = this.#memory;
    const records = new JobRecords(cluster, namespace, settings.observe);
    const said = new Said(cluster, namespace);
    const clearing = new JobClearing(settings, records);
    const launcher = new JobLauncher(settings, records, clearing);
    const pods = new JobPods(settings);
    const words = new ClassicWords(settings, said, memory);
    const ends = new JobEnds({ cluster, records, said, pods, words, clearing, memory });
    this.#removal = new JobRemoval({ cluster, said, pods, words, launcher });
    this.#sight = new JobSight(settings, {
      ...{ cluster, records, pods, words, launcher, ends, memory },
      removal: this.#removal,
    });
    this.#records = records;
    this.#said = said;
    this.#launcher = launcher;
    this.#clearing = clearing;
    this.#pods = pods;
    clearing.sweepSoon();
  }

  async start(job: Job, signal: AbortSignal): Promise<void> {
    checkJobId(job.id);
    signal.throwIfAborted();
    this.#clearing.sweepSoon();
    let record = await this.#records.read(job.id, signal);
    if (record === undefined || record.state.kind === "placed") {
      const plan = await planJob(job, this.#settings, signal);
      signal.throwIfAborted();
      record = record === undefined ? await this.#records.place(plan.facts) : await this.#records.tryAgain(record);
      if (record.state.kind === "placed")
        record = await this.#launcher.launch({ ...plan, facts: record.facts }, record, signal);
    }
    await this.#begins(record, signal);
  }

  async look(
    id: string,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<JobState> {
    const end = performance.now() + waitMs;
    for (let pauseMs = lookMs.first; ; pauseMs = Math.min(pauseMs * 2, lookMs.most)) {
      signal.throwIfAborted();
      const record = await this.#records.read(id, signal);
      const seen = record?.state.kind === "started" ? await this.#sight.see(record) : undefined;
      if (seen === undefined) this.#memory.forget(id);
      const state =
        seen === undefined ? stateOf(record?.state) : seen.kind === "settled" ? stateOf(seen.record.state) : running;
      const leftMs = end - performance.now();
      if (state.kind !== "running" || leftMs <= 0) return state;
      await sleep(Math.min(pauseMs, leftMs), undefined, { signal });
    }
  }

  async jobs(): Promise<readonly KnownJob[]> {
    const found: KnownJob[] = [];
    for await (const { facts } of this.#records.list(inStates("started", "ended", "lost")))
      found.push({ id: facts.id, operation: facts.operation });
    return found;
  }

  async output(id: string, from: number): Promise<Lines> {
    const record = await this.#records.read(id);
    const nothing = { lines: [], next: from };
    if (record === undefined || record.state.kind === "placed") return nothing;
    if (record.state.kind !== "started") {
      const { kept } = record.state;
      return kept.isForgotten || from >= kept.outputBytes ? nothing : this.#said.read(record, kept, from);
    }
    if (record.facts.format === "apb")
      return wholeLines((await this.#said.soFar(record)).out.subarray(from), from, false);
    if (!this.#memory.isAskedAgain(id, this.#settings.readEveryMs)) return nothing;
    return this.#pods.output(record, from);
  }

  async log(id: string, lastBytes: number): Promise<string> {
    const record = await this.#records.read(id);
    if (record === undefined || record.state.kind === "placed") return "";
    if (record.state.kind !== "started")
      return lastLines(Buffer.from(await this.#said.log(record, record.state.kept)), lastBytes);
    const pod = await this.#pods.find(record);
    if (pod === undefined) return "";
    const state = podState(pod);
    if (state.kind === "waiting") return `waits: ${state.why}\n`;
    const text = await this.#pods.rawLog(record, pod, state, lastBytes);
    const out =
      record.facts.format === "apb"
        ? (await this.#said.soFar(record)).out
        : await this.#pods.wholeOutput(record, pod).catch(orNull);
    const masked = await this.#pods.masked(record, text, out ?? Buffer.alloc(0));
    if (masked !== "") return masked.slice(-lastBytes);
    // It may have ended meanwhile, and its pod went while it was asked.
    const now = await this.#records.read(id);
    return now !== undefined && "kept" in now.state ? this.log(id, lastBytes) : "";
  }

  /**
   * First it is written down that the job is to end, so that whoever finds its Job gone knows why. Then the program is told to, and has its grace; what it
   * says meanwhile is kept. What cannot be told so, because nothing runs yet, because the pod does not answer, or because it is a
   * classic bundle, is deleted, and waited for.
   */
  async stop(id: string): Promise<void> {
    const giveUpAt = performance.now() + this.#settings.graceMs + stopMs;
    let isTold = false;
    for (let pauseMs = lookMs.first; performance.now() < giveUpAt; pauseMs = Math.min(pauseMs * 2, lookMs.most)) {
      const record = await this.#records.read(id);
      if (record === undefined) return;
      const { state } = record;
      if (state.kind === "placed") {
        const kept = { said: "", parts: 0, outputBytes: 0, at: now(), isForgotten: false };
        const ended = await this.#records.change(record, { kind: "ended", exitCode: 0, cause: "stopped", kept });
        if (ended !== undefined) await this.#clearing.clear(ended);
        continue;
      }
      if (state.kind !== "started") {
        if (!record.isCleared) await this.#clearing.clear(record);
        return;
      }
      if (!state.stopping) {
        await this.#records.change(record, { ...state, stopping: true });
        continue;
      }
      const seen = await this.#sight.see(record);
      if (seen.kind === "settled") continue;
      if (!isTold) {
        isTold = true;
        // What takes longer than its grace and a moment was not told, or does not listen.
        if (await this.#pods.tellToStop(record)) {
          const end = performance.now() + this.#settings.graceMs + lastWordsMs;
          const { signal } = new AbortController();
          while (performance.now() < end && (await this.look(id, { waitMs: lookMs.most, signal })).kind === "running");
          continue;
        }
      }
      await this.#removal.remove(record, giveUpAt);
      await sleep(pauseMs);
    }
    throw new RunnerError("not stopped", id);
  }

  /** Killed after the log was written: the next call does the rest. */
  async forget(id: string, secrets: readonly unknown[] = []): Promise<void> {
    const record = await this.#records.read(id);
    if (record === undefined) return;
    const { state } = record;
    if (state.kind !== "ended" && state.kind !== "lost") return;
    if (!record.isCleared) await this.#clearing.clear(record);
    if (state.kept.isForgotten) return;
    const parts = Math.min(state.kept.parts, 1);
    await this.#said.forget(record, state.kept, redact(await this.#said.log(record, state.kept), secrets));
    await this.#records.change(record, { ...state, kept: { ...state.kept, parts, isForgotten: true } });
  }

  /** Waits until the bundle runs. What keeps it from that is thrown; the cluster goes on trying, and so does whoever called. */
  async #begins(record: JobRecord, signal: AbortSignal): Promise<void> {
    const end = performance.now() + beginMs;
    for (let now = record; now.state.kind === "started" && performance.now() < end; ) {
      signal.throwIfAborted();
      const seen = await this.#sight.see(now);
      if (seen.kind !== "waiting") return;
      if (seen.failure !== null) throw new RunnerError(seen.failure, seen.why);
      await sleep(lookMs.first, undefined, { signal });
      now = (await this.#records.read(record.facts.id, signal)) ?? now;
    }
  }
}

const running = { kind: "running" } as const;

function stateOf(state: RecordState | undefined): JobState {
  switch (state?.kind) {
    case undefined:
    case "placed":
      return { kind: "unknown" };
    case "started":
      return running;
    case "ended":
      return { kind: "ended", exitCode: state.exitCode, cause: state.cause };
    case "lost":
      return { kind: "lost", why: state.why };
  }
}

function now(): string {
  return new Date().toISOString();
}
