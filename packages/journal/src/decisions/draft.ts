import { JournalError } from "../errors.js";
import { checkJsonType, type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import {
  checkEntryKind,
  checkLabels,
  checkLane,
  checkOperationId,
  checkPartId,
  checkSpan,
  isReserved,
} from "../names.js";
import {
  type Attribution,
  acceptedSeq,
  becauseOf,
  type CancelRequest,
  type FinishedOperation,
  journalActor,
  type NewOperation,
  type OpenOperation,
  type Outcome,
  type PollPlace,
} from "../operation.js";
import type { Resource, ResourceChange } from "../resource.js";
import type { ResourceState } from "../state.js";
import type { NewEntry } from "../store.js";
import { defaultDeadlineMs, type KindRules, type Kinds, rulesOf } from "./kind.js";
import { type Moment, withStateInQueue, withStates } from "./operation-state.js";
import {
  aboutPartId,
  inOrder,
  isHeldInQueue,
  mostInRecord,
  queuePartId,
  queuePartIds,
  queuePrefix,
  refillAt,
  roomInRecord,
  windowSize,
} from "./queue.js";
import { agesOf, goesAt, type Retention } from "./retention.js";
import { inTurn } from "./schedule.js";

/** What a change is made from. Nothing here is an effect: the same values give the same draft. */
export interface DraftBase extends Moment {
  readonly key: string;
  readonly seq: number;
  readonly state: ResourceState;
  /** Texts of parts that were read with the record: id → body, `null` for one that does not exist. */
  readonly parts: ReadonlyMap<string, string | null>;
  /** Whether the parts of all operations that wait are among them. */
  readonly hasQueue: boolean;
  /** Makes ids of operations unique over incarnations of a key. */
  readonly token: string;
  readonly kinds: Kinds;
  readonly retention: Retention;
  readonly maxOpen: number;
}

/** Thrown out of a draft that must see parts which were not read, or ("queue") all operations that wait in parts: read them and draft again. */
export class NeedsParts {
  readonly ids: readonly string[] | "queue";
  constructor(ids: readonly string[] | "queue") {
    this.ids = ids;
  }
}

/**
 * One change of one resource in the making: the state it leads to and the entries, parts and labels that go with it.
 * Every method is one thing that can happen to a resource, and appends the entry that says so.
 */
export class Draft {
  readonly base: DraftBase;
  state: ResourceState;
  readonly entries: NewEntry[] = [];
  readonly putParts = new Map<string, string>();
  readonly deleteParts = new Set<string>();
  readonly deleteEntries: number[] = [];
  readonly accepted: OpenOperation[] = [];
  readonly finished: {
    readonly operation: FinishedOperation;
    readonly outcome: Outcome;
    readonly requestId: string | null;
  }[] = [];

  /** The record has changed, and no entry tells of it. */
  #isQuiet = false;

  constructor(base: DraftBase) {
    this.base = base;
    this.state = base.state;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0 && !this.#isQuiet;
  }

  /**
   * All that a decision asked for. Cancelled operations end when it is said what the resource is now, so that their ends build on that, and before
   * anything is accepted, which then comes after the end of what it replaces. `by`: the operation that asks for it.
   */
  apply(change: ResourceChange, attribution: Attribution, by?: string): void {
    if (change.data !== undefined) {
      const text = toJsonText(change.data, limits.jsonBytes, "the data of a resource");
      // A copy: what becomes of the caller's object later is the caller's business.
      this.state = { ...this.state, data: JSON.parse(text) as Json };
    }
    if (change.labels !== undefined) {
      checkLabels(change.labels);
      this.state = { ...this.state, labels: { ...change.labels } };
    }
    for (const [id, value] of Object.entries(change.parts ?? {})) this.#putPart(id, value);
    for (const entry of change.entries ?? []) {
      checkEntryKind(entry.kind);
      if (ownKinds.has(entry.kind))
        throw new JournalError("invalid-change", `"${entry.kind}" entries are the journal's own`);
      checkJsonType(entry.payload ?? null, `the payload of ${JSON.stringify(entry.kind)}`);
      if (entry.operation !== undefined) checkOperationId(entry.operation);
      this.#append(entry.kind, entry.payload ?? null, attribution, entry.operation ?? null);
    }
    const { cancel = [] } = change;
    if ("others" in cancel) this.#cancelOthers(cancel.reason, attribution, by);
    else {
      this.#needToEnd(cancel.map(({ operation }) => operation));
      for (const { operation, reason } of cancel) this.cancel(operation, reason, attribution);
    }
    for (const asked of change.accept ?? []) this.#accept(asked, attribution);
    for (const id of this.#named(change.hold, (one) => !this.#mayHaveStarted(one))) this.#hold(id, true, attribution);
    for (const id of this.#named(change.release, ({ held }) => held)) this.#hold(id, false, attribution);
    for (const id of change.hurry ?? []) this.#hurry(id, attribution);
    if (change.order !== undefined) this.#reorder(change.order, attribution);
    if (change.gone !== undefined) this.state = { ...this.state, gone: change.gone };
    // J2: the seq is the version, so a change that brings no entry of its own is one, too.
    const changes = [change.data, change.labels, change.parts, change.gone].some((value) => value !== undefined);
    if (changes && this.entries.length === 0) this.#append("changed", null, attribution, null);
  }

  /** J8. An operation that nobody can be running ends here and now; else its runner is told to stop and ends it. */
  cancel(id: string, reason: string, attribution: Attribution): void {
    const operation = this.#open(id);
    if (operation.cancel !== null) return;
    // It stands in the entry, in the state and in the end of the operation.
    if (Buffer.byteLength(reason) > limits.reasonBytes) {
      throw new JournalError("too-large", `the reason of a cancellation has more than ${limits.reasonBytes} bytes`);
    }
    const cancel: CancelRequest = { reason, attribution };
    this.#append("cancel requested", { reason }, attribution, id);
    const mayRun = this.base.leased && inTurn(this.base.state.open).some((open) => open.id === id);
    if (mayRun) this.#replace({ ...operation, cancel });
    else this.settle(operation, { kind: "cancelled", reason }, attribution);
  }

  #cancelOthers(reason: string, attribution: Attribution, by: string | undefined): void {
    const others = this.#allOpen().filter(({ id }) => id !== by);
    this.#need(others.flatMap((operation) => this.#partsToSettle(operation)));
    // The end of one may have brought about that of another.
    for (const { id } of others) if (this.#find(id) !== undefined) this.cancel(id, reason, attribution);
  }

  /**
   * Ends an operation, with what that means for the resource. An operation ends in any case: if what its kind makes of a success
   * cannot be carried out, it has failed, and if nothing can be made of that either, it just ends.
   */
  settle(operation: OpenOperation, outcome: Outcome, attribution: Attribution): void {
    const restore = this.#mark();
    try {
      this.#end(operation, outcome, attribution, true);
    } catch (error) {
      if (error instanceof NeedsParts) throw error;
      restore();
      const message = error instanceof Error ? error.message : String(error);
      const failed: Outcome = {
        kind: "failed",
        error: { message: `the end of the operation could not be kept: ${message}`, class: "unkeepable" },
      };
      if (outcome.kind === "succeeded") this.settle(operation, failed, attribution);
      else this.#end(operation, outcome, attribution, false);
    }
  }

  #end(operation: OpenOperation, outcome: Outcome, attribution: Attribution, folds: boolean): void {
    const cause = acceptedSeq(operation.id);
    const seq = this.#append(
      "settled",
      outcome as unknown as Json,
      { ...attribution, ...(cause && { cause }) },
      operation.id,
    );
    const finished: FinishedOperation = {
      id: operation.id,
      kind: operation.kind,
      part: operation.part,
      acceptedAt: operation.acceptedAt,
      endedAt: this.base.now,
      outcome: outcome.kind,
      message: outcome.kind === "failed" ? outcome.error.message : outcome.kind === "cancelled" ? outcome.reason : null,
      description: operation.description,
      seq,
    };
    this.#remove(operation);
    this.state = {
      ...this.state,
      last: finished,
      pruneAt: earlier(
        this.state.pruneAt,
        goesAt(this.base.retention, { outcome: outcome.kind, part: operation.part, at: this.base.now }),
      ),
    };
    this.finished.push({ operation: finished, outcome, requestId: operation.requestId });
    const rules = rulesOf(this.base.kinds, operation.kind);
    if (!folds || rules?.settle === undefined) return;
    const resource = this.#view(partsToSettle(rules, operation));
    this.apply(rules.settle(resource, operation, outcome), { ...attribution, cause: seq });
  }

  /** J4: the result of a step, once. */
  recordStep(operation: OpenOperation, name: string, result: Json, attribution: Attribution): void {
    if (operation.steps.length >= limits.stepsOfAnOperation) {
      throw new JournalError("too-large", `an operation has at most ${limits.stepsOfAnOperation} steps`);
    }
    const seq = this.#append("step", { step: name, result }, attribution, operation.id);
    const steps: OpenOperation["steps"] = [...operation.steps, [name, seq]];
    this.#replace({ ...withoutPoll(operation, name), steps, failures: 0 });
  }

  /**
   * J5: a poll has seen nothing yet and looks again at a later time. It may do so for days: no entry tells of it, and what is kept does not
   * grow with it.
   */
  rest(operation: OpenOperation, poll: PollPlace): void {
    const [name, until] = poll;
    const others = (operation.polls ?? []).filter(([other]) => other !== name);
    if (others.length >= limits.stepsOfAnOperation) {
      throw new JournalError("too-large", `an operation has at most ${limits.stepsOfAnOperation} polls at a time`);
    }
    const attempts = operation.attempts + 1;
    this.#replace({ ...operation, polls: [...others, poll], readyAt: until, attempts, failures: 0 });
    this.#isQuiet = true;
  }

  /** J5: the operation goes on at a later time. `wait` names the wait that has begun, if it is one of the author's. */
  postpone(
    operation: OpenOperation,
    until: number,
    reason: string,
    wait: string | null,
    attribution: Attribution,
  ): void {
    if (wait !== null && operation.waits.length >= limits.stepsOfAnOperation) {
      throw new JournalError("too-large", `an operation has at most ${limits.stepsOfAnOperation} waits`);
    }
    const waits: OpenOperation["waits"] = wait === null ? operation.waits : [...operation.waits, [wait, until]];
    this.#append("waiting", { until, reason, ...(wait !== null && { wait }) }, attribution, operation.id);
    this.#replace({ ...operation, waits, readyAt: until, attempts: operation.attempts + 1, failures: 0 });
  }

  /** An attempt failed; the next one comes at `until`. */
  retry(operation: OpenOperation, until: number, error: string, attribution: Attribution): void {
    const attempts = operation.attempts + 1;
    this.#append("retry", { attempt: attempts, error, until }, attribution, operation.id);
    this.#replace({ ...operation, readyAt: until, attempts, failures: operation.failures + 1, lastError: error });
  }

  /** What the operation is doing, in the author's words. */
  describe(operation: OpenOperation, description: string, attribution: Attribution): void {
    // Said again at every look of a poll it is still said once.
    if (operation.description === description) return;
    this.#append("described", { description }, attribution, operation.id);
    this.#replace({ ...operation, description });
  }

  /** Retention has removed entries. */
  prune(deleted: readonly number[], nextPruneAt: number | null): void {
    this.#append("pruned", { entries: deleted.length }, { actor: journalActor, cause: "retention" }, null);
    this.deleteEntries.push(...deleted);
    const last = this.state.last !== null && deleted.includes(this.state.last.seq) ? null : this.state.last;
    this.state = { ...this.state, pruneAt: nextPruneAt, last };
  }

  /** Whether operations that wait in parts have a place in the record by now. */
  get wantsRefill(): boolean {
    const { open, queued, queuedHeld = 0 } = this.state;
    if (queued > queuedHeld) return roomInRecord(open) >= refillAt;
    return queuedHeld > 0 && open.length < refillAt;
  }

  /** Brings operations that wait in parts into the record, in their order: `waiting` are the first of them, as they were read. */
  refill(waiting: readonly { readonly id: string; readonly body: string }[]): void {
    const bodies = new Map(waiting.map(({ id, body }) => [id, body]));
    // What this very draft has put there may be before them.
    for (const [id, body] of this.putParts) if (id.startsWith(queuePrefix)) bodies.set(id, body);
    for (const [partId, body] of [...bodies].sort(([one], [other]) => (one < other ? -1 : 1))) {
      if (this.deleteParts.has(partId)) continue;
      const { open } = this.state;
      // Those that are held come last, and into an emptier record.
      const fits = isHeldInQueue(partId)
        ? open.length < windowSize
        : roomInRecord(open) > 0 && open.length < mostInRecord;
      if (!fits) break;
      const operation = JSON.parse(body) as OpenOperation;
      this.#remove(operation, partId);
      if (isHeldInQueue(partId)) this.#insert(operation);
      else {
        this.state = { ...this.state, queuedAfter: acceptedSeq(operation.id) ?? 0 };
        // One that was kept here before held ones had a place of their own.
        if (operation.held) this.#putInQueue(operation);
        else this.state = { ...this.state, open: [...this.state.open, operation] };
      }
    }
  }

  /** Ends operations that still wait in parts: their time is up. `rest`: the earliest deadline of the others. */
  settleQueued(ids: readonly string[], outcome: Outcome, rest: number | null): void {
    // Before they end: what a settle puts into the queue may have an earlier one.
    this.state = { ...this.state, queuedDeadlineAt: rest };
    for (const operation of this.#needToEnd(ids)) {
      // The end of one may have brought the end of another.
      if (this.#find(operation.id) !== undefined) this.settle(operation, outcome, becauseOf(operation));
    }
    if (this.isEmpty) this.touch("a deadline was looked for");
  }

  /** Nothing has changed but who was here, and why. */
  touch(cause: string): void {
    this.#append("changed", null, { actor: journalActor, cause }, null);
  }

  /** The runner that records this, for telling how often runners came and went without recording anything. */
  heldBy(epoch: number): void {
    if (this.state.heldEpoch !== epoch) this.state = { ...this.state, heldEpoch: epoch };
  }

  #mark(): () => void {
    const { state } = this;
    const lengths = [this.entries.length, this.accepted.length, this.finished.length] as const;
    const put = [...this.putParts];
    const deleted = [...this.deleteParts];
    return () => {
      this.state = state;
      [this.entries.length, this.accepted.length, this.finished.length] = lengths;
      this.putParts.clear();
      for (const [id, body] of put) this.putParts.set(id, body);
      this.deleteParts.clear();
      for (const id of deleted) this.deleteParts.add(id);
    };
  }

  #accept(asked: NewOperation, attribution: Attribution): void {
    const rules = rulesOf(this.base.kinds, asked.kind);
    if (rules === undefined)
      throw new JournalError("invalid-change", `there is no kind of operation ${JSON.stringify(asked.kind)}`);
    const { state, base } = this;
    if (state.open.length + state.queued >= base.maxOpen) {
      throw new JournalError("queue-full", `the resource has ${base.maxOpen} open operations; no more are accepted`);
    }
    const input = asked.input ?? null;
    checkJsonType(input, `the input of ${JSON.stringify(asked.kind)}`);
    const lane = asked.lane ?? (typeof rules.lane === "function" ? rules.lane(input) : rules.lane) ?? asked.kind;
    checkLane(lane);
    if (asked.part !== undefined) checkPartId(asked.part);
    const mode = asked.mode ?? rules.mode ?? "exclusive";
    const brief = asked.brief === undefined ? {} : { brief: briefOf(asked.brief) };
    const payload: Json = { kind: asked.kind, part: asked.part ?? null, mode, input, ...brief };
    const id = `${base.seq + this.entries.length + 1}-${base.token}`;
    this.#append("accepted", payload, attribution, id);
    checkSpan(asked.delayMs ?? 0, "the delay of an operation");
    const deadlineMs =
      asked.deadlineMs === undefined
        ? rules.deadlineMs === undefined
          ? defaultDeadlineMs
          : rules.deadlineMs
        : asked.deadlineMs;
    checkSpan(deadlineMs ?? 0, "the deadline of an operation");
    const operation: OpenOperation = {
      id,
      kind: asked.kind,
      part: asked.part ?? null,
      mode,
      lane,
      acceptedAt: base.now,
      requestId: attribution.requestId ?? null,
      deadlineAt: deadlineMs === null ? null : base.now + Math.ceil(deadlineMs),
      readyAt: base.now + Math.ceil(asked.delayMs ?? 0),
      held: asked.held ?? false,
      cancel: null,
      attempts: 0,
      failures: 0,
      lastError: null,
      description: null,
      steps: [],
      waits: [],
      ...brief,
    };
    this.accepted.push(operation);
    this.#enqueue(operation, asked.place ?? "back");
  }

  #enqueue(operation: OpenOperation, place: "back" | "front"): void {
    const { open, queued, queuedHeld = 0 } = this.state;
    this.state = { ...this.state, gone: false };
    if (place === "front") this.#place(operation, this.#behindStarted(open));
    else if (operation.held ? open.length < windowSize : queued === queuedHeld && this.#hasRoom)
      this.state = { ...this.state, open: [...open, operation] };
    else this.#putInQueue(operation);
  }

  get #hasRoom(): boolean {
    return roomInRecord(this.state.open) > 0 && this.state.open.length < mostInRecord;
  }

  #hold(id: string, held: boolean, attribution: Attribution): void {
    const operation = this.#open(id);
    if (operation.held === held) return;
    if (held && this.#mayHaveStarted(operation)) {
      throw new JournalError("invalid-change", `operation ${id} has started; it cannot be held any more`);
    }
    this.#append(held ? "held" : "released", null, attribution, id);
    const changed = { ...operation, held };
    const index = this.state.open.findIndex((open) => open.id === id);
    if (held && index >= 0 && this.state.open.length <= windowSize) {
      this.#replace(changed);
      return;
    }
    this.#remove(operation);
    if (held) this.#putInQueue(changed);
    // J7: what has started while it stood aside goes first, or both would run at once.
    else if (index >= 0) this.#place(changed, this.#placeAfterRelease(changed, index));
    else this.#insert(changed);
  }

  /** Its own place, or behind what has started, and there behind older ones that were released before it. */
  #placeAfterRelease(operation: OpenOperation, index: number): number {
    const { open } = this.state;
    const started = this.#behindStarted(open);
    if (index >= started) return index;
    const newer = open.findIndex((other, place) => place >= started && seqOf(other) > seqOf(operation));
    return newer < 0 ? open.length : newer;
  }

  /** Its waits are over, too: else it would go back to sleep at once. One that is ready waits for nothing but its turn. */
  #hurry(id: string, attribution: Attribution): void {
    const operation = this.#open(id);
    const { now } = this.base;
    if (operation.readyAt <= now) return;
    this.#append("hurried", null, attribution, id);
    const waits = operation.waits.map(([name, until]) => [name, Math.min(until, now)] as const);
    const polls = operation.polls?.map(([name, until, ...rest]): PollPlace => [name, Math.min(until, now), ...rest]);
    this.#replace({ ...operation, readyAt: now, waits, ...(polls && { polls }) });
  }

  /** The first place behind all that may have started. */
  #behindStarted(open: readonly OpenOperation[]): number {
    return open.findLastIndex((other) => this.#mayHaveStarted(other)) + 1;
  }

  #reorder(order: readonly string[], attribution: Attribution): void {
    this.#needQueued(order);
    const named = [...new Set(order)].map((id) => this.#open(id));
    const started = named.find((operation) => this.#mayHaveStarted(operation));
    if (started !== undefined)
      throw new JournalError("invalid-change", `operation ${started.id} has started; it keeps its place`);
    this.#append("reordered", { order: [...order] }, attribution, null);
    for (const operation of named) this.#remove(operation);
    const first = this.state.open.filter((operation) => this.#mayHaveStarted(operation));
    const rest = this.state.open.filter((operation) => !first.includes(operation));
    this.state = { ...this.state, open: [...first, ...rest] };
    for (const [index, operation] of named.entries()) this.#place(operation, first.length + index);
  }

  #mayHaveStarted(operation: OpenOperation): boolean {
    if (operation.attempts > 0 || operation.steps.length > 0) return true;
    return this.base.leased && inTurn(this.base.state.open).some(({ id }) => id === operation.id);
  }

  #open(id: string): OpenOperation {
    const operation = this.#find(id);
    if (operation === undefined)
      throw new JournalError("invalid-change", `there is no open operation ${JSON.stringify(id)}`);
    return operation;
  }

  #find(id: string): OpenOperation | undefined {
    return this.state.open.find((open) => open.id === id) ?? this.#inQueue(id);
  }

  /** An operation that waits in a part. */
  #inQueue(id: string): OpenOperation | undefined {
    if (this.state.queued === 0) return undefined;
    const places = queuePartIds(id);
    this.#need(places);
    for (const partId of places) {
      const body = this.#partText(partId);
      const operation = body === null ? undefined : (JSON.parse(body) as OpenOperation);
      if (operation?.id === id) return operation;
    }
    return undefined;
  }

  /** What is needed at once: each time that something is missing is a read and a new draft. */
  #needQueued(ids: readonly string[]): void {
    if (this.state.queued === 0) return;
    const inRecord = new Set(this.state.open.map(({ id }) => id));
    this.#need(ids.filter((id) => !inRecord.has(id)).flatMap(queuePartIds));
  }

  /** The same for those that are to end, and answers them. */
  #needToEnd(ids: readonly string[]): readonly OpenOperation[] {
    this.#needQueued(ids);
    const operations = ids.flatMap((id) => this.#find(id) ?? []);
    this.#need(operations.flatMap((operation) => this.#partsToSettle(operation)));
    return operations;
  }

  /** All that are open, those in the record first. */
  #allOpen(): readonly OpenOperation[] {
    const { open, queued } = this.state;
    if (queued === 0) return open;
    if (!this.base.hasQueue) throw new NeedsParts("queue");
    const texts = new Map([...this.base.parts, ...this.putParts]);
    const waiting: OpenOperation[] = [];
    for (const [id, body] of texts) {
      if (id.startsWith(queuePrefix) && body !== null && !this.deleteParts.has(id)) waiting.push(JSON.parse(body));
    }
    return [...open, ...waiting.sort((one, other) => seqOf(one) - seqOf(other))];
  }

  /** The ids that are meant: those named, or all others that fit and are not of this change. */
  #named(
    ids: readonly string[] | "others" | undefined,
    fits: (operation: OpenOperation) => boolean,
  ): readonly string[] {
    if (ids !== "others") {
      this.#needQueued(ids ?? []);
      return ids ?? [];
    }
    const isNew = ({ id }: OpenOperation) => this.accepted.some((accepted) => accepted.id === id);
    return this.#allOpen()
      .filter((operation) => fits(operation) && !isNew(operation))
      .map(({ id }) => id);
  }

  /** Takes an operation out of the record, or out of the part in which it waits. */
  #remove(operation: OpenOperation, partId?: string): void {
    const { open, queued, queuedHeld = 0 } = this.state;
    if (open.some(({ id }) => id === operation.id)) {
      this.state = { ...this.state, open: open.filter(({ id }) => id !== operation.id) };
      return;
    }
    // Earlier versions kept held ones among the others.
    const place = partId ?? queuePartIds(operation.id).find((id) => this.#partText(id) !== null);
    if (place === undefined) return;
    for (const id of [place, ...(operation.part === null ? [] : [aboutPartId(operation, operation.part)])]) {
      this.putParts.delete(id);
      this.deleteParts.add(id);
    }
    this.#count(queued - 1, isHeldInQueue(place) ? queuedHeld - 1 : queuedHeld);
  }

  /** Behind the record, where its number says. */
  #putInQueue(operation: OpenOperation): void {
    const { queued, queuedHeld = 0, queuedAfter, queuedDeadlineAt } = this.state;
    const isFirst = queued === queuedHeld;
    this.#putOwnPart(queuePartId(operation), JSON.stringify(operation));
    if (operation.part !== null) this.#putOwnPart(aboutPartId(operation, operation.part), JSON.stringify(operation.id));
    this.state = { ...this.state, queuedDeadlineAt: earlier(queuedDeadlineAt, operation.deadlineAt) };
    this.#count(queued + 1, operation.held ? queuedHeld + 1 : queuedHeld);
    if (operation.held) return;
    const before = seqOf(operation) - 1;
    if (isFirst || queuedAfter !== undefined)
      this.state = { ...this.state, queuedAfter: Math.min(before, isFirst ? before : (queuedAfter ?? 0)) };
  }

  #putOwnPart(id: string, body: string): void {
    this.deleteParts.delete(id);
    this.putParts.set(id, body);
  }

  /** How many wait in parts. What says nothing about them is left out, so that it costs those nothing who have none. */
  #count(queued: number, held: number): void {
    const { queuedHeld: _, queuedAfter, queuedDeadlineAt, ...rest } = this.state;
    this.state = {
      ...rest,
      queued,
      queuedDeadlineAt: queued === 0 ? null : queuedDeadlineAt,
      ...(held > 0 && { queuedHeld: held }),
      ...(queued > held && queuedAfter !== undefined && { queuedAfter }),
    };
  }

  /** At a place in the record. If that is full, the last ones there go back to where they came from, as long as the order allows it. */
  #place(operation: OpenOperation, index: number): void {
    this.state = { ...this.state, open: this.state.open.toSpliced(index, 0, operation) };
    while (this.state.open.length > mostInRecord) {
      const { open, queued, queuedHeld = 0, queuedAfter = 0 } = this.state;
      const last = open.at(-1) as OpenOperation;
      const keepsOrder = last.held || queued === queuedHeld || seqOf(last) <= queuedAfter;
      if (last.id === operation.id || this.#mayHaveStarted(last) || !keepsOrder)
        throw new JournalError("queue-full", `at most ${mostInRecord} operations are put in front of others`);
      this.state = { ...this.state, open: open.slice(0, -1) };
      this.#putInQueue(last);
    }
  }

  /** Where its number says: behind the older ones, and behind what has started. */
  #insert(operation: OpenOperation): void {
    const { open, queued, queuedHeld = 0 } = this.state;
    const older = open.findLastIndex((other) => seqOf(other) < seqOf(operation)) + 1;
    const index = operation.held ? older : Math.max(older, this.#behindStarted(open));
    if (index === open.length && !operation.held && (queued > queuedHeld || !this.#hasRoom))
      this.#putInQueue(operation);
    else this.#place(operation, index);
  }

  #replace(operation: OpenOperation): void {
    const { open } = this.state;
    const isInRecord = open.some(({ id }) => id === operation.id);
    if (!isInRecord) this.#putOwnPart(queuePartId(operation), JSON.stringify(operation));
    else this.state = { ...this.state, open: open.map((other) => (other.id === operation.id ? operation : other)) };
  }

  #putPart(id: string, value: Json): void {
    checkPartId(id);
    if (value === null) {
      this.putParts.delete(id);
      this.deleteParts.add(id);
    } else {
      const text = toJsonText(value, limits.jsonBytes, `the part ${JSON.stringify(id)}`);
      this.deleteParts.delete(id);
      // What stands there already is not written again: the end of an operation often leaves its part as it is.
      if (this.base.parts.get(id) === text) this.putParts.delete(id);
      else this.putParts.set(id, text);
    }
  }

  #partText(id: string): string | null {
    this.#need([id]);
    if (this.deleteParts.has(id)) return null;
    return this.putParts.get(id) ?? this.base.parts.get(id) ?? null;
  }

  #partsToSettle(operation: OpenOperation): readonly string[] {
    const rules = rulesOf(this.base.kinds, operation.kind);
    return rules?.settle === undefined ? [] : partsToSettle(rules, operation);
  }

  #need(ids: readonly string[]): void {
    const known = (id: string) =>
      this.putParts.has(id) ||
      this.deleteParts.has(id) ||
      this.base.parts.has(id) ||
      (this.base.hasQueue && id.startsWith(queuePrefix));
    const missing = new Set(ids.filter((id) => !known(id)));
    if (missing.size > 0) throw new NeedsParts([...missing]);
  }

  #view(parts: readonly string[]): Resource {
    this.#need(parts);
    const texts = parts.map((id) => [id, this.#partText(id)] as const);
    return viewOf(this.base.key, this.base.seq + this.entries.length, this.state, new Map(texts), this.base);
  }

  #append(kind: string, payload: Json, attribution: Attribution, operation: string | null): number {
    const body = toJsonText({ ...attribution, payload }, limits.jsonBytes, `the ${kind} entry`);
    this.entries.push({ kind, operation, body });
    if (operation === null && kind !== "pruned") {
      this.state = {
        ...this.state,
        pruneAt: earlier(this.state.pruneAt, agesOf(this.base.retention, "note", this.base.now)),
      };
    }
    return this.base.seq + this.entries.length;
  }
}

