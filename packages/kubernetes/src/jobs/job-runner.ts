import { setTimeout as sleep } from "node:timers/promises";
import { checkJobId, type Job, type JobState, type KnownJob, type Runner, RunnerError, redact } from "@osbert/bundles";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { askForCredentials, isAskedForCredentials, leftLines, progressLine } from "./classic-bundle.js";
import { JobClearing, removeJob } from "./job-clearing.js";
import { JobLauncher } from "./job-launcher.js";
import { resumedAnnotation } from "./job-names.js";
import { JobPods, orNull } from "./job-pods.js";
import { inStates, type JobRecord, JobRecords, type RecordState } from "./job-record.js";
import { fillOptions, type JobRunnerOptions, type JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { planJob } from "./plan-job.js";
import { type PodState, podState } from "./pod-state.js";
import { keptLogBytes, type Lines, lastLines, Said, wholeLines } from "./said.js";

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
 * Of an end: first what was said is read from the pod and written to Secrets beside the record; then the record gets its end, which is for ever;
 * then the Job goes with all that belongs to it. Killed between any two: the next who looks, or the sweep, goes on there.
 */
export async function openJobRunner(options: JobRunnerOptions): Promise<Runner> {
  const settings = fillOptions(options);
  const place = options.place ?? (await placeOfNamespace(settings));
  return new JobRunner(settings, place);
}

const lookMs = { first: 200, most: 2_000 };
/** How long a start waits to see the bundle begin; a cluster that takes longer is believed to do it later. */
const beginMs = 20_000;
/** To stop a job takes its grace and what the kubelet needs. A node that takes longer does not answer. */
const stopMs = 60_000;
/** After its end a program's last words are on their way for a moment. */
const drainMs = 10_000;
/** Of a container that was told to end, and whose own code nobody knows. */
const killedCode = 137;

async function placeOfNamespace({ cluster, namespace }: JobRunnerSettings): Promise<string> {
  const found = await cluster.read(kinds.namespace, { namespace: "", name: namespace });
  if (found?.metadata.uid === undefined)
    throw new RunnerError("no engine", `the cluster has no namespace ${namespace}`);
  return `kubernetes:${found.metadata.uid}`;
}

/** What is to be written down of a job's end. */
type End =
  | { readonly kind: "ended"; readonly exitCode: number; readonly cause: Cause }
  | { readonly kind: "lost"; readonly why: string };
type Cause = Extract<JobState, { kind: "ended" }>["cause"];

/** How far a started job is. */
type Seen =
  | { readonly kind: "settled"; readonly record: JobRecord }
  | (PodState & { readonly kind: "waiting" })
  | { readonly kind: "running" };

class JobRunner implements Runner {
  readonly name = "kubernetes";
  readonly place: string;
  readonly #settings: JobRunnerSettings;
  readonly #cluster: Cluster;
  readonly #records: JobRecords;
  readonly #said: Said;
  readonly #launcher: JobLauncher;
  readonly #clearing: JobClearing;
  readonly #pods: JobPods;
  /** When a running job was asked last by a command in its pod. */
  readonly #askedAtMs = new Map<string, number>();

  constructor(settings: JobRunnerSettings, place: string) {
    this.place = place;
    this.#settings = settings;
    this.#cluster = settings.cluster;
    this.#records = new JobRecords(settings.cluster, settings.namespace);
    this.#said = new Said(settings.cluster, settings.namespace);
    this.#launcher = new JobLauncher(settings, this.#records);
    this.#clearing = new JobClearing(settings, this.#records);
    this.#pods = new JobPods(settings);
    this.#clearing.sweepSoon();
  }

  async start(job: Job, signal: AbortSignal): Promise<void> {
    checkJobId(job.id);
    signal.throwIfAborted();
    this.#clearing.sweepSoon();
    let record = await this.#records.read(job.id, signal);
    if (record === undefined || record.state.kind === "placed") {
      const plan = await planJob(job, this.#settings, signal);
      signal.throwIfAborted();
      record = await this.#records.place(plan.facts);
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
      const seen = record?.state.kind === "started" ? await this.#see(record) : undefined;
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
    const last = this.#askedAtMs.get(id);
    if (last !== undefined && performance.now() < last + this.#settings.readEveryMs) return nothing;
    this.#askedAtMs.set(id, performance.now());
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
      const seen = await this.#see(record);
      if (seen.kind === "settled") continue;
      if (!isTold) {
        isTold = true;
        // What takes longer than its grace and a moment was not told, or does not listen.
        if (await this.#pods.tellToStop(record)) {
          const end = performance.now() + this.#settings.graceMs + drainMs;
          const { signal } = new AbortController();
          while (performance.now() < end && (await this.look(id, { waitMs: lookMs.most, signal })).kind === "running");
          continue;
        }
      }
      await this.#removeJob(record, giveUpAt);
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
    await this.#said.forget(record, state.kept, redact(await this.#said.log(record, state.kept), secrets));
    await this.#records.change(record, { ...state, kept: { ...state.kept, isForgotten: true } });
  }

  /** Waits until the bundle runs. What keeps it from that is thrown; the cluster goes on trying, and so does whoever called. */
  async #begins(record: JobRecord, signal: AbortSignal): Promise<void> {
    const end = performance.now() + beginMs;
    for (let now = record; now.state.kind === "started" && performance.now() < end; ) {
      signal.throwIfAborted();
      const seen = await this.#see(now);
      if (seen.kind !== "waiting") return;
      if (seen.failure !== null) throw new RunnerError(seen.failure, seen.why);
      await sleep(lookMs.first, undefined, { signal });
      now = (await this.#records.read(record.facts.id, signal)) ?? now;
    }
  }

  /** Looks at a started job in the cluster. One that has ended there is settled. */
  async #see(record: JobRecord): Promise<Seen> {
    try {
      return await this.#seeOnce(record);
    } catch (error) {
      // Another one may have settled it meanwhile, and its pod went while it was asked.
      const now = error instanceof ClusterError ? await this.#records.read(record.facts.id) : undefined;
      if (now !== undefined && "kept" in now.state) return { kind: "settled", record: now };
      throw error;
    }
  }

  async #seeOnce(record: JobRecord): Promise<Seen> {
    const pod = await this.#pods.find(record);
    if (pod === undefined) return this.#seeWithoutPod(record);
    const state = podState(pod);
    const isClassic = record.facts.format === "apb";
    const { startWithinMs, graceMs } = this.#settings;
    switch (state.kind) {
      case "waiting":
        if (pod.metadata.deletionTimestamp !== undefined) return running;
        if (Date.now() - Date.parse(pod.metadata.creationTimestamp ?? "") < startWithinMs) return state;
        return this.#endNow(record, { kind: "ended", exitCode: 1, cause: "start" }, state.why);
      case "running":
        if (isClassic) await this.#hear(record, pod);
        // Its own watch and the kubelet's come first.
        if (Date.now() - state.sinceMs < record.facts.timeoutMs + graceMs + stopMs) return running;
        return this.#endNow(
          record,
          { kind: "ended", exitCode: killedCode, cause: "timeout" },
          "it did not end when it was told to",
        );
      case "ended":
        if (isClassic) return this.#settleClassic(record, pod, state);
        if (state.cause === "start")
          return this.#settle(
            record,
            { kind: "ended", exitCode: state.exitCode, cause: "start" },
            Buffer.alloc(0),
            startWords(state),
          );
        if (state.keeper === "not yet") return running;
        if (state.keeper === "there") return this.#collect(record, pod, state);
        if (state.cause === "timeout" || state.cause === "disk")
          return this.#settle(
            record,
            { kind: "ended", exitCode: state.exitCode, cause: state.cause },
            Buffer.alloc(0),
            state.why,
          );
        return this.#settleGone(record, `nobody has read what it said before its pod ended (${state.why})`);
      case "gone":
        if (state.cause === null) return this.#settleGone(record, state.why);
        return this.#settle(
          record,
          { kind: "ended", exitCode: killedCode, cause: state.cause },
          Buffer.alloc(0),
          state.why,
        );
    }
  }

  async #seeWithoutPod(record: JobRecord): Promise<Seen> {
    if (record.state.kind !== "started") return running;
    const job = await this.#cluster.read(kinds.job, { namespace: record.facts.namespace, name: record.name });
    // A pod may have come, and gone into another state, between the two looks.
    if ((await this.#pods.find(record)) !== undefined)
      return { kind: "waiting", why: "its pod is being made", failure: null };
    if (job === undefined || job.metadata.uid !== record.state.uid)
      return this.#settleGone(record, "its Job was deleted");
    if (job.metadata.deletionTimestamp !== undefined) return running;
    const { suspend } = job.spec as { readonly suspend?: boolean };
    if (suspend === true && job.metadata.annotations?.[resumedAnnotation] !== "no") {
      await removeJob(this.#cluster, { namespace: record.facts.namespace, name: record.name }, record.state.uid);
      return this.#settleGone(record, "its Job was suspended");
    }
    if (suspend === true) {
      await this.#launcher.resume(record);
      return { kind: "waiting", why: "it is being started", failure: null };
    }
    const failed = conditionsOf(job).find(
      ({ type, status }) => (type === "Failed" || type === "Complete") && status === "True",
    );
    if (failed?.reason === "DeadlineExceeded")
      return this.#settle(
        record,
        { kind: "ended", exitCode: killedCode, cause: "timeout" },
        Buffer.alloc(0),
        failed.message ?? "",
      );
    if (failed !== undefined) return this.#settleGone(record, `its pod is gone (${failed.reason ?? failed.type})`);
    const waiting = {
      kind: "waiting",
      why: "the cluster has made no pod of it yet; a quota may be full",
      failure: null,
    } as const;
    if (Date.now() - Date.parse(job.metadata.creationTimestamp ?? "") < this.#settings.startWithinMs) return waiting;
    return this.#endNow(record, { kind: "ended", exitCode: 1, cause: "start" }, waiting.why);
  }

  /** Ends it by force, and says so when nothing of it is left. */
  async #endNow(record: JobRecord, end: End, why: string): Promise<Seen> {
    await this.#removeJob(record, performance.now() + stopMs);
    if ((await this.#pods.find(record)) !== undefined) return running;
    return this.#settle(record, end, Buffer.alloc(0), why);
  }

  /** Reads what the program of an own bundle has said. */
  async #collect(record: JobRecord, pod: ClusterObject, ended: PodState & { readonly kind: "ended" }): Promise<Seen> {
    const end = performance.now() + drainMs;
    let look = await this.#pods.lookAtKeeper(pod);
    while (!look.isDone && performance.now() < end) {
      await sleep(lookMs.first);
      look = await this.#pods.lookAtKeeper(pod);
    }
    const out = await this.#pods.wholeOutput(record, pod);
    const log = await this.#pods.rawLog(record, pod, ended, keptLogBytes);
    const cause = look.cause === "exit" ? ended.cause : look.cause;
    return this.#settle(
      record,
      { kind: "ended", exitCode: ended.exitCode, cause },
      out,
      await this.#pods.masked(record, log, out),
    );
  }

  async #settleClassic(
    record: JobRecord,
    pod: ClusterObject,
    ended: PodState & { readonly kind: "ended" },
  ): Promise<Seen> {
    await this.#hear(record, pod);
    const said = (await this.#said.soFar(record)).out;
    const left = await leftLines(this.#cluster, record.facts, pod, ended.message);
    const out = withLines(said, left);
    const log = `${await this.#pods.rawLog(record, pod, ended, keptLogBytes)}${ended.cause === "exit" ? "" : `${ended.why}\n`}`;
    const isStopped = record.state.kind === "started" && record.state.stopping && ended.exitCode > 128;
    const cause = isStopped ? "stopped" : ended.cause;
    return this.#settle(
      record,
      { kind: "ended", exitCode: ended.exitCode, cause },
      out,
      await this.#pods.masked(record, log, out),
    );
  }

  /** Nothing of it runs, and nobody knows how it ended. If it was to be stopped, that is how. */
  async #settleGone(record: JobRecord, why: string): Promise<Seen> {
    const isStopped = record.state.kind === "started" && record.state.stopping;
    const end: End = isStopped ? { kind: "ended", exitCode: killedCode, cause: "stopped" } : { kind: "lost", why };
    if (record.facts.format !== "apb") return this.#settle(record, end, Buffer.alloc(0), `${why}\n`);
    const { out, log } = await this.#said.soFar(record);
    return this.#settle(record, end, out, `${log.toString("utf8")}${why}\n`);
  }

  async #settle(record: JobRecord, end: End, out: Buffer, log: string): Promise<Seen> {
    const written = await this.#said.write(record, out, log);
    const kept = { ...written, outputBytes: out.length, at: now(), isForgotten: false };
    const changed = await this.#records.change(record, { ...end, kept });
    this.#askedAtMs.delete(record.facts.id);
    const settled = changed ?? (await this.#records.read(record.facts.id));
    // It was told to stop meanwhile: the next look settles it with that.
    if (settled === undefined || !("kept" in settled.state)) return running;
    // What was written in vain, by this one too, and what was said while it ran.
    await this.#said.removeOthers(settled, settled.state.kept);
    if (changed !== undefined) await this.#clearing.clear(changed);
    return { kind: "settled", record: settled };
  }

  /** What a classic bundle tells while it runs. One look after the other: each line is written once. */
  async #hear(record: JobRecord, pod: ClusterObject): Promise<void> {
    const said = (await this.#said.soFar(record)).out;
    const lines = said.toString("utf8").split("\n");
    const progress = progressLine(pod);
    if (progress !== null && lines.findLast((line) => line.startsWith('{"progress"')) !== progress) {
      await this.#said.add(record, said, progress);
      return;
    }
    const { id } = record.facts;
    if (!isAskedForCredentials(record.facts) || lines.some((line) => line.startsWith('{"credentials"'))) return;
    if (
      podState(pod).kind !== "running" ||
      performance.now() < (this.#askedAtMs.get(id) ?? 0) + this.#settings.readEveryMs
    )
      return;
    this.#askedAtMs.set(id, performance.now());
    const place = { namespace: record.facts.namespace, name: pod.metadata.name };
    const credentials = await askForCredentials(this.#settings.exec, place).catch(orNull);
    if (credentials !== null) await this.#said.add(record, said, credentials);
  }

  /**
   * Deletes the Job with its pod, and waits until that is gone. A classic bundle that is stopped may clear up: its pod goes first, while it still has its
   * service account. Its log goes with the pod, and is read before; what it has left in its sandbox is read after.
   */
  async #removeJob(record: JobRecord, giveUpAt: number): Promise<void> {
    const { name, facts, state } = record;
    if (state.kind !== "started") return;
    const pod = await this.#pods.find(record);
    if (pod !== undefined && facts.format === "apb" && state.stopping) {
      await this.#hear(record, pod);
      const said = (await this.#said.soFar(record)).out;
      const raw = await this.#pods.rawLog(record, pod, podState(pod), keptLogBytes);
      const log = await this.#pods.masked(record, raw, said);
      await this.#launcher.suspend(record);
      await this.#awaitNoPod(record, giveUpAt);
      const left = await leftLines(this.#cluster, facts, pod, "");
      await this.#said.replaceSoFar(record, withLines(said, left), log);
    }
    await removeJob(this.#cluster, { namespace: facts.namespace, name }, state.uid);
    await this.#awaitNoPod(record, giveUpAt);
  }

  async #awaitNoPod(record: JobRecord, giveUpAt: number): Promise<void> {
    for (;;) {
      const pod = await this.#pods.find(record);
      if (pod === undefined || performance.now() > giveUpAt) return;
      // Where nobody collects what belongs to a Job, its pod is deleted here.
      const { name, uid, deletionTimestamp } = pod.metadata;
      if (deletionTimestamp === undefined && uid !== undefined)
        await this.#cluster.remove(kinds.pod, { namespace: record.facts.namespace, name }, { uid });
      await sleep(lookMs.first);
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

function withLines(said: Buffer, lines: readonly string[]): Buffer {
  return Buffer.concat([said, ...lines.map((line) => Buffer.from(`${line}\n`))]);
}

function startWords({ why, message }: PodState & { readonly kind: "ended" }): string {
  return `the container could not be started: ${[why, message].filter((text) => text !== "").join(": ")}\n`;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

function conditionsOf({ status }: ClusterObject): readonly Condition[] {
  return ((status ?? {}) as { readonly conditions?: readonly Condition[] }).conditions ?? [];
}

function now(): string {
  return new Date().toISOString();
}
