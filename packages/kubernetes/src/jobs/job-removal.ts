import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "../cluster/cluster.js";
import { type ClassicWords, leftLines, withLines } from "./classic-words.js";
import { removeJob } from "./job-clearing.js";
import type { JobLauncher } from "./job-launcher.js";
import type { JobPods } from "./job-pods.js";
import type { JobRecord } from "./job-record.js";
import { kinds } from "./kinds.js";
import { podState } from "./pod-state.js";
import { keptLogBytes, type Said } from "./said.js";

export interface JobRemovalPorts {
  readonly cluster: Cluster;
  readonly said: Said;
  readonly pods: JobPods;
  readonly words: ClassicWords;
  readonly launcher: JobLauncher;
}

const lookEveryMs = 200;

/** Takes Jobs away that may still run. */
export class JobRemoval {
  readonly #ports: JobRemovalPorts;

  constructor(ports: JobRemovalPorts) {
    this.#ports = ports;
  }

  /**
   * Deletes the Job with its pod, and waits until that is gone, or until `giveUpAt`. A classic bundle that is stopped may clear up: its pod goes first,
   * while it still has its service account. Its log goes with the pod, and is kept before that; what it has left in its sandbox is read after.
   */
  async remove(record: JobRecord, giveUpAt: number): Promise<void> {
    const { name, facts, state } = record;
    if (state.kind !== "started") return;
    if (facts.format === "apb" && state.stopping) await this.#endClassic(record, giveUpAt);
    await removeJob(this.#ports.cluster, { namespace: facts.namespace, name }, state.uid);
    await this.#awaitNoPod(record, giveUpAt);
  }

  async #endClassic(record: JobRecord, giveUpAt: number): Promise<void> {
    const { cluster, said, pods, words, launcher } = this.#ports;
    const pod = await pods.find(record);
    if (pod === undefined) return;
    await words.hear(record, pod);
    const { out } = await said.soFar(record);
    const log = await pods.masked(record, await pods.rawLog(record, pod, podState(pod), keptLogBytes), out);
    // Killed after the pod is gone, nobody could read it again.
    await said.replaceSoFar(record, out, log);
    await launcher.suspend(record);
    await this.#awaitNoPod(record, giveUpAt);
    const left = await leftLines(cluster, record.facts, pod, "");
    if (left.length > 0) await said.replaceSoFar(record, withLines(out, left), log);
  }

  async #awaitNoPod(record: JobRecord, giveUpAt: number): Promise<void> {
    for (;;) {
      const pod = await this.#ports.pods.find(record);
      if (pod === undefined || performance.now() > giveUpAt) return;
      // Where nobody collects what belongs to a Job, its pod is deleted here.
      const { name, uid, deletionTimestamp } = pod.metadata;
      if (deletionTimestamp === undefined && uid !== undefined)
        await this.#ports.cluster.remove(kinds.pod, { namespace: record.facts.namespace, name }, { uid });
      await sleep(lookEveryMs);
    }
  }
}
