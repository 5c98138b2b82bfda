import type { OfferingRecord } from "../records/broker-record.js";

/** Where an offering is among those of its broker. */
export interface OfferingPlace {
  readonly name: string;
  readonly id: string;
}

/** By name, and by id where several had the name. */
export function inOrder(records: readonly OfferingRecord[]): readonly OfferingRecord[] {
  return [...records].sort(({ offering: one }, { offering: other }) => (isBehind(one, other) ? 1 : -1));
}

/** The index of the first one behind a place, of those that are in order. Looks at a few of them, however many there are. */
export function firstBehind(records: readonly OfferingRecord[], place: OfferingPlace): number {
  let [from, to] = [0, records.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const offering = records[middle]?.offering;
    if (offering !== undefined && isBehind(offering, place)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function isBehind(one: OfferingPlace, other: OfferingPlace): boolean {
  return one.name === other.name ? one.id > other.id : one.name > other.name;
}
