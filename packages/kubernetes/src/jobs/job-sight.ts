import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import type { ClassicWords } from "./classic-words.js";
import { removeJob } from "./job-clearing.js";
import { type Exit, type JobEnds, killedCode } from "./job-ends.js";
import type { JobLauncher } from "./job-launcher.js";
import type { JobMemory } from "./job-memory.js";
import { resumedAnnotation } from "./job-names.js";
import type { JobPods } from "./job-pods.js";
import type { JobRecord, JobRecords } from "./job-record.js";
import type { JobRemoval } from "./job-removal.js";
import type { JobRunnerSettings } from "./job-runner-options.js";
import { kinds } from "./kinds.js";
import { mostWhy, type PodState, podState } from "./pod-state.js";

export interface JobSightPorts {
  readonly cluster: Cluster;
  readonly records: JobRecords;
  readonly pods: JobPods;
  readonly words: ClassicWords;
  readonly launcher: JobLauncher;
  readonly removal: JobRemoval;
  readonly ends: JobEnds;
  readonly memory: JobMemory;
}

/** How far a started job is. */
export type Seen =
  | { readonly kind: "settled"; readonly record: JobRecord }
  | (PodState & { readonly kind: "waiting" })
  | { readonly kind: "running" };

/** To stop a job takes its grace and what the kubelet needs. A node that takes longer does not answer. */
export const stopMs = 60_000;

const running = { kind: "running" } as const;

/** Looks at started jobs in the cluster: at their pods, and without one at their Jobs. What has ended there is settled. */
export class JobSight {
  readonly #settings: JobRunnerSettings;
  readonly #ports: JobSightPorts;

  constructor(settings: JobRunnerSettings, ports: JobSightPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  async see(record: JobRecord): Promise<Seen> {
    try {
      const pod = await this.#ports.pods.find(record);
      return pod === undefined ? await this.#withoutPod(record) : await this.#withPod(record, pod);
    } catch (error) {
      // Another one may have settled it meanwhile, and its pod went while it was asked.
      const now = error instanceof ClusterError ? await this.#ports.records.read(record.facts.id) : undefined;
      if (now !== undefined && "kept" in now.state) return { kind: "settled", record: now };
      throw error;
    }
  }

  async #withPod(record: JobRecord, pod: ClusterObject): Promise<Seen> {
    const { ends, words, memory } = this.#ports;
    const { id, format, timeoutMs } = record.facts;
    const state = podState(pod);
    switch (state.kind) {
      case "waiting":
        if (pod.metadata.deletionTimestamp !== undefined) return running;
        return this.#notBegun(record, state);
      case "running": {
        if (format === "apb") await words.hear(record, pod);
        // Its own watch and the kubelet's come first.
        if (memory.seenForMs(id, "running") < timeoutMs + this.#settings.graceMs + stopMs) return running;
        const timeout = { exitCode: killedCode, cause: "timeout" } as const;
        return this.#endNow(record, "it did not end when it was told to", timeout);
      }
      case "ended": {
        if (format === "apb") return toSeen(await ends.classic(record, pod, state));
        const { exitCode, cause, keeper, why } = state;
        if (cause === "start") return toSeen(await ends.unheard(record, startWords(state), { exitCode, cause }));
        if (keeper === "not yet") return running;
        if (keeper === "there") return toSeen(await ends.collected(record, pod, state));
        if (cause === "timeout" || cause === "disk")
          return toSeen(await ends.unheard(record, why, { exitCode, cause }));
        return toSeen(await ends.unheard(record, `nobody has read what it said before its pod ended (${why})`));
      }
      case "gone": {
        const { cause, why } = state;
        return toSeen(await ends.unheard(record, why, cause === null ? null : { exitCode: killedCode, cause }));
      }
    }
  }

  async #withoutPod(record: JobRecord): Promise<Seen> {
    if (record.state.kind !== "started") return running;
    const { cluster, ends, launcher, pods } = this.#ports;
    const place = { namespace: record.facts.namespace, name: record.name };
    const job = await cluster.read(kinds.job, place);
    // A pod may have come, and gone into another state, between the two looks.
    if ((await pods.find(record)) !== undefined) return waiting("its pod is being made");
    if (job === undefined || job.metadata.uid !== record.state.uid)
      return toSeen(await ends.unheard(record, "its Job was deleted"));
    if (job.metadata.deletionTimestamp !== undefined) return running;
    const { suspend } = job.spec as { readonly suspend?: boolean };
    if (suspend === true && job.metadata.annotations?.[resumedAnnotation] !== "no") {
      await removeJob(cluster, place, record.state.uid);
      return toSeen(await ends.unheard(record, "its Job was suspended"));
    }
    if (suspend === true) {
      await launcher.resume(record);
      return waiting("it is being started");
    }
    const over = conditionsOf(job).find(
      ({ type, status }) => (type === "Failed" || type === "Complete") && status === "True",
    );
    if (over?.reason === "DeadlineExceeded") {
      const words = (over.message ?? "").slice(0, mostWhy);
      return toSeen(await ends.unheard(record, words, { exitCode: killedCode, cause: "timeout" }));
    }
    if (over !== undefined)
      return toSeen(await ends.unheard(record, `its pod is gone (${over.reason ?? over.type})`.slice(0, mostWhy)));
    return this.#notBegun(record, waiting("the cluster has made no pod of it yet; a quota may be full"));
  }

  async #notBegun(record: JobRecord, state: PodState & { readonly kind: "waiting" }): Promise<Seen> {
    if (this.#ports.memory.seenForMs(record.facts.id, "not begun") < this.#settings.startWithinMs) return state;
    return this.#endNow(record, state.why, { exitCode: 1, cause: "start" });
  }

  /** Ends it by force, and says so when nothing of it is left. */
  async #endNow(record: JobRecord, why: string, exit: Exit): Promise<Seen> {
    await this.#ports.removal.remove(record, performance.now() + stopMs);
    if ((await this.#ports.pods.find(record)) !== undefined) return running;
    return toSeen(await this.#ports.ends.unheard(record, why, exit));
  }
}

function toSeen(settled: JobRecord | undefined): Seen {
  return settled === undefined ? running : { kind: "settled", record: settled };
}

function waiting(why: string): PodState & { readonly kind: "waiting" } {
  return { kind: "waiting", why, failure: null };
}

function startWords({ why, message }: PodState & { readonly kind: "ended" }): string {
  return `the container could not be started: ${[why, message].filter((text) => text !== "").join(": ")}`;
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
