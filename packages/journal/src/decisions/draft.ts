import { JournalError } from "../errors.js";
import { checkJsonType, type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import { checkEntryKind, checkLabels, checkOperationId } from "../names.js";
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
  type Wait,
} from "../operation.js";
import type { Resource, ResourceChange } from "../resource.js";
import { type ResourceState, stateText } from "../state.js";
import type { NewEntry } from "../store.js";
import { checkChange, checkNewOperation } from "./check-decision.js";
import { DraftParts, NeedsParts } from "./draft-parts.js";
import { type Kinds, partsToSettle, rulesOf } from "./kind.js";
import { acceptance, newOperation } from "./new-operation.js";
import { OpenOperations } from "./open-operations.js";
import type { Moment } from "./operation-state.js";
import { ownKinds } from "./own-kinds.js";
import { mostEnds, seqOf } from "./queue.js";
import { viewOf } from "./resource-view.js";
import { agesOf, goesAt, type Retention } from "./retention.js";
import { earlier } from "./schedule.js";
import { nextAttemptAt, untilOf, withoutHurry, withoutPoll, withWaits } from "./waits.js";

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

/**
 * One change of one resource in the making: the state it leads to and the entries, parts and labels that go with it.
 * Every method is one thing that can happen to a resource, and appends the entry that says so.
 */
export class Draft {
  readonly base: DraftBase;
  state: ResourceState;
  readonly entries: NewEntry[] = [];
  readonly parts: DraftParts;
  readonly operations: OpenOperations;
  readonly deleteEntries: number[] = [];
  readonly accepted: OpenOperation[] = [];
  readonly finished: {
    readonly operation: FinishedOperation;
    readonly outcome: Outcome;
    readonly requestId: string | null;
    /** Why it has ended without what its kind makes of that. */
    readonly settleError?: unknown;
  }[] = [];

  /** The data that a change has set last, and its text. */
  #written: { readonly data: Json; readonly text: string } | undefined;
  /** The record has changed, and no entry tells of it. */
  #isQuiet = false;
  /** Operations are being ended that a change cancels. */
  #isEnding = false;
  /** Ids of those that were told to stop by the ends of others, and how many of them were looked at. */
  readonly #told: string[] = [];
  #toldSeen = 0;
  /** "Others" have numbers up to this: what the same commit accepts is not meant. */
  #othersUpTo: number;

  constructor(base: DraftBase) {
    this.base = base;
    this.state = base.state;
    this.parts = new DraftParts(base.parts, base.hasQueue);
    this.operations = new OpenOperations(this, this.parts);
    this.#othersUpTo = base.seq;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0 && !this.#isQuiet;
  }

  /** The state that it leads to, as the record keeps it. */
  stateText(): string {
    const written = this.#written;
    return stateText(this.state, written?.data === this.state.data ? written?.text : undefined);
  }

