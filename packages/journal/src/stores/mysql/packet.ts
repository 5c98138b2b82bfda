import { JournalError } from "../../errors.js";
import type { Change } from "../../store.js";

/** What a row takes beside its large text: all other columns at their limits. */
const restOfRowBytes = 4_096;

/** About what a change takes on the wire, in characters. */
export function weightOf({ state, entries, putParts }: Change): number {
  let weight = restOfRowBytes + state.length;
  for (const { body } of entries) weight += body.length;
  for (const { body } of putParts) weight += body.length;
  return weight;
}

/** How much to put into one statement: more than a few MiB gains nothing, and a packet is the most that the server reads. */
export function statementBytes(packetBytes: number): number {
  return Math.min(4 * 1024 * 1024, Math.floor(packetBytes / 2));
}

/** Throws `too-large` for a change with a row that the server would not read, and would break the connection over. */
export function checkFits(change: Change, packetBytes: number): void {
  // A character has up to three bytes of UTF-8: most changes need no count.
  if (3 * weightOf(change) <= packetBytes) return;
  const { state, entries, putParts } = change;
  checkTextFits(state, packetBytes);
  for (const { body } of entries) checkTextFits(body, packetBytes);
  for (const { body } of putParts) checkTextFits(body, packetBytes);
}

/** The same for a single text. */
export function checkTextFits(text: string, packetBytes: number): void {
  const size = Buffer.byteLength(text);
  if (size + restOfRowBytes <= packetBytes) return;
  throw new JournalError(
    "too-large",
    `a text of ${size} bytes does not fit into a statement: max_allowed_packet of the MySQL server is ${packetBytes}`,
  );
}