/** Kinds of entries that the journal writes itself. */
export const ownKinds: ReadonlySet<string> = new Set([
  "accepted",
  "step",
  "waiting",
  "retry",
  "described",
  "cancel requested",
  "settled",
  "held",
  "released",
  "hurried",
  "reordered",
  "changed",
  "pruned",
]);

/** The resource as decisions see it. `behind`: operations behind those in the record that are to be in sight. */
export function viewOf(
  key: string,
  seq: number,
  state: ResourceState,
  parts: ReadonlyMap<string, string | null>,
  moment: Moment,
  behind: readonly OpenOperation[] = [],
): Resource {
  const values = new Map<string, Json>();
  for (const [id, body] of parts) {
    if (body !== null && !isReserved(id)) values.set(id, JSON.parse(body) as Json);
  }
  const { data, labels, queued, last } = state;
  // Told when they are asked for: most decisions do not look at them.
  let open: Resource["open"] | undefined;
  return {
    key,
    seq,
    data,
    labels,
    parts: values,
    get open() {
      open ??= inOrder(
        withStates(state.open, moment),
        behind.map((waiting) => withStateInQueue(waiting, moment)),
      );
      return open;
    },
    queued: queued - behind.length,
    last,
    running: moment.leased,
  };
}

export function partsToSettle(rules: KindRules, operation: Pick<OpenOperation, "part">): readonly string[] {
  return operation.part === null ? (rules.reads ?? []) : [...(rules.reads ?? []), operation.part];
}

function withoutPoll({ polls = [], ...operation }: OpenOperation, name: string): OpenOperation {
  const others = polls.filter(([other]) => other !== name);
  return others.length === 0 ? operation : { ...operation, polls: others };
}

/** A copy: what becomes of the caller's object later is the caller's business. */
function briefOf(brief: Json): Json {
  return JSON.parse(toJsonText(brief, limits.briefBytes, "the brief of an operation")) as Json;
}

function seqOf({ id }: OpenOperation): number {
  return acceptedSeq(id) ?? 0;
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}