  /**
   * All that a decision asked for. Cancelled operations end when it is said what the resource is now, so that their ends build on that, and before
   * anything is accepted, which then comes after the end of what it replaces. `by`: the operation that asks for it.
   */
  apply(change: ResourceChange, attribution: Attribution, by?: string): void {
    checkChange(change);
    if (change.data !== undefined) {
      const text = toJsonText(change.data, limits.jsonBytes, "the data of a resource");
      // A copy: what becomes of the caller's object later is the caller's business.
      const data = JSON.parse(text) as Json;
      this.#written = { data, text };
      this.state = { ...this.state, data };
    }
    if (change.labels !== undefined) {
      checkLabels(change.labels);
      this.state = { ...this.state, labels: { ...change.labels } };
    }
    for (const [id, value] of Object.entries(change.parts ?? {})) this.parts.write(id, value);
    for (const entry of change.entries ?? []) {
      checkEntryKind(entry.kind);
      if (ownKinds.has(entry.kind))
        throw new JournalError("invalid-change", `"${entry.kind}" entries are the journal's own`);
      checkJsonType(entry.payload ?? null, `the payload of ${JSON.stringify(entry.kind)}`);
      if (entry.operation !== undefined) checkOperationId(entry.operation);
      this.#append(entry.kind, entry.payload ?? null, attribution, entry.operation ?? null);
    }
    if (change.cancel !== undefined) this.#cancelAll(change.cancel, attribution, by);
    for (const asked of change.accept ?? []) this.#accept(asked, attribution);
    for (const id of this.#named(change.hold, (one) => !this.operations.mayHaveStarted(one)))
      this.#hold(id, true, attribution);
    for (const id of this.#named(change.release, ({ held }) => held)) this.#hold(id, false, attribution);
    if (change.hurry !== undefined) this.operations.need(change.hurry);
    for (const id of change.hurry ?? []) this.#hurry(id, attribution);
    if (change.order !== undefined) this.#reorder(change.order, attribution);
    if (change.gone !== undefined) this.state = { ...this.state, gone: change.gone };
    // J2: the seq is the version, so a change that brings no entry of its own is one, too.
    const changes = [change.data, change.labels, change.parts, change.gone].some((value) => value !== undefined);
    if (changes && this.entries.length === 0) this.#append("changed", null, attribution, null);
  }

  /**
   * The ends of operations that are cancelled may cancel others in their turn. Those wait until the end that cancels them is whole, so
   * that nothing nests, however long the chain is.
   */
  #cancelAll(cancel: NonNullable<ResourceChange["cancel"]>, attribution: Attribution, by: string | undefined): void {
    const isOutermost = !this.#isEnding;
    this.#isEnding = true;
    try {
      if ("others" in cancel) this.#cancelOthers(cancel.reason, attribution, by);
      else {
        this.#needToEnd(cancel.map(({ operation }) => operation));
        for (const { operation, reason } of cancel) this.#cancel(operation, reason, attribution, isOutermost);
      }
      if (isOutermost) this.#endTold();
    } finally {
      if (isOutermost) this.#isEnding = false;
    }
  }

  /** J8. An operation that nobody can be running ends here and now, or after the end that cancels it; else its runner is told to stop and ends it. */
  #cancel(id: string, reason: string, attribution: Attribution, isOutermost: boolean): void {
    const operation = this.operations.get(id);
    if (operation.cancel !== null) return;
    checkReason(reason);
    const cancel: CancelRequest = { reason, attribution };
    this.#append("cancel requested", { reason }, attribution, id);
    const mayRun = this.operations.mayRun(id);
    if (isOutermost && !mayRun) {
      this.settle(operation, { kind: "cancelled", reason }, attribution);
      return;
    }
    this.operations.replace({ ...operation, cancel });
    if (!mayRun) this.#told.push(id);
  }

