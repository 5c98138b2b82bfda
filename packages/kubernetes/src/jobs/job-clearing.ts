import type { Cluster } from "../cluster/cluster.js";
import type { ClusterObject, ObjectKind, ObjectPlace } from "../cluster/cluster-object.js";
import { idAnnotation, jobName, labels } from "./job-names.js";
import { inStates, type JobRecord, type JobRecords } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";

const sweepEveryMs = 600_000;
/** To start a job takes a moment: what is not started by then was given up. */
const abandonedMs = 3_600_000;

/** Removes a Job with its pod and all that belongs to it, which go first. */
export async function removeJob(cluster: Cluster, place: ObjectPlace, uid: string): Promise<void> {
  await cluster.remove(kinds.job, place, { uid }, { propagation: "Foreground" });
}

/** Removes what jobs have left: at once when they have ended, and what that has missed every ten minutes. */
export class JobClearing {
  readonly #settings: JobRunnerSettings;
  readonly #cluster: Cluster;
  readonly #records: JobRecords;
  readonly #nowMs: () => number;
  #sweptAtMs = Number.NEGATIVE_INFINITY;
  /** Since when a start that has not come to its commit was seen at rest here, by its record and that record's version. */
  #restingSince: ReadonlyMap<string, number> = new Map();

  /** `nowMs`: of a clock that nobody sets. */
  constructor(settings: JobRunnerSettings, records: JobRecords, nowMs: () => number = () => performance.now()) {
    this.#settings = settings;
    this.#cluster = settings.cluster;
    this.#records = records;
    this.#nowMs = nowMs;
  }

  /** Now and then, beside whatever else goes on: what could not be removed, was abandoned, or is old. */
  sweepSoon(): void {
    if (this.#nowMs() < this.#sweptAtMs + sweepEveryMs) return;
    this.#sweptAtMs = this.#nowMs();
    this.sweep().catch((error: unknown) => this.#settings.observe?.({ kind: "not swept", job: null, error }));
  }

  /** Removes all of a job that has ended but its record and what it said. What cannot be removed now is tried again by the sweep. */
  async clear(record: JobRecord): Promise<void> {
    try {
      await this.removeObjects(record);
      await this.#records.cleared(record);
    } catch (error) {
      this.#settings.observe?.({ kind: "not cleared", job: record.facts.id, error });
    }
  }

  /** The role in the namespace of a user goes first: it does not go with the Job, and the sweep finds what is left by the Job. */
  async removeObjects({ name, facts }: Pick<JobRecord, "name" | "facts">): Promise<void> {
    if (facts.target !== null) await this.#removeAny(kinds.roleBinding, facts.target, name);
    await this.#removeAny(kinds.job, facts.namespace, name, "Foreground");
    if (facts.sandbox) await this.#removeAny(kinds.namespace, "", facts.namespace);
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

  /** What cannot be swept keeps nothing else from it. */
  async sweep(): Promise<void> {
    const resting = new Map<string, number>();
    for await (const record of this.#records.list(`${labels.clear}=due`)) {
      const { state } = record;
      if (state.kind === "ended" || state.kind === "lost") await this.clear(record);
      if (state.kind !== "placed") continue;
      const key = `${record.uid} ${record.resourceVersion}`;
      const since = this.#restingSince.get(key) ?? this.#nowMs();
      resting.set(key, since);
      if (this.#nowMs() - since >= abandonedMs) await this.#trying(record.facts.id, () => this.#abandon(record));
    }
    this.#restingSince = resting;
    const old = Date.now() - this.#settings.keepMs;
    for await (const record of this.#records.list(`${inStates("ended", "lost", "forgotten")},${labels.clear}=done`))
      if ("kept" in record.state && Date.parse(record.state.kept.at) < old)
        await this.#trying(record.facts.id, () => this.#records.remove(record));
    for await (const job of this.#cluster.list(kinds.job, { namespace: this.#settings.namespace, labels: labels.job }))
      await this.#trying(null, () => this.#sweepUnnamed(kinds.job, job));
    if (this.#settings.sandbox === "never") return;
    for await (const sandbox of this.#cluster.list(kinds.namespace, { labels: labels.job }))
      await this.#trying(null, () => this.#sweepUnnamed(kinds.namespace, sandbox));
  }

  async #trying(job: string | null, sweepOne: () => Promise<void>): Promise<void> {
    await sweepOne().catch((error: unknown) => this.#settings.observe?.({ kind: "not swept", job, error }));
  }

  /** A start that was given up or killed. Its state is changed first: nobody will run it while it goes. */
  async #abandon(record: JobRecord): Promise<void> {
    const kept = { said: "", parts: 0, outputBytes: 0, at: new Date().toISOString(), isForgotten: true };
    const ended = await this.#records.change(record, { kind: "ended", exitCode: 0, cause: "stopped", kept });
    if (ended !== undefined) await this.clear(ended);
  }

  /** What a starter has made that came too late, and was killed before it could remove it. */
  async #sweepUnnamed(kind: ObjectKind, { metadata }: ClusterObject): Promise<void> {
    const { name, uid, annotations, creationTimestamp } = metadata;
    const id = annotations?.[idAnnotation];
    if (uid === undefined || id === undefined || metadata.deletionTimestamp !== undefined) return;
    // What somebody else has put our words on is his.
    if (jobName(id) !== name) return;
    if (Date.parse(creationTimestamp ?? "") > Date.now() - abandonedMs) return;
    const record = await this.#records.read(id);
    if (record !== undefined) {
      if ("kept" in record.state) await this.clear(record);
      return;
    }
    // In a namespace of somebody else's runner there is no record of ours, either.
    if (kind === kinds.namespace) return;
    await removeJob(this.#cluster, { namespace: metadata.namespace ?? "", name }, uid);
  }
}
