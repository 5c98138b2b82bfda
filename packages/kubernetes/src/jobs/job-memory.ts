/** More are not remembered: then all of it is forgotten, and begins anew. */
const mostJobs = 10_000;

/**
 * What this process remembers of jobs that run: nothing that would be missed. Times are those of a clock that nobody sets, so that a wrong time of day,
 * here or in the cluster, ends no job that is well. A process that begins anew waits anew; beyond that, the Job has a deadline of the cluster's own.
 */
export class JobMemory {
  readonly #jobs = new Map<string, Map<string, number>>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** For how long it has been seen so, by this process: 0 at the first time. */
  seenForMs(id: string, so: "not begun" | "running" | "draining"): number {
    const times = this.#times(id);
    const since = times.get(so) ?? this.#nowMs();
    times.set(so, since);
    return this.#nowMs() - since;
  }

  /** Whether it is to be asked by a command in its pod; then it counts as asked. */
  isAskedAgain(id: string, everyMs: number): boolean {
    const times = this.#times(id);
    const last = times.get("asked");
    if (last !== undefined && this.#nowMs() < last + everyMs) return false;
    times.set("asked", this.#nowMs());
    return true;
  }

  forget(id: string): void {
    this.#jobs.delete(id);
  }

  #times(id: string): Map<string, number> {
    if (this.#jobs.size >= mostJobs) this.#jobs.clear();
    const times = this.#jobs.get(id) ?? new Map<string, number>();
    this.#jobs.set(id, times);
    return times;
  }
}
