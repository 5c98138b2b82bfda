import { JournalError } from "../errors.js";
import type { OpenOperation } from "../operation.js";
import type { ResourceState } from "../state.js";
import type { DraftParts } from "./draft-parts.js";
import {
  aboutPartId,
  isHeldInQueue,
  mostInRecord,
  queuedOperation,
  queuePartId,
  queuePartIds,
  queuePrefix,
  roomInRecord,
  seqOf,
  wantsMore,
  windowSize,
} from "./queue.js";
import { earlier, inTurn } from "./schedule.js";

/** What the open operations are a part of. */
export interface OperationsOf {
  readonly base: { readonly state: ResourceState; readonly leased: boolean; readonly now: number };
  /** As far as the change has got. */
  state: ResourceState;
}

/**
 * The open operations of a resource in the making of one change: the first ones in the record, the others in parts behind it (see
 * queue.ts). Keeps their order, and knows where each of them is.
 */
export class OpenOperations {
  readonly #draft: OperationsOf;
  readonly #parts: DraftParts;

  constructor(draft: OperationsOf, parts: DraftParts) {
    this.#draft = draft;
    this.#parts = parts;
  }

  /** One that must be open. */
  get(id: string): OpenOperation {
    const operation = this.find(id);
    if (operation === undefined)
      throw new JournalError("invalid-change", `there is no open operation ${JSON.stringify(id)}`);
    return operation;
  }

  find(id: string): OpenOperation | undefined {
    return this.#state.open.find((open) => open.id === id) ?? this.#inQueue(id);
  }

