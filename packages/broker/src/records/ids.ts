import { isKeepable, limits } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";

/** Of the ids that platforms choose. With the name of the platform, which stands before it, one is the key of a resource. */
const maxIdBytes = 400;

/** Of the ids of services and plans: instances are found by them, as labels. */
export const maxCatalogIdBytes = limits.labelValueBytes;

/** A UUID, and most else that platforms send. */
const usual = /^[\w-]{0,100}$/;

/** Why every store could not keep an id, or any other text from outside, as it is; `null`: every one can. Anything else is allowed. */
export function idProblem(id: string, maxBytes: number = maxIdBytes): string | null {
  if (usual.test(id)) return null;
  if (!isKeepable(id)) return "must not hold NUL or half of a surrogate pair";
  return Buffer.byteLength(id) > maxBytes ? `must have at most ${maxBytes} bytes` : null;
}

/** What cannot be kept is a 400 that says which id it is. */
export function checkId(id: string, what: string): void {
  const problem = idProblem(id);
  if (problem !== null) throw new BrokerError("bad-request", `${what} ${problem}`);
}
