import { checkInstance } from "../operations/check-instance.js";
import type { Prepared } from "../service/service.js";

/** What an author's function has said before the work, if it may be told; else it is the broker's own fault. */
export function checkPrepared(name: "prepare" | "prepareUpdate", prepared: Prepared | undefined): Prepared {
  const malformed = checkInstance(prepared);
  if (malformed === null) return prepared ?? {};
  // It may be a promise, which nobody else waits for.
  Promise.resolve(prepared).catch(() => undefined);
  throw new Error(`${name} returned what cannot be given out: ${malformed}`);
}
