import type { Action, BundleFormat, JobOperation, JobState } from "@osbert/bundles";
import { isJsonObject } from "@osbert/protocol";
import type { Cluster, PatchOperation } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { idAnnotation, jobLabels, jobName, labels, triedAnnotation } from "./job-names.js";
import type { JobRunnerOptions } from "./job-runner-options.js";
import { kinds } from "./kinds.js";

/** What does not change of a job, and is no secret. */
export interface RecordFacts {
  readonly id: string;
  readonly operation: JobOperation | null;
  readonly format: BundleFormat;
  readonly runtime: 1 | 2 | null;
  readonly action: Action;
  /** Where its Job and its pod are. */
  readonly namespace: string;
  /** That namespace is its own, and goes with it. */
  readonly sandbox: boolean;
  /** Where it has a role beside. */
  readonly target: string | null;
  readonly outputBytes: number;
  readonly timeoutMs: number;
}

type Ended = Extract<JobState, { kind: "ended" }>;

/**
 * How far a job is. `placed`: nothing of it can run. `started`: the Job with this uid, and no other, is the job; `stopping`: somebody has asked
 * for its end. The last two are for ever.
 */
export type RecordState =
  | { readonly kind: "placed" }
  | { readonly kind: "started"; readonly uid: string; readonly stopping: boolean }
  | { readonly kind: "ended"; readonly exitCode: number; readonly cause: Ended["cause"]; readonly kept: Kept }
  | { readonly kind: "lost"; readonly why: string; readonly kept: Kept };

/** What is kept of a job that has ended. */
export interface Kept {
  /** Where: see `Said`. */
  readonly said: string;
  /** In how many parts. */
  readonly parts: number;
  readonly outputBytes: number;
  /** ISO. */
  readonly at: string;
  readonly isForgotten: boolean;
}

export interface JobRecord {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly facts: RecordFacts;
  readonly state: RecordState;
  /** As it is written: what a change is compared with. */
  readonly stateText: string;
  readonly isCleared: boolean;
}

/**
 * The records of jobs: a ConfigMap for each, named by its id, which is there before anything else of the job and stays when all else is gone. So it
 * is what tells a job that was never started from one that has ended, and nothing but its state says how far a job is. A state is changed by
 * who knows the one before: of several at the same time, one succeeds. Nothing of an input is in it.
 */
export class JobRecords {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #observe: JobRunnerOptions["observe"];

  constructor(cluster: Cluster, namespace: string, observe?: JobRunnerOptions["observe"]) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#observe = observe;
  }

  async read(id: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const place = { namespace: this.#namespace, name: jobName(id) };
    const found = await this.#cluster.read(kinds.configMap, place, signal === undefined ? {} : { signal });
    return found === undefined ? undefined : parseRecord(found);
  }

  /** Makes it, or finds it. */
  async place(facts: RecordFacts): Promise<JobRecord> {
    const object = recordObject(this.#namespace, facts);
    try {
      return parseRecord(await this.#cluster.create(kinds.configMap, object));
    } catch (error) {
      if (!(error instanceof ClusterError) || error.failure !== "conflict") throw error;
      const found = await this.read(facts.id);
      if (found !== undefined) return found;
      throw error;
    }
  }

  /**
   * Says that somebody still tries to start what is placed, so that nobody takes it for abandoned: its version changes, its state does not.
   * Answers with the record as it is then.
   */
  async tryAgain(record: JobRecord): Promise<JobRecord> {
    const triedAt = new Date().toISOString();
    const tried = await this.#patch(record, [
      { op: "add", path: `/metadata/annotations/${escaped(triedAnnotation)}`, value: triedAt },
    ]);
    return tried ?? (await this.read(record.facts.id)) ?? this.place(record.facts);
  }

  /** `undefined`: it has another state by now, or is gone. */
  async change(record: JobRecord, state: RecordState): Promise<JobRecord | undefined> {
    return this.#patch(record, [
      { op: "replace", path: "/data/state", value: JSON.stringify(state) },
      { op: "replace", path: `/metadata/labels/${escaped(labels.state)}`, value: stateLabel(state) },
    ]);
  }

  /** Nothing of the job is left but its record, and what it has said. */
  async cleared(record: JobRecord): Promise<void> {
    await this.#patch(record, [{ op: "replace", path: `/metadata/labels/${escaped(labels.clear)}`, value: "done" }]);
  }

  /** A record that somebody has spoilt is told, and keeps nobody from the others. */
  async *list(selector: string): AsyncGenerator<JobRecord, void> {
    const options = { namespace: this.#namespace, labels: `${labels.job},${selector}` };
    for await (const object of this.#cluster.list(kinds.configMap, options)) {
      const record = this.#parsed(object);
      if (record !== undefined) yield record;
    }
  }

  /** With all that is kept of it, which it owns. */
  async remove({ name, uid }: JobRecord): Promise<void> {
    await this.#cluster.remove(kinds.configMap, { namespace: this.#namespace, name }, { uid });
  }

  #parsed(object: ClusterObject): JobRecord | undefined {
    try {
      return parseRecord(object);
    } catch (error) {
      this.#observe?.({ kind: "not read", job: null, error });
      return undefined;
    }
  }

  /** Changes this record, in this state, and no other of its name. */
  async #patch(
    { name, uid, stateText }: JobRecord,
    operations: readonly PatchOperation[],
  ): Promise<JobRecord | undefined> {
    try {
      const place = { namespace: this.#namespace, name };
      const changed = await this.#cluster.patch(kinds.configMap, place, [
        { op: "test", path: "/metadata/uid", value: uid },
        { op: "test", path: "/data/state", value: stateText },
        ...operations,
      ]);
      return changed === undefined ? undefined : parseRecord(changed);
    } catch (error) {
      if (error instanceof ClusterError && error.failure === "conflict") return undefined;
      throw error;
    }
  }
}

/** Selects records by their states. */
export function inStates(...states: readonly (RecordState["kind"] | "forgotten")[]): string {
  return `${labels.state} in (${states.join(",")})`;
}

export function recordObject(namespace: string, facts: RecordFacts): ClusterObject {
  const name = jobName(facts.id);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      ...{ name, namespace },
      labels: { ...jobLabels(name), [labels.state]: "placed", [labels.clear]: "due" },
      annotations: { [idAnnotation]: facts.id },
    },
    data: { job: JSON.stringify(facts), state: JSON.stringify({ kind: "placed" } satisfies RecordState) },
  };
}

export function parseRecord({ metadata, data }: ClusterObject): JobRecord {
  const { job, state } = isJsonObject(data) ? data : {};
  if (typeof job !== "string" || typeof state !== "string")
    throw new ClusterError("invalid", `the ConfigMap ${metadata.name} is no record of a job`);
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    resourceVersion: metadata.resourceVersion ?? "",
    // Written here, and by nobody else: see the role.
    facts: parsed(metadata.name, job) as RecordFacts,
    state: parsed(metadata.name, state) as RecordState,
    stateText: state,
    isCleared: metadata.labels?.[labels.clear] === "done",
  };
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ClusterError("invalid", `the ConfigMap ${name} is no record of a job`, { cause });
  }
}

function stateLabel(state: RecordState): string {
  return "kept" in state && state.kept.isForgotten ? "forgotten" : state.kind;
}

function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
