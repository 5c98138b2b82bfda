import { JournalError, type JournalErrorCode } from "./errors.js";
import { limits } from "./limits.js";

/**
 * Texts that name things come from anywhere. They must be kept alike by every store: not empty, bounded, well-formed Unicode, no NUL
 * (PostgreSQL keeps none). Anything else is allowed.
 */
export function checkKey(key: string): void {
  check(key, limits.keyBytes, "the key of a resource", "invalid-key");
  if (key.startsWith(reservedPrefix)) {
    throw new JournalError("invalid-key", `the key of a resource must not start with "${reservedPrefix}"`);
  }
}

export function checkPartId(id: string): void {
  check(id, limits.partIdBytes, "the id of a part");
  if (id.startsWith(reservedPrefix)) {
    throw new JournalError("invalid-change", `the id of a part must not start with "${reservedPrefix}"`);
  }
}

export function checkLabels(labels: Readonly<Record<string, string>>): void {
  const pairs = Object.entries(labels);
  if (pairs.length > limits.labels) {
    throw new JournalError("invalid-change", `a resource has at most ${limits.labels} labels, not ${pairs.length}`);
  }
  for (const [name, value] of pairs) {
    check(name, limits.labelNameBytes, "the name of a label");
    check(value, limits.labelValueBytes, `the value of the label ${JSON.stringify(name)}`);
    if (name.startsWith(reservedPrefix)) {
      throw new JournalError("invalid-change", `the name of a label must not start with "${reservedPrefix}"`);
    }
  }
}

export function checkEntryKind(kind: string): void {
  check(kind, limits.entryKindBytes, "the kind of an entry");
}

export function checkOperationId(id: string): void {
  check(id, limits.operationIdBytes, "the operation of an entry");
}

/** A time span in milliseconds that every store can count. */
export function isSpan(ms: number): boolean {
  return typeof ms === "number" && ms >= 0 && ms <= limits.longestMs;
}

export function checkSpan(ms: number, what: string): void {
  if (isSpan(ms)) return;
  throw new JournalError(
    "invalid-change",
    `${what} must be a number of milliseconds from 0 to ${limits.longestMs}, not ${ms}`,
  );
}

export function checkLane(lane: string): void {
  check(lane, limits.laneBytes, "a lane");
}

/** What the journal keeps for itself among keys, parts and labels. */
const reservedPrefix = "osbert.";

/** Whether a part is the journal's own, and not told to users. */
export function isReserved(id: string): boolean {
  return id.startsWith(reservedPrefix);
}

/** Behind all parts that are the journal's own: `osbert.` ends with a dot, and a slash comes next. */
export const behindReserved = "osbert/";

/** Under this key an encrypted store keeps which encryption keys are in use in it. */
export const keyRegisterKey = "osbert.keys";

/** Under these keys stand the rules of lanes that hold in all processes, and who may run how much of them. */
export const laneRulesKey = "osbert.lanes";
export const laneLedgerKey = "osbert.lanes.shares";

function check(text: unknown, maxBytes: number, what: string, code: JournalErrorCode = "invalid-change"): void {
  if (typeof text !== "string") throw new JournalError(code, `${what} must be a text, not ${typeof text}`);
  if (text === "") throw new JournalError(code, `${what} must not be empty`);
  if (text.length > maxBytes || (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)) {
    throw new JournalError(code, `${what} has more than ${maxBytes} bytes`);
  }
  if (!isKeepable(text)) throw new JournalError(code, `${what} must not hold NUL or half of a surrogate pair`);
}

/** Whether every store keeps a text as it is: well-formed Unicode without NUL. */
export function isKeepable(text: string): boolean {
  return !unkeepable.test(text);
}

// With the u flag a surrogate class matches lone halves only. String.isWellFormed is not in Node 18 types and slower on short texts.
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for.
const unkeepable = /[\u0000\ud800-\udfff]/u;
