import { JournalError } from "./errors.js";
import { frozen } from "./frozen.js";
import type { Json } from "./json.js";
import type { CancelRequest, FinishedOperation, OpenOperation } from "./operation.js";
import type { StoredRecord } from "./store.js";

/** What a record's text says: the fold of its entries, as far as anyone must know it without reading them. */
export interface ResourceState {
  readonly version: 1;
  /** The user's own fold. Small: large things belong into parts. */
  readonly data: Json;
  readonly labels: Readonly<Record<string, string>>;
  /** The first open operations in their order; the rest waits in parts (see queue.ts), so that no commit grows with the queue. */
  readonly open: readonly OpenOperation[];
  /** How many more wait there. */
  readonly queued: number;
  /** How many of them are held; missing: none. */
  readonly queuedHeld?: number;
  /** The others have higher numbers than this. Missing: nobody knows, or there are none. */
  readonly queuedAfter?: number;
  /** The earliest deadline among them, or one that was. */
  readonly queuedDeadlineAt: number | null;
  /** Some of them were cancelled together and have not ended yet; missing: none. */
  readonly dropping?: Dropping;
  readonly last: FinishedOperation | null;
  /** Nothing is left of the resource but its history. It goes with that. */
  readonly gone: boolean;
  /** When retention must look at it. */
  readonly pruneAt: number | null;
  /** The epoch of the runner that last recorded something: tells how many runners since then recorded nothing. */
  readonly heldEpoch: number;
}

/**
 * All that wait in parts and have numbers up to this were told to stop: too many for their ends to be one commit. None of them is run, and
 * an engine ends them, some hundreds a commit. Those in the record are told one by one.
 */
export interface Dropping {
  readonly upTo: number;
  readonly cancel: CancelRequest;
}

export const emptyState: ResourceState = {
  version: 1,
  data: null,
  labels: {},
  open: [],
  queued: 0,
  queuedDeadlineAt: null,
  last: null,
  gone: false,
  pruneAt: null,
  heldEpoch: 0,
};

/**
 * A state as the text of a record. `dataText`: that of its data, where somebody has just written it. It is the larger half of most states, and
 * not written twice.
 */
export function stateText(state: ResourceState, dataText: string | undefined): string {
  if (dataText === undefined) return JSON.stringify(state);
  const text = JSON.stringify({ ...state, data: 0 });
  // The members of a state stand in the order in which it was first written.
  return text.startsWith(beforeData) ? `${dataHead}${dataText}${text.slice(beforeData.length)}` : JSON.stringify(state);
}

const dataHead = '{"version":1,"data":';
const beforeData = `${dataHead}0`;

const known = new WeakMap<StoredRecord, ResourceState>();

/** The state of a record, read from its text once: stores may answer the same record again and again. Nobody may change it. */
export function stateOf(record: StoredRecord): ResourceState {
  let state = known.get(record);
  if (state === undefined) {
    state = frozen(readState(record.key, record.state));
    known.set(record, state);
  }
  return state;
}

function readState(key: string, text: string): ResourceState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new JournalError("unreadable", `the stored state of ${JSON.stringify(key)} is not JSON`, { cause });
  }
  if (!looksLikeState(value)) {
    throw new JournalError(
      "unreadable",
      `the stored state of ${JSON.stringify(key)} is not one that this Osbert can read`,
    );
  }
  return value;
}

/** A shallow look: enough to set damaged rows aside, cheap enough for every read. */
function looksLikeState(value: unknown): value is ResourceState {
  if (typeof value !== "object" || value === null) return false;
  const state = value as Partial<Record<keyof ResourceState, unknown>>;
  return (
    state.version === 1 &&
    Array.isArray(state.open) &&
    state.open.every(looksLikeOperation) &&
    typeof state.queued === "number" &&
    typeof state.labels === "object" &&
    state.labels !== null &&
    typeof state.heldEpoch === "number"
  );
}

function looksLikeOperation(value: unknown): boolean {
  const operation = value as Partial<Record<keyof OpenOperation, unknown>> | null;
  return (
    typeof operation?.id === "string" &&
    typeof operation.kind === "string" &&
    Array.isArray(operation.steps) &&
    Array.isArray(operation.waits)
  );
}
