import { acceptedSeq, type OpenOperation } from "../operation.js";
import type { ResourceState } from "../state.js";

/**
 * Operations beyond the first few of a resource wait as parts, one each, so that accepting the 3,000th costs what the first did and
 * the record stays small (J10). They come into the record in their order as it empties. Their order is that of their numbers: what was put
 * into another one stands in the record.
 */
export const queuePrefix = "osbert.queue/";

/** Held ones wait behind all that can run: filling the record up never wades through them. */
const heldPrefix = `${queuePrefix}held/`;

/** A small part beside each of them that is about a part of the resource: so it is found by that, without reading the queue. */
const aboutPrefix = "osbert.about/";

/** In characters, of which none has more than three bytes. */
const longestBeginning = 150;

/** So many open operations stand in the record itself while all of them are shared: they run side by side. Held ones, and those put in front, come on top. */
export const windowSize = 64;

/** So many if one of them is exclusive. Those behind it only wait, and all that stands there is written again with every commit. */
export const exclusiveWindow = 4;

/** More than this the record never holds: what would have to stand there is refused. */
export const mostInRecord = 4 * windowSize;

/** The number of an operation: that of the entry that accepted it. */
export function seqOf({ id }: Pick<OpenOperation, "id">): number {
  return acceptedSeq(id) ?? 0;
}

/** So many operations end in one commit with others that are cancelled; the rest of these ends in commits that follow at once. */
export const mostEnds = 500;

/** How many more operations may come into the record: held ones do not take the places of those that can run. */
export function roomInRecord(open: readonly OpenOperation[]): number {
  return windowOf(open) - open.reduce((count, { held }) => (held ? count : count + 1), 0);
}

/**
 * The record is filled up again when half of it is empty, or when it has more places than before: with the last exclusive one gone, shared ones
 * that wait are in turn.
 */
export function wantsMore(open: readonly OpenOperation[], before: readonly OpenOperation[]): boolean {
  const room = roomInRecord(open);
  return room >= windowOf(open) / 2 || (room > 0 && windowOf(open) > windowOf(before));
}

function windowOf(open: readonly OpenOperation[]): number {
  return open.some(({ held, mode }) => mode === "exclusive" && !held) ? exclusiveWindow : windowSize;
}

/** Where an operation waits. */
export function queuePartId(operation: Pick<OpenOperation, "id" | "held">): string {
  return `${operation.held ? heldPrefix : queuePrefix}${numberOf(operation)}`;
}

/** Where an operation of this id may wait; nowhere if that is not the id of an operation. */
export function queuePartIds(id: string): readonly string[] {
  return acceptedSeq(id) === undefined ? [] : [queuePartId({ id, held: false }), queuePartId({ id, held: true })];
}

/** An operation that waits, from the text of its part: what was cancelled with all others does not say so itself. */
export function queuedOperation(body: string, { dropping }: Pick<ResourceState, "dropping">): OpenOperation {
  const operation = JSON.parse(body) as OpenOperation;
  const isDropped = dropping !== undefined && seqOf(operation) <= dropping.upTo;
  return isDropped && operation.cancel === null ? { ...operation, cancel: dropping.cancel } : operation;
}

export function isHeldInQueue(partId: string): boolean {
  return partId.startsWith(heldPrefix);
}

/** Those in the record and those that wait behind it, which come by their numbers. A held one is where it would come if it were released. */
export function inOrder<Operation extends OpenOperation>(
  open: readonly Operation[],
  waiting: readonly Operation[],
): readonly Operation[] {
  const all = [...open];
  for (const operation of waiting) {
    const seq = seqOf(operation);
    const place = operation.held ? all.findLastIndex((other) => seqOf(other) < seq) + 1 : all.length;
    all.splice(place, 0, operation);
  }
  return all;
}

/** What the ids start with of those that say which waiting operations are about a part. */
export function aboutPartPrefix(part: string): string {
  // The id of a part may be as long as one can be. Those that begin alike and are as long are told apart when their operations are read.
  const begins = part.slice(0, longestBeginning).replace(/[\ud800-\udbff]$/, "");
  return `${aboutPrefix}${part.length}/${begins}/`;
}

export function aboutPartId(operation: OpenOperation, part: string): string {
  return `${aboutPartPrefix(part)}${numberOf(operation)}`;
}

/** As many digits as a number may have, so that the order of texts is that of numbers. */
function numberOf(operation: Pick<OpenOperation, "id">): string {
  return String(seqOf(operation)).padStart(16, "0");
}