  /** Those in the record one by one, which are few; the others all together. */
  #cancelOthers(reason: string, attribution: Attribution, by: string | undefined): void {
    checkReason(reason);
    const upTo = this.#othersUpTo;
    const others = this.state.open.filter((operation) => operation.id !== by && seqOf(operation) <= upTo);
    this.parts.need(others.flatMap((operation) => this.#partsToSettle(operation)));
    if (this.state.queued > 0 && (this.state.dropping?.upTo ?? 0) < upTo)
      this.state = { ...this.state, dropping: { upTo, cancel: { reason, attribution } } };
    for (const { id } of others) {
      // The end of one may have brought about that of another.
      if (this.operations.find(id)?.cancel === null) this.#cancel(id, reason, attribution, false);
    }
  }

  /** Ends what was told to stop, one after the other. What is too much for one commit is left to an engine, which finds it in the record. */
  #endTold(): void {
    for (;;) {
      while (this.#toldSeen < this.#told.length && this.finished.length < mostEnds) {
        const operation = this.operations.find(this.#told[this.#toldSeen++] ?? "");
        if (operation !== undefined) this.#settleCancelled(operation);
      }
      const { dropping, queued } = this.state;
      if (this.#toldSeen < this.#told.length && queued > 0) this.#lookAtQueue();
      // Else it is not this change that drops them.
      if (dropping === undefined || dropping === this.base.state.dropping) return;
      const dropped = this.operations.waiting().filter((operation) => operation.cancel !== null);
      const bite = dropped.slice(0, Math.max(0, mostEnds - this.finished.length));
      this.parts.need(bite.flatMap((operation) => this.#partsToSettle(operation)));
      for (const { id } of bite) this.#endDropped(id);
      if (bite.length < dropped.length) {
        this.#lookAtQueue();
        return;
      }
      this.#forgetDropping();
      if (this.#toldSeen === this.#told.length) return;
    }
  }

  /** One that waits in a part, told to stop with all others: that it was is told with its end. */
  #endDropped(id: string): void {
    const operation = this.operations.find(id);
    if (operation === undefined || operation.cancel === null) return;
    const { reason, attribution } = operation.cancel;
    if (operation.cancel === this.state.dropping?.cancel) this.#append("cancel requested", { reason }, attribution, id);
    this.#settleCancelled(operation);
  }

  /** There is something to end among those that wait in parts. */
  #lookAtQueue(): void {
    this.state = { ...this.state, queuedDeadlineAt: this.base.now };
  }

  #settleCancelled(operation: OpenOperation): void {
    if (operation.cancel === null) return;
    const { reason, attribution } = operation.cancel;
    this.settle(operation, { kind: "cancelled", reason }, attribution);
  }

  #forgetDropping(): void {
    const { dropping: _, ...rest } = this.state;
    this.state = rest;
  }

  /**
   * Ends an operation, with what that means for the resource. An operation ends in any case: if what its kind makes of a success
   * cannot be carried out, it has failed, and if nothing can be made of that either, it just ends, and whoever watches is told why.
   */
  settle(operation: OpenOperation, outcome: Outcome, attribution: Attribution): void {
    const restore = this.#mark();
    try {
      this.#end(operation, outcome, attribution);
    } catch (error) {
      if (error instanceof NeedsParts) throw error;
      restore();
      const message = error instanceof Error ? error.message : String(error);
      const failed: Outcome = {
        kind: "failed",
        error: { message: `the end of the operation could not be kept: ${message}`, class: "unkeepable" },
      };
      if (outcome.kind === "succeeded") this.settle(operation, failed, attribution);
      else this.#end(operation, outcome, attribution, { error });
    }
  }

  #end(
    operation: OpenOperation,
    outcome: Outcome,
    attribution: Attribution,
    unkept?: { readonly error: unknown },
  ): void {
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
    this.operations.remove(operation);
    this.state = {
      ...this.state,
      last: finished,
      pruneAt: earlier(
        this.state.pruneAt,
        goesAt(this.base.retention, { outcome: outcome.kind, part: operation.part, at: this.base.now }),
      ),
    };
    const { requestId } = operation;
    this.finished.push({ operation: finished, outcome, requestId, ...(unkept && { settleError: unkept.error }) });
    const rules = rulesOf(this.base.kinds, operation.kind);
    if (unkept !== undefined || rules?.settle === undefined) return;
    const resource = this.#view(partsToSettle(rules, operation), rules.open === "all" ? this.operations.waiting() : []);
    this.apply(rules.settle(resource, operation, outcome), { ...attribution, cause: seq });
  }

  /** J4: the result of a step, once. */
  recordStep(operation: OpenOperation, name: string, result: Json, attribution: Attribution): void {
    if (operation.steps.length >= limits.stepsOfAnOperation) {
      throw new JournalError("too-large", `an operation has at most ${limits.stepsOfAnOperation} steps`);
    }
    const seq = this.#append("step", { step: name, result }, attribution, operation.id);
    const steps: OpenOperation["steps"] = [...operation.steps, [name, seq]];
    this.operations.replace({ ...withoutPoll(operation, name), steps, failures: 0 });
  }

  /**
   * J5: the operation goes on when the first of these is over. An entry tells of each time that it begins to wait for, and none of a poll
   * that has seen nothing yet: it may look for days, and what is kept does not grow with it. `goesOn`: something was recorded since it began
   * to wait, so that there may be more to do at once. `looked`: polls that look again then, and say nothing about when.
   */
  sleep(
    operation: OpenOperation,
    waits: readonly Wait[],
    attribution: Attribution,
    { goesOn = false, looked = [] }: { readonly goesOn?: boolean; readonly looked?: readonly Wait[] } = {},
  ): number {
    const { now } = this.base;
    const begun = this.#wait(operation, [...looked, ...waits], attribution);
    const readyAt = goesOn ? now : Math.min(...waits.map((wait) => untilOf(operation, wait, now)));
    this.operations.replace({ ...begun, readyAt, attempts: operation.attempts + 1, failures: 0 });
    this.#isQuiet = true;
    return readyAt;
  }

  /** J5: the operation is tried again at a later time, which is no failure. `waits`: what it has begun to wait for beside that (J6). */
  postpone(
    operation: OpenOperation,
    until: number,
    reason: string,
    attribution: Attribution,
    waits: readonly Wait[] = [],
  ): number {
    const readyAt = nextAttemptAt(operation, until, this.base.now);
    this.#append("waiting", { until: readyAt, reason }, attribution, operation.id);
    const begun = this.#wait(operation, waits, attribution);
    this.operations.replace({ ...begun, readyAt, attempts: operation.attempts + 1, failures: 0 });
    return readyAt;
  }

