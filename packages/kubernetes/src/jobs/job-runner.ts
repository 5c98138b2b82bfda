import { setTimeout as sleep } from "node:timers/promises";
import {
  addressSecrets,
  checkJobId,
  type Job,
  type JobState,
  type KnownJob,
  noOutput,
  type Runner,
  RunnerError,
  readOutput,
  redact,
  secretParts,
} from "@osbert/bundles";
import { isJsonObject, type JsonObject } from "@osbert/protocol";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError, isPassing } from "../cluster/cluster-error.js";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";
import { askForCredentials, isAskedForCredentials, leftLines, progressLine } from "./classic-bundle.js";
import { idAnnotation, labels } from "./job-names.js";
import {
  containers,
  denyAll,
  inputKey,
  inputSecrets,
  type JobPlan,
  jobObject,
  roleBindings,
  sandboxNamespace,
  serviceAccount,
} from "./job-objects.js";
import { inStates, type JobRecord, JobRecords, type RecordState } from "./job-record.js";
import { fillOptions, type JobRunnerOptions, type JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { planJob } from "./plan-job.js";
import { keeperCommands } from "./pod-scripts.js";
import { type PodState, podState } from "./pod-state.js";
import { keptLogBytes, type Lines, lastLines, Said, secretBytes, wholeLines } from "./said.js";

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
 * 4. The Job is resumed, if it still has that uid. Killed before: whoever starts it or looks at it next does it.
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
  const runner = new JobRunner(settings, place);
  runner.sweepSoon();
  return runner;
}