  /** What is needed at once: each time that something is missing is a read and a new draft. */
  need(ids: readonly string[]): void {
    if (this.#state.queued === 0) return;
    const inRecord = new Set(this.#state.open.map(({ id }) => id));
    this.#parts.need(ids.filter((id) => !inRecord.has(id)).flatMap(queuePartIds));
  }

  /** Those that wait in parts, by their numbers. */
  waiting(): readonly OpenOperation[] {
    if (this.#state.queued === 0) return [];
    const waiting = this.#parts.queue().map((body) => queuedOperation(body, this.#state));
    return waiting.sort((one, other) => seqOf(one) - seqOf(other));
  }

  mayHaveStarted(operation: OpenOperation): boolean {
    return operation.attempts > 0 || operation.steps.length > 0 || this.mayRun(operation.id);
  }

  /** Whether an engine may be at it. */
  mayRun(id: string): boolean {
    const { leased, state } = this.#draft.base;
    return leased && inTurn(state.open).some((open) => open.id === id);
  }

  add(operation: OpenOperation, place: "back" | "front"): void {
    const { open, queued, queuedHeld = 0 } = this.#state;
    if (place === "front") this.#place(operation, this.#behindStarted(open));
    // Also a held one: released it would keep its place in the record, before older ones that wait behind that.
    else if (queued === queuedHeld && (operation.held ? open.length < windowSize : this.#hasRoom))
      this.#update({ open: [...open, operation] });
    else this.#putInQueue(operation);
  }

  replace(operation: OpenOperation): void {
    const { open } = this.#state;
    const isInRecord = open.some(({ id }) => id === operation.id);
    if (!isInRecord) this.#parts.writeText(queuePartId(operation), JSON.stringify(operation));
    else this.#update({ open: open.map((other) => (other.id === operation.id ? operation : other)) });
  }

  /** Takes an operation out of the record, or out of the part in which it waits. */
  remove(operation: OpenOperation, partId?: string): void {
    const { open, queued, queuedHeld = 0 } = this.#state;
    if (open.some(({ id }) => id === operation.id)) {
      this.#update({ open: open.filter(({ id }) => id !== operation.id) });
      return;
    }
    // Earlier versions kept held ones among the others.
    const place = partId ?? queuePartIds(operation.id).find((id) => this.#parts.text(id) !== null);
    if (place === undefined) return;
    for (const id of [place, ...(operation.part === null ? [] : [aboutPartId(operation, operation.part)])]) {
      this.#parts.remove(id);
    }
    this.#count(queued - 1, isHeldInQueue(place) ? queuedHeld - 1 : queuedHeld);
  }

  /** To stand aside, or to take its turn again. */
  setHeld(operation: OpenOperation, held: boolean): void {
    const changed = { ...operation, held };
    const index = this.#state.open.findIndex(({ id }) => id === operation.id);
    if (held && index >= 0 && this.#state.open.length <= windowSize) {
      this.replace(changed);
      return;
    }
    this.remove(operation);
    if (held) this.#putInQueue(changed);
    // J7: what has started while it stood aside goes first, or both would run at once.
    else if (index >= 0) this.#place(changed, this.#placeAfterRelease(changed, index));
    else this.#insert(changed);
  }

  /** Before all others that have not started, in this order. */
  putInFront(operations: readonly OpenOperation[]): void {
    for (const operation of operations) this.remove(operation);
    const first = this.#state.open.filter((operation) => this.mayHaveStarted(operation));
    const rest = this.#state.open.filter((operation) => !first.includes(operation));
    this.#update({ open: [...first, ...rest] });
    for (const [index, operation] of operations.entries()) this.#place(operation, first.length + index);
  }

  /** Whether operations that wait in parts have a place in the record by now. */
  get wantsRefill(): boolean {
    const { open, queued, queuedHeld = 0 } = this.#state;
    if (queued > queuedHeld) return wantsMore(open, this.#draft.base.state.open);
    return queuedHeld > 0 && open.length < windowSize / 2;
  }

  /** How many of those that wait are worth reading for that, at first. */
  get mostToRefill(): number {
    const { open, queued, queuedHeld = 0 } = this.#state;
    // Those that this very draft takes away do not count.
    return (queued > queuedHeld ? roomInRecord(open) : windowSize) + this.#parts.deleted.size;
  }

  /** Whether more of them have to be read: some of these may be held ones that earlier versions kept among the others, and take no room. */
  needsMoreThan(waiting: readonly { readonly id: string; readonly body: string }[]): boolean {
    return waiting.some(({ id, body }) => !isHeldInQueue(id) && body.includes('"held":true'));
  }

  /** Brings operations that wait in parts into the record, in their order: `waiting` are the first of them, as they were read. */
  refill(waiting: readonly { readonly id: string; readonly body: string }[]): void {
    const bodies = new Map(waiting.map(({ id, body }) => [id, body]));
    // What this very draft has put there may be before them.
    for (const [id, body] of this.#parts.put) if (id.startsWith(queuePrefix)) bodies.set(id, body);
    for (const [partId, body] of [...bodies].sort(([one], [other]) => (one < other ? -1 : 1))) {
      if (this.#parts.deleted.has(partId)) continue;
      const { open } = this.#state;
      // Those that are held come last, and into an emptier record.
      const fits = isHeldInQueue(partId)
        ? open.length < windowSize
        : roomInRecord(open) > 0 && open.length < mostInRecord;
      if (!fits) break;
      const operation = queuedOperation(body, this.#state);
      // It ends where it is, with all that were told to stop. What was accepted after them waits for that.
      if (operation.cancel !== null) break;
      this.remove(operation, partId);
      if (isHeldInQueue(partId)) this.#insert(operation);
      else {
        this.#update({ queuedAfter: seqOf(operation) });
        // One that was kept here before held ones had a place of their own.
        if (operation.held) this.#putInQueue(operation);
        else this.#update({ open: [...this.#state.open, operation] });
      }
    }
  }

  /** An operation that waits in a part. */
  #inQueue(id: string): OpenOperation | undefined {
    if (this.#state.queued === 0) return undefined;
    const places = queuePartIds(id);
    this.#parts.need(places);
    for (const partId of places) {
      const body = this.#parts.text(partId);
      const operation = body === null ? undefined : queuedOperation(body, this.#state);
      if (operation?.id === id) return operation;
    }
    return undefined;
  }

  get #hasRoom(): boolean {
    return roomInRecord(this.#state.open) > 0 && this.#state.open.length < mostInRecord;
  }

  /** Its own place, or behind what has started, and there behind older ones that were released before it. */
  #placeAfterRelease(operation: OpenOperation, index: number): number {
    const { open } = this.#state;
    const started = this.#behindStarted(open);
    if (index >= started) return index;
    const newer = open.findIndex((other, place) => place >= started && seqOf(other) > seqOf(operation));
    return newer < 0 ? open.length : newer;
  }

  /** The first place behind all that may have started. */
  #behindStarted(open: readonly OpenOperation[]): number {
    return open.findLastIndex((other) => this.mayHaveStarted(other)) + 1;
  }

  /** Behind the record, where its number says. */
  #putInQueue(operation: OpenOperation): void {
    const { queued, queuedHeld = 0, queuedAfter, queuedDeadlineAt } = this.#state;
    const isFirst = queued === queuedHeld;
    this.#parts.writeText(queuePartId(operation), JSON.stringify(operation));
    if (operation.part !== null)
      this.#parts.writeText(aboutPartId(operation, operation.part), JSON.stringify(operation.id));
    const endsAt = operation.cancel === null ? operation.deadlineAt : this.#draft.base.now;
    this.#update({ queuedDeadlineAt: earlier(queuedDeadlineAt, endsAt) });
    this.#count(queued + 1, operation.held ? queuedHeld + 1 : queuedHeld);
    if (operation.held) return;
    const before = seqOf(operation) - 1;
    if (isFirst || queuedAfter !== undefined)
      this.#update({ queuedAfter: Math.min(before, isFirst ? before : (queuedAfter ?? 0)) });
  }

  /** How many wait in parts. What says nothing about them is left out, so that it costs those nothing who have none. */
  #count(queued: number, held: number): void {
    const { queuedHeld: _, queuedAfter, queuedDeadlineAt, dropping, ...rest } = this.#state;
    this.#draft.state = {
      ...rest,
      queued,
      queuedDeadlineAt: queued === 0 ? null : queuedDeadlineAt,
      ...(queued > 0 && dropping !== undefined && { dropping }),
      ...(held > 0 && { queuedHeld: held }),
      ...(queued > held && queuedAfter !== undefined && { queuedAfter }),
    };
  }

  /** At a place in the record. If that is full, the last ones there go back to where they came from, as long as the order allows it. */
  #place(operation: OpenOperation, index: number): void {
    this.#update({ open: this.#state.open.toSpliced(index, 0, operation) });
    while (this.#state.open.length > mostInRecord) {
      const { open, queued, queuedHeld = 0, queuedAfter = 0 } = this.#state;
      const last = open.at(-1) as OpenOperation;
      const keepsOrder = last.held || queued === queuedHeld || seqOf(last) <= queuedAfter;
      if (last.id === operation.id || this.mayHaveStarted(last) || !keepsOrder)
        throw new JournalError("queue-full", `at most ${mostInRecord} operations are put in front of others`);
      this.#update({ open: open.slice(0, -1) });
      this.#putInQueue(last);
    }
  }

  /** Where its number says: behind the older ones, those that wait in parts included, and behind what has started. */
  #insert(operation: OpenOperation): void {
    const { open, queued, queuedHeld = 0, queuedAfter = 0 } = this.#state;
    const older = open.findLastIndex((other) => seqOf(other) < seqOf(operation)) + 1;
    const index = operation.held ? older : Math.max(older, this.#behindStarted(open));
    const overtakes = queued > queuedHeld && seqOf(operation) > queuedAfter;
    if (!operation.held && (overtakes || (index === open.length && !this.#hasRoom))) this.#putInQueue(operation);
    else this.#place(operation, index);
  }

  get #state(): ResourceState {
    return this.#draft.state;
  }

  #update(changes: Partial<ResourceState>): void {
    this.#draft.state = { ...this.#draft.state, ...changes };
  }
}
