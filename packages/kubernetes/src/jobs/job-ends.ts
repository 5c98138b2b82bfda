import { setTimeout as sleep } from "node:timers/promises";
import type { JobState } from "@osbert/bundles";
import type { Cluster } from "../cluster/cluster.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { type ClassicWords, leftLines, withLines } from "./classic-words.js";
import type { JobClearing } from "./job-clearing.js";
import type { JobMemory } from "./job-memory.js";
import type { JobPods } from "./job-pods.js";
import type { JobRecord, JobRecords } from "./job-record.js";
import type { PodState } from "./pod-state.js";
import { keptLogBytes, type Said } from "./said.js";

export interface JobEndsPorts {
  readonly cluster: Cluster;
  readonly records: JobRecords;
  readonly said: Said;
  readonly pods: JobPods;
  readonly words: ClassicWords;
  readonly clearing: JobClearing;
  readonly memory: JobMemory;
}

/** How a job has ended that is known to have. */
export type Exit = Omit<Extract<JobState, { readonly kind: "ended" }>, "kind">;

type EndedPod = PodState & { readonly kind: "ended" };

/** Of a container that was told to end, and whose own code nobody knows. */
export const killedCode = 137;

/** After its end a program's last words are on their way for a moment; a node that is very busy is given more than that. */
const drainMs = { atOnce: 5_000, most: 60_000 };
const drainEveryMs = 200;

/**
 * Writes down how jobs have ended. The order of effects: first what was said is read from the pod and written to Secrets beside the record; then
 * the record gets its end, which is for ever; then the Job goes with all that belongs to it. Killed between any two: the next who looks, or
 * the sweep, goes on there. Of several who do so at the same time, the record takes one.
 *
 * Each answers with the record that has the end; `undefined`: it has none yet, and the next look goes on.
 */
export class JobEnds {
  readonly #ports: JobEndsPorts;

  constructor(ports: JobEndsPorts) {
    this.#ports = ports;
  }

  /** Of an own bundle, whose keeper is there to be asked. Half an output would be a wrong one: it is waited for. */
  async collected(record: JobRecord, pod: ClusterObject, ended: EndedPod): Promise<JobRecord | undefined> {
    const { pods, memory } = this.#ports;
    const drainedForMs = memory.seenForMs(record.facts.id, "draining");
    const end = performance.now() + drainMs.atOnce;
    let look = await pods.lookAtKeeper(pod);
    while (!look.isDone && performance.now() < end) {
      await sleep(drainEveryMs);
      look = await pods.lookAtKeeper(pod);
    }
    if (!look.isDone && drainedForMs < drainMs.most) return undefined;
    const out = await pods.wholeOutput(record, pod);
    const log = await pods.rawLog(record, pod, ended, keptLogBytes);
    const cause = look.cause === "exit" ? ended.cause : look.cause;
    return this.#settle(record, { exitCode: ended.exitCode, cause }, out, await pods.masked(record, log, out));
  }

  async classic(record: JobRecord, pod: ClusterObject, ended: EndedPod): Promise<JobRecord | undefined> {
    const { cluster, said, pods, words } = this.#ports;
    await words.hear(record, pod);
    const { out: before } = await said.soFar(record);
    const out = withLines(before, await leftLines(cluster, record.facts, pod, ended.message));
    const log = `${await pods.rawLog(record, pod, ended, keptLogBytes)}${ended.cause === "exit" ? "" : `${ended.why}\n`}`;
    const cause = isStopping(record) && ended.exitCode > 128 ? "stopped" : ended.cause;
    return this.#settle(record, { exitCode: ended.exitCode, cause }, out, await pods.masked(record, log, out));
  }

  /**
   * Nobody is there to be asked: what was heard before is kept, with the reason. Without an `exit` nobody knows how it ended; if it was to be
   * stopped, that is how.
   */
  async unheard(record: JobRecord, why: string, exit: Exit | null = null): Promise<JobRecord | undefined> {
    const stopped: Exit | null = isStopping(record) ? { exitCode: killedCode, cause: "stopped" } : null;
    const { out, log } = await this.#ports.said.soFar(record);
    const words = why === "" ? "" : `${why.trimEnd()}\n`;
    return this.#settle(record, exit ?? stopped ?? { why }, out, `${log.toString("utf8")}${words}`);
  }

  async #settle(
    record: JobRecord,
    end: Exit | { readonly why: string },
    out: Buffer,
    log: string,
  ): Promise<JobRecord | undefined> {
    const { records, said, clearing, memory } = this.#ports;
    const written = await said.write(record, out, log);
    const kept = { ...written, outputBytes: out.length, at: new Date().toISOString(), isForgotten: false };
    const state = "why" in end ? ({ kind: "lost", ...end, kept } as const) : ({ kind: "ended", ...end, kept } as const);
    const changed = await records.change(record, state);
    const settled = changed ?? (await records.read(record.facts.id));
    // It was told to stop meanwhile: the next look settles it with that.
    if (settled === undefined || !("kept" in settled.state)) return undefined;
    memory.forget(record.facts.id);
    // What was written in vain, by this one too, and what was said while it ran.
    await said.removeOthers(settled, settled.state.kept);
    if (changed !== undefined) await clearing.clear(changed);
    return settled;
  }
}

export function isStopping({ state }: JobRecord): boolean {
  return state.kind === "started" && state.stopping;
}
