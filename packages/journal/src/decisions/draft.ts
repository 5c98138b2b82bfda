import { JournalError } from "../errors.js";
import { checkJsonType, type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import { checkEntryKind, checkLabels, checkLane, checkOperationId, checkPartId, checkSpan } from "../names.js";
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
} from "../operation.js";
import type { Resource, ResourceChange } from "../resource.js";
import type { ResourceState } from "../state.js";
import type { NewEntry } from "../store.js";
import { defaultDeadlineMs, type KindRules, type Kinds, rulesOf } from "./kind.js";
import { type Moment, withStates } from "./operation-state.js";
import { mostInRecord, queuePartId, queuePrefix, roomInRecord, windowSize } from "./queue.js";
import { agesOf, goesAt, type Retention } from "./retention.js";
import { inTurn } from "./schedule.js";

/** What a change is made from. Nothing here is an effect: the same values give the same draft. */
export interface DraftBase extends Moment {
  readonly key: string;
  readonly seq: number;
  readonly state: ResourceState;
  /** Texts of parts that were read with the record: id → body, `null` for one that does not exist. */
  readonly parts: ReadonlyMap<string, string | null>;
  /** Makes ids of operations unique over incarnations of a key. */
  readonly token: string;
  readonly kinds: Kinds;
  readonly retention: Retention;
  readonly maxOpen: number;
}

/** Thrown out of a draft that must see parts which were not read: read them and draft again. */
export class NeedsParts {
  readonly ids: readonly string[];
  constructor(ids: readonly string[]) {
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

  constructor(base: DraftBase) {
    this.base = base;
    this.state = base.state;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0;
  }

  /** All that a decision asked for. Cancelled operations end first, so that what is accepted sees their end. */
  apply(change: ResourceChange, attribution: Attribution): void {
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
    for (const asked of change.accept ?? []) this.#accept(asked, attribution);
    for (const id of change.hold ?? []) this.#hold(id, true, attribution);
    for (const id of change.release ?? []) this.#hold(id, false, attribution);
    for (const id of change.hurry ?? []) this.#hurry(id, attribution);
    if (change.order !== undefined) this.#reorder(change.order, attribution);
    if (change.gone !== undefined) this.state = { ...this.state, gone: change.gone };
    // J2: the seq is the version, so a change that brings no entry of its own is one, too.
    const changes = [change.data, change.labels, change.parts, change.gone].some((value) => value !== undefined);
    if (changes && this.entries.length === 0) this.#append("changed", null, attribution, null);
  }

  /** J8. An operation that nobody can be running ends here and now; else its runner is told to stop and ends it. */
  cancel(id: string, reason: string, attribution: Attribution): void {
    const operation = this.state.open.find((open) => open.id === id) ?? this.#takeFromQueue(id);
    if (operation === undefined)
      throw new JournalError("invalid-change", `there is no open operation ${JSON.stringify(id)}`);
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
    this.state = {
      ...this.state,
      open: this.state.open.filter((open) => open.id !== operation.id),
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
    this.#replace({ ...operation, steps: [...operation.steps, [name, seq]], failures: 0 });
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

  /** Brings operations that wait in parts into the record, in their order. */
  refill(waiting: readonly { readonly id: string; readonly body: string }[]): void {
    let room = roomInRecord(this.state.open);
    const taken: OpenOperation[] = [];
    for (const { id, body } of waiting) {
      if (this.deleteParts.has(id)) continue;
      const operation = JSON.parse(body) as OpenOperation;
      if (room <= 0 || this.state.open.length + taken.length >= mostInRecord) break;
      if (!operation.held) room--;
      taken.push(operation);
      this.deleteParts.add(id);
    }
    const queued = this.state.queued - taken.length;
    const queuedDeadlineAt = queued === 0 ? null : this.state.queuedDeadlineAt;
    this.state = { ...this.state, open: [...this.state.open, ...taken], queued, queuedDeadlineAt };
  }

  /** Ends operations that still wait in parts: their time is up. `rest`: the earliest deadline of the others. */
  settleQueued(ids: readonly string[], outcome: Outcome, rest: number | null): void {
    // All that is needed at once: each time that something is missing is a read and a new draft.
    this.#need(ids.flatMap((id) => queuePartId(id) ?? []));
    this.#need(ids.flatMap((id) => this.#partsToSettleQueued(id)));
    for (const id of ids) {
      const operation = this.#takeFromQueue(id);
      if (operation !== undefined) this.settle(operation, outcome, becauseOf(operation));
    }
    this.state = { ...this.state, queuedDeadlineAt: rest };
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
    const payload: Json = { kind: asked.kind, part: asked.part ?? null, mode, input };
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
    };
    this.accepted.push(operation);
    this.#enqueue(operation, asked.place ?? "back");
  }

  #enqueue(operation: OpenOperation, place: "back" | "front"): void {
    const { open, queued, queuedDeadlineAt } = this.state;
    const fits = open.length < mostInRecord;
    if (place === "front") {
      if (!fits)
        throw new JournalError("queue-full", `at most ${mostInRecord} operations are held or put in front of others`);
      this.state = { ...this.state, gone: false, open: open.toSpliced(this.#behindStarted(open), 0, operation) };
    } else if (queued === 0 && roomInRecord(open) > 0 && fits) {
      this.state = { ...this.state, gone: false, open: [...open, operation] };
    } else {
      this.putParts.set(queuePartId(operation) ?? "", JSON.stringify(operation));
      const deadlineAt = earlier(queuedDeadlineAt, operation.deadlineAt);
      this.state = { ...this.state, gone: false, queued: queued + 1, queuedDeadlineAt: deadlineAt };
    }
  }

  #hold(id: string, held: boolean, attribution: Attribution): void {
    const operation = this.#open(id);
    if (operation.held === held) return;
    if (held && this.#mayHaveStarted(operation)) {
      throw new JournalError("invalid-change", `operation ${id} has started; it cannot be held any more`);
    }
    this.#append(held ? "held" : "released", null, attribution, id);
    this.#replace({ ...operation, held });
    if (held) return;
    // J7: what has started while it stood aside goes first, or both would run at once.
    const others = this.state.open.filter((open) => open.id !== id);
    const place = Math.max(
      this.state.open.findIndex((open) => open.id === id),
      this.#behindStarted(others),
    );
    this.state = { ...this.state, open: others.toSpliced(place, 0, { ...operation, held }) };
  }

  /** Its waits are over, too: else it would go back to sleep at once. One that is ready waits for nothing but its turn. */
  #hurry(id: string, attribution: Attribution): void {
    const operation = this.#open(id);
    const { now } = this.base;
    if (operation.readyAt <= now) return;
    this.#append("hurried", null, attribution, id);
    const waits = operation.waits.map(([name, until]) => [name, Math.min(until, now)] as const);
    this.#replace({ ...operation, readyAt: now, waits });
  }

  /** The first place behind all that may have started. */
  #behindStarted(open: readonly OpenOperation[]): number {
    return open.findLastIndex((other) => this.#mayHaveStarted(other)) + 1;
  }

  #reorder(order: readonly string[], attribution: Attribution): void {
    const named = [...new Set(order)].map((id) => this.#open(id));
    const started = named.find((operation) => this.#mayHaveStarted(operation));
    if (started !== undefined)
      throw new JournalError("invalid-change", `operation ${started.id} has started; it keeps its place`);
    const first = this.state.open.filter((operation) => this.#mayHaveStarted(operation));
    const rest = this.state.open.filter((operation) => !first.includes(operation) && !named.includes(operation));
    this.#append("reordered", { order: [...order] }, attribution, null);
    this.state = { ...this.state, open: [...first, ...named, ...rest] };
  }

  #mayHaveStarted(operation: OpenOperation): boolean {
    if (operation.attempts > 0 || operation.steps.length > 0) return true;
    return this.base.leased && inTurn(this.base.state.open).some(({ id }) => id === operation.id);
  }

  #open(id: string): OpenOperation {
    const operation = this.state.open.find((open) => open.id === id);
    if (operation === undefined) {
      throw new JournalError(
        "invalid-change",
        `${JSON.stringify(id)} is not among the first ${windowSize} open operations`,
      );
    }
    return operation;
  }

  /** An operation that still waits in a part, taken out of it: it is about to end. */
  #takeFromQueue(id: string): OpenOperation | undefined {
    const partId = this.state.queued > 0 ? queuePartId(id) : undefined;
    if (partId === undefined) return undefined;
    const body = this.#partText(partId);
    const operation = body === null ? undefined : (JSON.parse(body) as OpenOperation);
    if (operation?.id !== id) return undefined;
    this.deleteParts.add(partId);
    this.state = { ...this.state, queued: this.state.queued - 1 };
    return operation;
  }

