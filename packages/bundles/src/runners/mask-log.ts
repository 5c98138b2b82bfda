import { redact } from "./redact.js";
import type { Runner } from "./runner.js";

/** A runner whose logs show none of the texts in `secrets`, also of jobs that have ended and kept nothing of them. */
export function maskLog(runner: Runner, secrets: () => readonly unknown[]): Runner {
  return {
    name: runner.name,
    place: runner.place,
    start: (job, signal) => runner.start(job, signal),
    look: (id, options) => runner.look(id, options),
    jobs: () => runner.jobs(),
    output: (id, from) => runner.output(id, from),
    log: async (id, lastBytes) => redact(await runner.log(id, lastBytes), secrets()),
    stop: (id) => runner.stop(id),
    // Who reads the log later may not know them any more.
    forget: (id) => runner.forget(id, secrets()),
  };
}