  /** An attempt failed; the next one comes at `until`. `waits`: what it has begun to wait for beside that (J6). */
  retry(
    operation: OpenOperation,
    until: number,
    error: string,
    attribution: Attribution,
    waits: readonly Wait[] = [],
  ): number {
    const attempts = operation.attempts + 1;
    const readyAt = nextAttemptAt(operation, until, this.base.now);
    this.#append("retry", { attempt: attempts, error, until: readyAt }, attribution, operation.id);
    const begun = this.#wait(operation, waits, attribution);
    this.operations.replace({
      ...begun,
      readyAt,
      attempts,
      failures: operation.failures + 1,
      lastError: error,
    });
    return readyAt;
  }

  /** The operation with what it has begun to wait for. */
  #wait(operation: OpenOperation, waits: readonly Wait[], attribution: Attribution): OpenOperation {
    const { operation: waiting, began } = withWaits(operation, waits, this.base.now);
    for (const { name, until } of began)
      this.#append("waiting", { until, reason: `waits: ${name}`, wait: name }, attribution, operation.id);
    return withoutHurry(waiting);
  }

  /** What the operation is doing, in the author's words. */
  describe(operation: OpenOperation, description: string, attribution: Attribution): void {
    // Said again at every look of a poll it is still said once.
    if (operation.description === description) return;
    this.#append("described", { description }, attribution, operation.id);
    this.operations.replace({ ...operation, description });
  }

  /** Retention has removed entries. */
  prune(deleted: readonly number[], nextPruneAt: number | null): void {
    this.#append("pruned", { entries: deleted.length }, { actor: journalActor, cause: "retention" }, null);
    this.deleteEntries.push(...deleted);
    const last = this.state.last !== null && deleted.includes(this.state.last.seq) ? null : this.state.last;
    this.state = { ...this.state, pruneAt: nextPruneAt, last };
  }

  /**
   * Ends operations that still wait in parts: they were told to stop, or their time is up. `next`: the earliest deadline of the others.
   * `isAll`: there are no more of them.
   */
  settleQueued(ids: readonly string[], late: Outcome, next: number | null, isAll: boolean): void {
    const { seq, state } = this.base;
    // Before they end: what a settle puts into the queue may have an earlier one.
    this.state = { ...this.state, queuedDeadlineAt: next };
    for (const { id } of this.#needToEnd(ids)) {
      // The end of one may have brought the end of another.
      const operation = this.operations.find(id);
      if (operation === undefined) continue;
      // What was accepted after all others were told to stop is not meant by those: else each bite would drop what came of the one before.
      this.#othersUpTo = operation.cancel === null ? seq : (state.dropping?.upTo ?? seq);
      if (operation.cancel === null) this.settle(operation, late, becauseOf(operation));
      else this.#endDropped(id);
    }
    if (isAll && this.state.dropping === state.dropping) this.#forgetDropping();
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
    const lengths = [this.entries.length, this.accepted.length, this.finished.length, this.#told.length] as const;
    const seen = this.#toldSeen;
    const restoreParts = this.parts.mark();
    return () => {
      this.state = state;
      [this.entries.length, this.accepted.length, this.finished.length, this.#told.length] = lengths;
      this.#toldSeen = seen;
      restoreParts();
    };
  }

  #accept(asked: NewOperation, attribution: Attribution): void {
    checkNewOperation(asked);
    const rules = rulesOf(this.base.kinds, asked.kind);
    if (rules === undefined)
      throw new JournalError("invalid-change", `there is no kind of operation ${JSON.stringify(asked.kind)}`);
    const { state, base } = this;
    if (state.open.length + state.queued >= base.maxOpen) {
      throw new JournalError("queue-full", `the resource has ${base.maxOpen} open operations; no more are accepted`);
    }
    const id = `${base.seq + this.entries.length + 1}-${base.token}`;
    const operation = newOperation(asked, rules, { id, now: base.now, requestId: attribution.requestId ?? null });
    this.#append("accepted", acceptance(operation, asked), attribution, id);
    this.accepted.push(operation);
    this.state = { ...this.state, gone: false };
    this.operations.add(operation, asked.place ?? "back");
  }

  #hold(id: string, held: boolean, attribution: Attribution): void {
    const operation = this.operations.get(id);
    if (operation.held === held) return;
    checkNotCancelled(operation);
    if (held && this.operations.mayHaveStarted(operation)) {
      throw new JournalError("invalid-change", `operation ${id} has started; it cannot be held any more`);
    }
    this.#append(held ? "held" : "released", null, attribution, id);
    this.operations.setHeld(operation, held);
  }

  /**
   * Its waits are over, too: else it would go back to sleep at once. One that is ready waits for nothing but its turn; but if it runs, it may
   * be about to wait again after a look that came too early, and then looks once more.
   */
  #hurry(id: string, attribution: Attribution): void {
    const operation = this.operations.get(id);
    const { now } = this.base;
    if (operation.cancel !== null) return;
    if (operation.readyAt <= now) {
      if (operation.hurried === true || !this.operations.mayHaveStarted(operation)) return;
      this.#append("hurried", null, attribution, id);
      this.operations.replace({ ...operation, hurried: true });
      return;
    }
    this.#append("hurried", null, attribution, id);
    const waits = operation.waits.map(([name, until]) => [name, Math.min(until, now)] as const);
    const polls = operation.polls?.map(([name, until, ...rest]): PollPlace => [name, Math.min(until, now), ...rest]);
    this.operations.replace({ ...operation, readyAt: now, waits, ...(polls && { polls }) });
  }

  #reorder(order: readonly string[], attribution: Attribution): void {
    this.operations.need(order);
    const named = [...new Set(order)].map((id) => this.operations.get(id));
    const started = named.find((operation) => this.operations.mayHaveStarted(operation));
    if (started !== undefined)
      throw new JournalError("invalid-change", `operation ${started.id} has started; it keeps its place`);
    for (const operation of named) checkNotCancelled(operation);
    this.#append("reordered", { order: [...order] }, attribution, null);
    this.operations.putInFront(named);
  }

  /** The same for those that are to end, and answers them. */
  #needToEnd(ids: readonly string[]): readonly OpenOperation[] {
    this.operations.need(ids);
    const operations = ids.flatMap((id) => this.operations.find(id) ?? []);
    this.parts.need(operations.flatMap((operation) => this.#partsToSettle(operation)));
    return operations;
  }

  /** The ids that are meant: those named, or all others that fit and are not of this change. */
  #named(
    ids: readonly string[] | "others" | undefined,
    fits: (operation: OpenOperation) => boolean,
  ): readonly string[] {
    if (ids !== "others") {
      this.operations.need(ids ?? []);
      return ids ?? [];
    }
    const isMeant = ({ id, cancel }: OpenOperation) =>
      cancel === null && !this.accepted.some((accepted) => accepted.id === id);
    return [...this.state.open, ...this.operations.waiting()]
      .filter((operation) => fits(operation) && isMeant(operation))
      .map(({ id }) => id);
  }

  #partsToSettle(operation: OpenOperation): readonly string[] {
    const rules = rulesOf(this.base.kinds, operation.kind);
    return rules?.settle === undefined ? [] : partsToSettle(rules, operation);
  }

  /** The resource before this draft, with all parts that were read. */
  before(): Resource {
    const { key, seq, state, parts } = this.base;
    return viewOf(key, seq, state, parts, this.base);
  }

  #view(parts: readonly string[], behind: readonly OpenOperation[]): Resource {
    this.parts.need(parts);
    const texts = parts.map((id) => [id, this.parts.text(id)] as const);
    return viewOf(this.base.key, this.base.seq + this.entries.length, this.state, new Map(texts), this.base, behind);
  }

  #append(kind: string, payload: Json, attribution: Attribution, operation: string | null): number {
    // Every entry comes by here: to add a member to what was spread would cost more than to write it.
    const { actor, cause, requestId, trace } = attribution;
    const body = toJsonText({ actor, cause, requestId, trace, payload }, limits.jsonBytes, `the ${kind} entry`);
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

/** It stands in the entry, in the state and in the end of the operation. */
function checkReason(reason: string): void {
  if (Buffer.byteLength(reason) <= limits.reasonBytes) return;
  throw new JournalError("too-large", `the reason of a cancellation has more than ${limits.reasonBytes} bytes`);
}

function checkNotCancelled({ id, cancel }: OpenOperation): void {
  if (cancel !== null) throw new JournalError("invalid-change", `operation ${id} was told to stop`);
}
