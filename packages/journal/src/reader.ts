import { type Moment, withStateInQueue, withStates } from "./decisions/operation-state.js";
import { queuedOperation, queuePartIds } from "./decisions/queue.js";
import { viewOf } from "./decisions/resource-view.js";
import type { Snapshot } from "./engine/cell.js";
import { originFrom } from "./engine/origin.js";
import { operationsIn, readWithQueue } from "./engine/read-with-queue.js";
import { isLeased } from "./engine/writer.js";
import { JournalError } from "./errors.js";
import type { Json } from "./json.js";
import { checkKey, isKeepable, isReserved } from "./names.js";
import type { Observe } from "./observe.js";
import {
  type AskedOperation,
  acceptedSeq,
  type ListedOperation,
  type OpenOperation,
  type Outcome,
} from "./operation.js";
import type { Page, Part, PartPage } from "./page.js";
import type { Entry, Resource } from "./resource.js";
import { stateOf } from "./state.js";
import { type Label, type Store, type StoredEntry, type StoredRecord, setAsideLabel } from "./store.js";
import { toEntry } from "./to-entry.js";

export interface EntryPage {
  /** Entries after this number, in their order. */
  readonly after?: number;
  /** Entries before this number, newest first. */
  readonly before?: number;
  readonly limit?: number;
}

export interface OperationPage {
  readonly after?: string;
  readonly limit?: number;
}

export interface KeyPage {
  readonly after?: string;
  readonly limit?: number;
}

export interface ResourceQuery {
  readonly label?: Label;
  readonly prefix?: string;
  readonly after?: string;
  readonly limit?: number;
}

export interface WorkQuery {
  /** Of this lane alone. */
  readonly lane?: string;
  readonly after?: string;
  readonly limit?: number;
}

export interface OperationStatus {
  readonly id: string;
  readonly kind: string;
  readonly part: string | null;
  readonly status: "open" | Outcome["kind"];
  readonly open: ListedOperation | null;
  readonly outcome: Outcome | null;
  /** When it ended, by the store's clock; `null`: it is open. */
  readonly endedAt: number | null;
}

const largestPage = 1_000;

export interface ReaderPorts {
  readonly store: Store;
  readonly observe: Observe;
  readonly now: () => number;
  /** Whether nothing begins in a lane. */
  readonly isPaused: (lane: string) => boolean;
}

/** The reading side of the journal. Nothing here changes anything. */
export class Reader {
  readonly #ports: ReaderPorts;
  readonly #store: Store;

  constructor(ports: ReaderPorts) {
    this.#ports = ports;
    this.#store = ports.store;
  }

  async read(key: string, parts: readonly string[]): Promise<Resource | undefined> {
    checkKey(key);
    if (parts.length === 0) {
      const found = await this.#store.read(key, parts);
      return found && this.#view(found.record, found.parts);
    }
    const whole = await readWithQueue(this.#store, key, parts, parts);
    return whole.found && this.#view(whole.found.record, whole.found.parts, operationsIn(whole));
  }

  async entries(key: string, range: EntryPage): Promise<readonly Entry[]> {
    checkKey(key);
    const limit = pageSize(range.limit);
    const entries =
      range.before === undefined
        ? await this.#store.entries(key, { kind: "after", after: range.after ?? 0, limit })
        : await this.#store.entries(key, { kind: "before", before: range.before, limit });
    return entries.map(toEntry);
  }

  async parts(key: string, prefix: string, page: PartPage): Promise<Page<Part>> {
    checkKey(key);
    const limit = pageSize(page.limit);
    const found = await this.#store.parts(key, { prefix, after: page.after ?? null, limit });
    const items = found
      .filter(({ id }) => !isReserved(id))
      .map(({ id, body }) => ({ id, value: JSON.parse(body) as Json }));
    return { items, next: found.length < limit ? null : (found.at(-1)?.id ?? null) };
  }

  async find(query: ResourceQuery): Promise<Page<Resource>> {
    const limit = pageSize(query.limit);
    const { label, prefix, after = null } = query;
    const found = await this.#store.find({
      ...(label && { label }),
      ...(prefix !== undefined && { prefix }),
      after,
      limit,
    });
    const own = found.filter(({ key }) => !isReserved(key));
    return { items: this.#readable(own), next: found.length < limit ? null : (found.at(-1)?.key ?? null) };
  }

  async withWork({ lane, after, limit: asked }: WorkQuery): Promise<Page<Resource>> {
    const limit = pageSize(asked);
    const [from, dueAt, key] = after === undefined ? [] : cursorOf(after, ["string", "number", "string"]);
    const place = from === undefined ? null : { lane: from as string, dueAt: dueAt as number, key: key as string };
    const found = await this.#store.find({ work: { lane: lane ?? null, after: place }, after: null, limit });
    const last = found.length < limit ? undefined : found.at(-1);
    return {
      items: this.#readable(found),
      next: last === undefined ? null : JSON.stringify([last.lane, last.dueAt, last.key]),
    };
  }

