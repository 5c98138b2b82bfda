import { acceptedSeq, type OpenOperation } from "../operation.js";

/**
 * Operations beyond the first few of a resource wait as parts, one each, so that accepting the 3,000th costs what the first did and
 * the record stays small (J10). They come into the record in their order as it empties.
 */
export const queuePrefix = "osbert.queue/";

/** So many open operations stand in the record itself. Held ones, and those put in front of them, come on top. */
export const windowSize = 64;

/** The record is filled up again when it has no more than this. */
export const refillAt = windowSize / 2;

/** More than this the record never holds: what would have to stand there is refused. */
export const mostInRecord = 4 * windowSize;

/** How many more operations may come into the record: held ones do not take the places of those that can run. */
export function roomInRecord(open: readonly OpenOperation[]): number {
  return windowSize - open.reduce((count, { held }) => (held ? count : count + 1), 0);
}

export function queuePartId(operation: OpenOperation | string): string | undefined {
  const seq = acceptedSeq(typeof operation === "string" ? operation : operation.id);
  return seq === undefined ? undefined : `${queuePrefix}${String(seq).padStart(16, "0")}`;
}