  #replace(operation: OpenOperation): void {
    this.state = { ...this.state, open: this.state.open.map((open) => (open.id === operation.id ? operation : open)) };
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
    if (this.deleteParts.has(id)) return null;
    const body = this.putParts.get(id) ?? this.base.parts.get(id);
    if (body === undefined) throw new NeedsParts([id]);
    return body;
  }

  #partsToSettleQueued(id: string): readonly string[] {
    const body = this.base.parts.get(queuePartId(id) ?? "");
    if (body == null) return [];
    const operation = JSON.parse(body) as OpenOperation;
    return partsToSettle(rulesOf(this.base.kinds, operation.kind) ?? {}, operation);
  }

  #need(ids: readonly string[]): void {
    const known = (id: string) => this.putParts.has(id) || this.deleteParts.has(id) || this.base.parts.has(id);
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

/** The resource as decisions see it. */
export function viewOf(
  key: string,
  seq: number,
  state: ResourceState,
  parts: ReadonlyMap<string, string | null>,
  moment: Moment,
): Resource {
  const values = new Map<string, Json>();
  for (const [id, body] of parts) {
    if (body !== null && !id.startsWith(queuePrefix)) values.set(id, JSON.parse(body) as Json);
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
      open ??= withStates(state.open, moment);
      return open;
    },
    queued,
    last,
    running: moment.leased,
  };
}

export function partsToSettle(rules: KindRules, operation: Pick<OpenOperation, "part">): readonly string[] {
  return operation.part === null ? (rules.reads ?? []) : [...(rules.reads ?? []), operation.part];
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}
