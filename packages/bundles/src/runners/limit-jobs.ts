import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job, Runner } from "./runner.js";

const lookAgainMs = 250;

/**
 * A runner that has at most `max` jobs running at a time, of those that were started here. The others wait in `start`, in the order they
 * came. Who waits holds nobody else up: an operation waits in the lane of its service, and the journal leaves room for other lanes.
 *
 * A place is free again when its job has ended, whoever looks: those who wait ask for themselves, so that a place is not lost with a caller
 * that never looked again. A job that is started already, by a process that was killed meanwhile, does not wait: it takes a place that
 * there may not be.
 */
export function limitJobs(runner: Runner, max: number): Runner {
  /** Those that have a place. Of one that is being started, a look says nothing yet. */
  const running = new Set<string>();
  const starting = new Set<string>();
  let queue: Promise<unknown> = Promise.resolve();

  const hasEnded = async (id: string, waitMs: number, signal: AbortSignal) => {
    const state = await runner.look(id, { waitMs, signal });
    if (state.kind !== "running" && !starting.has(id)) running.delete(id);
    return state;
  };
  const takePlace = async (id: string, signal: AbortSignal) => {
    signal.throwIfAborted();
    while (running.size >= max && !running.has(id)) {
      // Of one that cannot be looked at now nobody knows: it keeps its place.
      await Promise.allSettled([...running].map((each) => hasEnded(each, 0, signal)));
      if (running.size >= max) await sleep(lookAgainMs, undefined, { signal });
      signal.throwIfAborted();
    }
    running.add(id);
    starting.add(id);
  };
  /** One after the other, so that nobody is overtaken for ever. Who gives up does not wait for its turn, and takes no place when it comes. */
  const inTurn = async (id: string, signal: AbortSignal) => {
    const turn = queue.then(() => takePlace(id, signal));
    queue = turn.catch(() => undefined);
    const heard = new AbortController();
    const givenUp = once(signal, "abort", { signal: heard.signal }).then(
      () => signal.throwIfAborted(),
      () => undefined,
    );
    try {
      signal.throwIfAborted();
      await Promise.race([turn, givenUp]);
    } finally {
      heard.abort();
    }
  };

  return {
    name: runner.name,
    place: runner.place,
    async start(job: Job, signal: AbortSignal): Promise<void> {
      const { kind } = await runner.look(job.id, { waitMs: 0, signal });
      if (kind === "unknown") await inTurn(job.id, signal);
      else if (kind === "running") running.add(job.id);
      try {
        await runner.start(job, signal);
      } catch (error) {
        running.delete(job.id);
        throw error;
      } finally {
        starting.delete(job.id);
      }
    },
    look: (id, { waitMs, signal }) => hasEnded(id, waitMs, signal),
    jobs: () => runner.jobs(),
    output: (id, from) => runner.output(id, from),
    log: (id, lastBytes) => runner.log(id, lastBytes),
    stop: (id) => runner.stop(id),
    forget: (id, secrets) => runner.forget(id, secrets),
  };
}