  /** Keys alone: what was set aside can hardly be read. */
  async listSetAside(page: KeyPage): Promise<Page<string>> {
    const limit = pageSize(page.limit);
    const found = await this.#store.find({ label: setAsideLabel, after: page.after ?? null, limit });
    const items = found.map(({ key }) => key);
    return { items, next: found.length < limit ? null : (items.at(-1) ?? null) };
  }

  async operation(key: string, id: string): Promise<OperationStatus | undefined> {
    checkKey(key);
    const accepted = acceptedSeq(id);
    if (accepted === undefined) return undefined;
    const found = await this.#store.read(key, queuePartIds(id));
    if (found === undefined) return undefined;
    const state = stateOf(found.record);
    const { last } = state;
    const [waiting] = found.parts.values();
    const moment = this.#momentOf({ record: found.record, state });
    const operation =
      withStates(state.open, moment).find((candidate) => candidate.id === id) ??
      (waiting === undefined ? undefined : withStateInQueue(queuedOperation(waiting, state), moment));
    if (operation?.id === id)
      return {
        ...{ id, kind: operation.kind, part: operation.part },
        ...{ status: "open", open: operation, outcome: null, endedAt: null },
      };
    const [[words], [settled]] = await Promise.all([
      this.#store.entries(key, { kind: "numbers", seqs: [accepted] }),
      this.#store.entries(
        key,
        last?.id === id ? { kind: "numbers", seqs: [last.seq] } : { kind: "settled", operation: id },
      ),
    ]);
    if (words?.operation !== id || settled === undefined) return undefined;
    const { kind, part } = toEntry(words).payload as { kind: string; part: string | null };
    const { payload, at: endedAt } = toEntry(settled);
    const outcome = payload as unknown as Outcome;
    return { id, kind, part, status: outcome.kind, open: null, outcome, endedAt };
  }

  /** The queue is read whole, so that it is of one moment; the requests are read for one page of it. */
  async operations(key: string, { after, limit }: OperationPage): Promise<Page<AskedOperation>> {
    checkKey(key);
    const whole = await readWithQueue(this.#store, key, [], "all");
    const { found } = whole;
    const open = found === undefined ? [] : this.#view(found.record, new Map(), operationsIn(whole)).open;
    const from = after === undefined ? 0 : placeBehind(open, after);
    const page = open.slice(from, from + pageSize(limit));
    const seqs = page.map(({ id }) => acceptedSeq(id) ?? 0);
    const entries = seqs.length === 0 ? [] : await this.#store.entries(key, { kind: "numbers", seqs });
    const isLast = from + page.length >= open.length;
    return {
      items: page.map((operation) => ({ ...operation, ...requestFor(operation, entries) })),
      next: isLast ? null : (page.at(-1)?.id ?? null),
    };
  }

  #readable(found: readonly StoredRecord[]): readonly Resource[] {
    const items: Resource[] = [];
    for (const record of found) {
      try {
        items.push(this.#view(record, new Map()));
      } catch (error) {
        if (!(error instanceof JournalError && error.code === "unreadable")) throw error;
        this.#ports.observe({ kind: "set aside", key: record.key, error });
      }
    }
    return items;
  }

  #view(record: StoredRecord, parts: ReadonlyMap<string, string>, behind: readonly OpenOperation[] = []): Resource {
    const state = stateOf(record);
    return viewOf(record.key, record.seq, state, parts, this.#momentOf({ record, state }), behind);
  }

  #momentOf(snapshot: Snapshot): Moment {
    const { now, isPaused } = this.#ports;
    return { leased: isLeased(snapshot), now: now(), isPaused };
  }
}

/** Behind the operation that an earlier page ended with, or, if that has ended meanwhile, behind what was accepted before it. */
function placeBehind(open: readonly OpenOperation[], after: string): number {
  const index = open.findIndex(({ id }) => id === after);
  if (index >= 0) return index + 1;
  const seq = acceptedSeq(after);
  if (seq === undefined) throw new JournalError("invalid-change", "after is not what an earlier page gave as next");
  return open.findLastIndex(({ id }) => (acceptedSeq(id) ?? 0) < seq) + 1;
}

function requestFor(
  operation: OpenOperation,
  entries: readonly StoredEntry[],
): Pick<AskedOperation, "author" | "input"> {
  const { input, attribution } = originFrom(entries, { ...operation, steps: [] });
  return { author: attribution.actor, input };
}

/** What an earlier page said of where the next one begins. It comes from outside. */
function cursorOf(text: string, types: readonly ("string" | "number")[]): readonly unknown[] {
  try {
    const place: unknown = JSON.parse(text);
    const fits = Array.isArray(place) && types.every((type, at) => typeof place[at] === type);
    const keepable = fits && place.every((item) => typeof item !== "number" || Number.isSafeInteger(item));
    if (keepable && isKeepable(place.join(""))) return place as readonly unknown[];
  } catch {
    // Said below.
  }
  throw new JournalError("invalid-change", "after is not what an earlier page gave as next");
}

function pageSize(limit = 100): number {
  return Math.max(1, Math.min(Math.floor(limit), largestPage));
}
