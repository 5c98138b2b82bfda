import type { Journal } from "@osbert/journal";
import type { JobOperation, Runner } from "../runners/runner.js";

export interface OrphanedJobsPorts {
  readonly runner: () => Runner;
  readonly journal: () => Pick<Journal, "operation" | "now">;
}

/** Whoever undoes an operation wants to hear what its job said last; a user may ask for that on the next morning. Nobody else does. */
const forgetAfterMs = 86_400_000;

/**
 * Stops jobs whose operation is over: cancelled, or past its deadline, while nobody waited for the job. A day after the operation's end it has
 * the runner forget them, if nobody has: what they were given and have said may be secret. The order of effects: the end of
 * the operation is in the journal first, whoever writes it there, and whoever has the runner at the job's place finds a job that runs for an
 * operation which has ended. Killed in between: nothing is lost, because the next look finds the same two facts. So it does not
 * matter which process heard of the cancel, nor that it had none to tell.
 *
 * A job whose operation the journal does not know is left to its time limit: it may be another broker's.
 */
export class OrphanedJobs {
  readonly #ports: OrphanedJobsPorts;
  /** Those that an attempt of this process waits for: it hears of a cancel by itself, and at once. */
  readonly #attended = new Set<string>();
  /** When the operations of jobs ended, by the journal: it is the same for every process, and asked once. Later where a job could not be forgotten. */
  readonly #over = new Map<string, number>();

  constructor(ports: OrphanedJobsPorts) {
    this.#ports = ports;
  }

  async attend<T>(job: string, work: () => Promise<T>): Promise<T> {
    this.#attended.add(job);
    try {
      return await work();
    } finally {
      this.#attended.delete(job);
    }
  }

  /** Of one resource, or of all. Throws what keeps a job from being stopped, after it has tried all. */
  async stop(key?: string): Promise<void> {
    const failures: unknown[] = [];
    const runner = this.#ports.runner();
    const jobs = await runner.jobs();
    const known = new Set(jobs.map(({ id }) => id));
    for (const id of this.#over.keys()) if (!known.has(id)) this.#over.delete(id);
    for (const { id, operation } of jobs) {
      if (operation === null || this.#attended.has(id) || (key !== undefined && operation.key !== key)) continue;
      if (!this.#over.has(id) && !(await this.#isOver(id, operation))) continue;
      await runner
        .stop(id)
        .then(() => this.#forgetLater(id))
        .catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  async #forgetLater(id: string): Promise<void> {
    const now = this.#ports.journal().now();
    const since = this.#over.get(id);
    if (since === undefined || now - since < forgetAfterMs) return;
    // What cannot be removed has ended, and keeps nobody from the next action. It is tried again as much later.
    this.#over.set(id, now);
    await this.#ports
      .runner()
      .forget(id)
      .catch(() => undefined);
  }

  /** One that is being cancelled is over, and has not ended yet. */
  async #isOver(job: string, { key, id }: JobOperation): Promise<boolean> {
    const status = await this.#ports.journal().operation(key, id);
    if (status?.endedAt != null) this.#over.set(job, status.endedAt);
    return status !== undefined && (status.status !== "open" || status.open?.cancel != null);
  }
}