const lookMs = { first: 200, most: 2_000 };
/** How long a start waits to see the bundle begin; a cluster that takes longer is believed to do it later. */
const beginMs = 20_000;
/** To stop a job takes its grace and what the kubelet needs. A node that takes longer does not answer. */
const stopMs = 60_000;
/** After its end a program's last words are on their way for a moment. */
const drainMs = 10_000;
const sweepEveryMs = 600_000;
const abandonedMs = 3_600_000;
const readBytes = 1_048_576;
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
  /** When the output of a running job was read last. */
  readonly #readAtMs = new Map<string, number>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(settings: JobRunnerSettings, place: string) {
    this.place = place;
    this.#settings = settings;
    this.#cluster = settings.cluster;
    this.#records = new JobRecords(settings.cluster, settings.namespace);
    this.#said = new Said(settings.cluster, settings.namespace);
  }

  async start(job: Job, signal: AbortSignal): Promise<void> {
    checkJobId(job.id);
    signal.throwIfAborted();
    this.sweepSoon();
    let record = await this.#records.read(job.id, signal);
    if (record === undefined || record.state.kind === "placed") {
      const plan = await planJob(job, this.#settings, signal);
      signal.throwIfAborted();
      record = await this.#records.place(plan.facts);
      if (record.state.kind === "placed") record = await this.#launch({ ...plan, facts: record.facts }, record, signal);
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
      return kept.isForgotten || from >= kept.outputBytes ? nothing : this.#said.read(record, from, kept.outputBytes);
    }
    if (record.facts.format === "apb") return wholeLines((await this.#said.soFar(record)).subarray(from), from, false);
    const last = this.#readAtMs.get(id);
    if (last !== undefined && performance.now() < last + this.#settings.readEveryMs) return nothing;
    this.#readAtMs.set(id, performance.now());
    const pod = await this.#pod(record);
    if (pod === undefined || !isAsked(podState(pod))) return nothing;
    // A line that is longer than a piece is read whole.
    for (let most = readBytes; ; most *= 4) {
      const bytes = await this.#keeper(pod, keeperCommands.read("out", from, most), most).catch(orNull);
      if (bytes === null) return nothing;
      const lines = wholeLines(bytes, from, false);
      if (lines.next > from || bytes.length < most || most >= record.facts.outputBytes) return lines;
    }
  }

  async log(id: string, lastBytes: number): Promise<string> {
    const record = await this.#records.read(id);
    if (record === undefined || record.state.kind === "placed") return "";
    if (record.state.kind !== "started") return lastLines(Buffer.from(await this.#said.log(record)), lastBytes);
    const pod = await this.#pod(record);
    if (pod === undefined) return "";
    const state = podState(pod);
    if (state.kind === "waiting") return `waits: ${state.why}\n`;
    const text = await this.#rawLog(record, pod, state, lastBytes);
    const out =
      record.facts.format === "apb"
        ? await this.#said.soFar(record)
        : await this.#wholeOutput(record, pod).catch(orNull);
    return this.#masked(record, text, out ?? Buffer.alloc(0)).then((masked) => masked.slice(-lastBytes));
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
        const kept = { parts: 0, outputBytes: 0, at: now(), isForgotten: false };
        const ended = await this.#records.change(record, { kind: "ended", exitCode: 0, cause: "stopped", kept });
        if (ended !== undefined) await this.#clear(ended);
        continue;
      }
      if (state.kind !== "started") {
        if (!record.isCleared) await this.#clear(record);
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
        if (await this.#tellToStop(record)) {
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
    if (!record.isCleared) await this.#clear(record);
    if (state.kept.isForgotten) return;
    if (state.kept.parts > 0)
      await this.#said.forget(record, state.kept.parts, redact(await this.#said.log(record), secrets));
    await this.#records.change(record, { ...state, kept: { ...state.kept, isForgotten: true } });
  }

  /** Now and then, beside whatever else goes on: what could not be removed, was abandoned, or is old. */
  sweepSoon(): void {
    if (performance.now() < this.#sweptAtMs + sweepEveryMs) return;
    this.#sweptAtMs = performance.now();
    this.#sweep().catch((error: unknown) => this.#settings.observe?.({ kind: "not swept", job: null, error }));
  }

  /** Steps 2 to 4. Answers with the record as it is then. */
  async #launch(plan: JobPlan, placed: JobRecord, signal: AbortSignal): Promise<JobRecord> {
    if (plan.facts.sandbox) await this.#makeSandbox(plan);
    signal.throwIfAborted();
    const made = await this.#make(kinds.job, jobObject(plan, this.#settings));
    const uid = made.metadata.uid ?? "";
    if (made.metadata.deletionTimestamp !== undefined)
      throw new RunnerError("not started", "a Job that was abandoned is still going away");
    try {
      await this.#makeOwn(kinds.serviceAccount, serviceAccount(plan, uid), uid);
      for (const binding of roleBindings(plan, this.#settings)) await this.#bindRole(binding);
      for (const secret of inputSecrets(plan, uid)) await this.#makeOwn(kinds.secret, secret, uid);
      if (!plan.job.limits.network) await this.#makeOwn(kinds.networkPolicy, denyAll(plan, uid), uid);
      signal.throwIfAborted();
    } catch (error) {
      // Somebody may have ended it meanwhile: then that is the answer.
      const record = await this.#records.read(plan.job.id);
      if (record === undefined || record.state.kind === "placed") throw error;
    }
    const started = await this.#records.change(placed, { kind: "started", uid, stopping: false });
    const record = started ?? (await this.#records.read(plan.job.id));
    if (record?.state.kind === "started" && record.state.uid === uid) await this.#resume(record);
    // Another one is the job, or it has ended: this Job would never run.
    else if (record?.state.kind !== "placed") await this.#removeUid(plan.facts.namespace, plan.name, uid);
    if (record === undefined) throw new RunnerError("not started", "its record was removed meanwhile");
    return record;
  }

  async #resume({ name, facts, state }: JobRecord): Promise<void> {
    if (state.kind !== "started") return;
    try {
      await this.#cluster.patch(kinds.job, { namespace: facts.namespace, name }, [
        { op: "test", path: "/metadata/uid", value: state.uid },
        { op: "replace", path: "/spec/suspend", value: false },
      ]);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.failure !== "conflict") throw error;
    }
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
    const pod = await this.#pod(record);
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
    if ((await this.#pod(record)) !== undefined)
      return { kind: "waiting", why: "its pod is being made", failure: null };
    if (job === undefined || job.metadata.uid !== record.state.uid)
      return this.#settleGone(record, "its Job was deleted");
    if (job.metadata.deletionTimestamp !== undefined) return running;
    const { suspend } = job.spec as { readonly suspend?: boolean };
    if (suspend === true) {
      await this.#resume(record);
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
    if ((await this.#pod(record)) !== undefined) return running;
    return this.#settle(record, end, Buffer.alloc(0), why);
  }

  /** Reads what the program of an own bundle has said. */
  async #collect(record: JobRecord, pod: ClusterObject, ended: PodState & { readonly kind: "ended" }): Promise<Seen> {
    const end = performance.now() + drainMs;
    let look = await this.#keeperLook(pod);
    while (!look.isDone && performance.now() < end) {
      await sleep(lookMs.first);
      look = await this.#keeperLook(pod);
    }
    const out = await this.#wholeOutput(record, pod);
    const log = await this.#rawLog(record, pod, ended, keptLogBytes);
    const cause = look.cause === "exit" ? ended.cause : look.cause;
    return this.#settle(
      record,
      { kind: "ended", exitCode: ended.exitCode, cause },
      out,
      await this.#masked(record, log, out),
    );
  }

  async #settleClassic(
    record: JobRecord,
    pod: ClusterObject,
    ended: PodState & { readonly kind: "ended" },
  ): Promise<Seen> {
    await this.#hear(record, pod);
    const said = await this.#said.soFar(record);
    const left = await leftLines(this.#cluster, record.facts, pod, ended.message);
    const out = withLines(said, left);
    const log = `${await this.#rawLog(record, pod, ended, keptLogBytes)}${ended.cause === "exit" ? "" : `${ended.why}\n`}`;
    const isStopped = record.state.kind === "started" && record.state.stopping && ended.exitCode > 128;
    const cause = isStopped ? "stopped" : ended.cause;
    return this.#settle(
      record,
      { kind: "ended", exitCode: ended.exitCode, cause },
      out,
      await this.#masked(record, log, out),
    );
  }

  /** Nothing of it runs, and nobody knows how it ended. If it was to be stopped, that is how. */
  async #settleGone(record: JobRecord, why: string): Promise<Seen> {
    const isStopped = record.state.kind === "started" && record.state.stopping;
    const end: End = isStopped ? { kind: "ended", exitCode: killedCode, cause: "stopped" } : { kind: "lost", why };
    if (record.facts.format !== "apb") return this.#settle(record, end, Buffer.alloc(0), `${why}\n`);
    return this.#settle(record, end, await this.#said.soFar(record), `${await this.#said.log(record)}${why}\n`);
  }

  async #settle(record: JobRecord, end: End, out: Buffer, log: string): Promise<Seen> {
    const parts = await this.#said.write(record, out, log);
    const kept = { parts, outputBytes: out.length, at: now(), isForgotten: false };
    const changed = await this.#records.change(record, { ...end, kept });
    this.#readAtMs.delete(record.facts.id);
    if (changed === undefined) {
      const other = await this.#records.read(record.facts.id);
      // It was told to stop meanwhile: the next look settles it with that.
      if (other === undefined || other.state.kind === "started" || other.state.kind === "placed") return running;
      return { kind: "settled", record: other };
    }
    await this.#clear(changed);
    return { kind: "settled", record: changed };
  }

  /** What a classic bundle tells while it runs. One look after the other: each line is written once. */
  async #hear(record: JobRecord, pod: ClusterObject): Promise<void> {
    const said = await this.#said.soFar(record);
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
      performance.now() < (this.#readAtMs.get(id) ?? 0) + this.#settings.readEveryMs
    )
      return;
    this.#readAtMs.set(id, performance.now());
    const place = { namespace: record.facts.namespace, name: pod.metadata.name };
    const credentials = await askForCredentials(this.#settings.exec, place).catch(orNull);
    if (credentials !== null) await this.#said.add(record, said, credentials);
  }

  /** Whether the program could be told. */
  async #tellToStop(record: JobRecord): Promise<boolean> {
    const pod = record.facts.format === "apb" ? undefined : await this.#pod(record);
    if (pod === undefined || !isAsked(podState(pod))) return false;
    return (await this.#keeper(pod, keeperCommands.stop(), readBytes).catch(orNull)) !== null;
  }

  /**
   * Deletes the Job with its pod, and waits until that is gone. A classic bundle's log goes with the pod, and what its input was with the Job: the log is
   * read before. What it has left in its sandbox is read after.
   */
  async #removeJob(record: JobRecord, giveUpAt: number): Promise<void> {
    const { name, facts, state } = record;
    if (state.kind !== "started") return;
    const pod = await this.#pod(record);
    const isHeard = pod !== undefined && facts.format === "apb";
    if (isHeard) await this.#hear(record, pod);
    const said = isHeard ? await this.#said.soFar(record) : Buffer.alloc(0);
    const raw = isHeard ? await this.#rawLog(record, pod, podState(pod), keptLogBytes) : "";
    const log = isHeard ? await this.#masked(record, raw, said) : "";
    await this.#removeUid(facts.namespace, name, state.uid);
    let left = pod;
    while (left !== undefined && performance.now() < giveUpAt) {
      // Where nobody collects what belongs to a Job, its pod is deleted here.
      const { uid } = left.metadata;
      if (left.metadata.deletionTimestamp === undefined && uid !== undefined)
        await this.#cluster.remove(kinds.pod, { namespace: facts.namespace, name: left.metadata.name }, { uid });
      await sleep(lookMs.first);
      left = await this.#pod(record);
    }
    if (isHeard) await this.#said.write(record, withLines(said, await leftLines(this.#cluster, facts, pod, "")), log);
  }

  async #removeUid(namespace: string, name: string, uid: string): Promise<void> {
    await this.#cluster.remove(kinds.job, { namespace, name }, { uid }, { propagation: "Foreground" });
  }

  /** Removes all of a job that has ended but its record and what it said. What cannot be removed now is tried again by the sweep. */
  async #clear(record: JobRecord): Promise<void> {
    const { name, facts } = record;
    try {
      await this.#removeAny(kinds.job, facts.namespace, name, "Foreground");
      if (facts.target !== null) await this.#removeAny(kinds.roleBinding, facts.target, name);
      if (facts.sandbox) await this.#removeAny(kinds.namespace, "", facts.namespace);
      await this.#records.cleared(record);
    } catch (error) {
      this.#settings.observe?.({ kind: "not cleared", job: facts.id, error });
    }
  }

  async #removeAny(
    kind: ObjectKind,
    namespace: string,
    name: string,
    propagation: "Foreground" | "Background" = "Background",
  ): Promise<void> {
    const found = await this.#cluster.read(kind, { namespace, name });
    // What has our name and not our label is somebody else's.
    if (found?.metadata.uid === undefined || found.metadata.labels?.[labels.job] === undefined) return;
    await this.#cluster.remove(kind, { namespace, name }, { uid: found.metadata.uid }, { propagation });
  }

  async #sweep(): Promise<void> {
    const old = Date.now() - this.#settings.keepMs;
    for await (const record of this.#records.list(`${labels.clear}=due`)) {
      const { state } = record;
      if (state.kind === "ended" || state.kind === "lost") await this.#clear(record);
      else if (state.kind === "placed" && record.createdAtMs < Date.now() - abandonedMs) await this.#abandon(record);
    }
    for await (const record of this.#records.list(`${inStates("ended", "lost", "forgotten")},${labels.clear}=done`))
      if ("kept" in record.state && Date.parse(record.state.kept.at) < old) await this.#records.remove(record);
    for await (const job of this.#cluster.list(kinds.job, { namespace: this.#settings.namespace, labels: labels.job }))
      await this.#sweepUnnamed(kinds.job, job);
    if (this.#settings.sandbox === "never") return;
    for await (const sandbox of this.#cluster.list(kinds.namespace, { labels: labels.job }))
      await this.#sweepUnnamed(kinds.namespace, sandbox);
  }

  /** A start that was given up or killed. Its state is changed first: nobody will run it while it goes. */
  async #abandon(record: JobRecord): Promise<void> {
    const kept = { parts: 0, outputBytes: 0, at: now(), isForgotten: true };
    const ended = await this.#records.change(record, { kind: "ended", exitCode: 0, cause: "stopped", kept });
    if (ended !== undefined) await this.#clear(ended);
  }

  /** What a starter has made that came too late, and was killed before it could remove it. */
  async #sweepUnnamed(kind: ObjectKind, { metadata }: ClusterObject): Promise<void> {
    const { name, uid, annotations, creationTimestamp } = metadata;
    const id = annotations?.[idAnnotation];
    if (uid === undefined || id === undefined || metadata.deletionTimestamp !== undefined) return;
    if (Date.parse(creationTimestamp ?? "") > Date.now() - abandonedMs) return;
    const record = await this.#records.read(id);
    // In a namespace of somebody else's runner there is no record of ours, either.
    if (record === undefined && kind === kinds.namespace) return;
    if (record !== undefined && (record.state.kind === "placed" || record.state.kind === "started")) return;
    await this.#cluster.remove(
      kind,
      { namespace: metadata.namespace ?? "", name },
      { uid },
      { propagation: "Foreground" },
    );
  }

  async #makeSandbox(plan: JobPlan): Promise<void> {
    const made = await this.#make(kinds.namespace, sandboxNamespace(plan));
    if (made.metadata.deletionTimestamp !== undefined)
      throw new RunnerError("not started", "its sandbox is going away");
    for (const name of this.#settings.imagePullSecrets) {
      const found = await this.#cluster.read(kinds.secret, { namespace: this.#settings.namespace, name });
      if (found === undefined) continue;
      const copy = {
        ...found,
        metadata: { name, namespace: plan.facts.namespace, labels: sandboxNamespace(plan).metadata.labels ?? {} },
      };
      await this.#make(kinds.secret, copy);
    }
  }

  /** A namespace that is gone has nothing left to act on: a deprovision must not fail for that. */
  async #bindRole(binding: ClusterObject): Promise<void> {
    await this.#make(kinds.roleBinding, binding).catch((error: unknown) => {
      if (!(error instanceof ClusterError) || error.failure !== "not found") throw error;
    });
  }

  /** Makes an object, or finds it. */
  async #make(kind: ObjectKind, object: ClusterObject): Promise<ClusterObject> {
    try {
      return await this.#cluster.create(kind, object);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.failure !== "conflict") throw error;
      const { name, namespace = "" } = object.metadata;
      const found = await this.#cluster.read(kind, { namespace, name });
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The same of what belongs to the Job; what an earlier Job of the name has left is on its way out. */
  async #makeOwn(kind: ObjectKind, object: ClusterObject, jobUid: string): Promise<void> {
    const made = await this.#make(kind, object);
    if (made.metadata.ownerReferences?.some(({ uid }) => uid === jobUid) === true) return;
    const { name, namespace = "", uid } = made.metadata;
    if (uid !== undefined) await this.#cluster.remove(kind, { namespace, name }, { uid });
    throw new RunnerError("not started", "what an abandoned start has left is still going away");
  }

  /** The pod of a job. There is one at most; were there two, the older one counts, which has begun first. */
  async #pod({ name, facts, state }: JobRecord): Promise<ClusterObject | undefined> {
    if (state.kind !== "started") return undefined;
    const found: ClusterObject[] = [];
    for await (const pod of this.#cluster.list(kinds.pod, {
      namespace: facts.namespace,
      labels: `${labels.job}=${name}`,
    })) {
      const given = pod.metadata.labels ?? {};
      if ((given["batch.kubernetes.io/controller-uid"] ?? given["controller-uid"]) === state.uid) found.push(pod);
    }
    return found.sort((one, other) =>
      (one.metadata.creationTimestamp ?? "").localeCompare(other.metadata.creationTimestamp ?? ""),
    )[0];
  }

  async #keeper(pod: ClusterObject, command: readonly string[], mostBytes: number): Promise<Buffer> {
    const place = { namespace: pod.metadata.namespace ?? "", name: pod.metadata.name };
    const { exitCode, output } = await this.#settings.exec.run(place, {
      container: containers.keeper,
      command,
      mostBytes,
    });
    if (exitCode !== 0) throw new ClusterError("unavailable", `the keeper of ${place.name} answers with ${exitCode}`);
    return output;
  }

  async #keeperLook(pod: ClusterObject): Promise<{ readonly isDone: boolean; readonly cause: Cause }> {
    const [done, cause] = (await this.#keeper(pod, keeperCommands.look(), readBytes)).toString("utf8").split("\n");
    return { isDone: done === "done", cause: causes.find((each) => each === cause) ?? "exit" };
  }

  /** As much as it may have printed. */
  async #wholeOutput({ facts }: JobRecord, pod: ClusterObject): Promise<Buffer> {
    return this.#keeper(pod, keeperCommands.read("out", 0, facts.outputBytes), facts.outputBytes);
  }

  /** The end of what it printed for people, with whatever secret is in it. */
  async #rawLog({ facts }: JobRecord, pod: ClusterObject, state: PodState, lastBytes: number): Promise<string> {
    const place = { namespace: facts.namespace, name: pod.metadata.name };
    if (facts.format === "apb")
      return (
        (await this.#cluster.log(place, { container: containers.bundle, lastBytes: lastBytes + 1 }).catch(orNull)) ?? ""
      );
    if (!isAsked(state)) return "";
    const bytes = await this.#keeper(pod, keeperCommands.read("err", 0, facts.outputBytes), facts.outputBytes).catch(
      orNull,
    );
    return bytes === null ? "" : lastLines(bytes, lastBytes);
  }

  /** Without what the bundle was given and has made as a secret. */
  async #masked({ name, facts }: JobRecord, text: string, out: Buffer): Promise<string> {
    const input = secretBytes(await this.#cluster.read(kinds.secret, { namespace: facts.namespace, name }), inputKey);
    const { credentials, state, dashboard } = readOutput(noOutput, wholeLines(out, 0, true).lines);
    return redact(text, [
      ...secretParts(facts.format, parseInput(input)),
      credentials,
      state,
      addressSecrets(dashboard),
    ]);
  }
}

const running = { kind: "running" } as const;
const causes: readonly Cause[] = ["exit", "timeout", "output", "memory", "disk", "start", "stopped"];

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

/** Whether the keeper can be asked. */
function isAsked(state: PodState): boolean {
  return (state.kind === "running" || state.kind === "ended") && state.keeper === "there";
}

function parseInput(bytes: Buffer): JsonObject {
  const value: unknown = bytes.length === 0 ? {} : JSON.parse(bytes.toString("utf8"));
  return isJsonObject(value) ? value : {};
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

/** What does not answer now is asked again. */
function orNull(error: unknown): null {
  if (error instanceof ClusterError && (isPassing(error) || error.failure === "not found")) return null;
  throw error;
}
