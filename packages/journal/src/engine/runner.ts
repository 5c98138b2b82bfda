import type { Around } from "../around.js";
import { decideRetry, messageOf } from "../decisions/decide-retry.js";
import type { Draft } from "../decisions/draft.js";
import { partsToSettle, rulesOf } from "../decisions/kind.js";
import type { Retention } from "../decisions/retention.js";
import { hasOverdue, isPast, nextLook, nextLookBeside, runnable } from "../decisions/schedule.js";
import { Interrupted, JournalError, Permanent } from "../errors.js";
import type { Json } from "../json.js";
import { type CrashPoint, factsOf, type Observe } from "../observe.js";
import { type Attribution, becauseOf, type OpenOperation, type Outcome } from "../operation.js";
import type { Page, Part, PartPage } from "../page.js";
import type { Reader } from "../reader.js";
import type { Decide, Resource, ResourceChange, Transacted } from "../resource.js";
import type { ResourceState } from "../state.js";
import type { Store } from "../store.js";
import { Attempt, type AttemptEnd, type AttemptHost } from "./attempt.js";
import type { Cell, Cells } from "./cell.js";
import { type Effect, effectPart, outlivedNotes } from "./effects.js";
import type { Lanes } from "./lanes.js";
import type { Leases } from "./leases.js";
import { LostRunners, mayBePoisonous } from "./lost-runners.js";
import type { EffectOptions, OperationKind, Step, TransactEffectOptions } from "./operation-kind.js";
import { type Origin, originFrom, originSeqs, resultsFrom } from "./origin.js";
import { Overdue, pastDeadline } from "./overdue.js";
import { Pruner } from "./pruner.js";
import type { StoreTime } from "./time.js";
import { Unrecorded } from "./unrecorded.js";
import type { Seen, Tenure, WriteOptions, Writer } from "./writer.js";

export type OperationKinds = Readonly<Record<string, OperationKind>>;

/** Carries a decision about another resource out, with a note that tells whose effect it is. */
export type TransactEffect = <Result>(
  key: string,
  decide: Decide<Result>,
  options: TransactEffectOptions & { readonly by: Attribution },
  effect: Effect,
) => Promise<Transacted<Result>>;

export interface RunnerPorts {
  readonly store: Store;
  readonly writer: Writer;
  readonly reader: Reader;
  readonly cells: Cells;
  readonly leases: Leases;
  readonly lanes: Lanes;
  readonly time: StoreTime;
  readonly kinds: OperationKinds;
  readonly retention: Retention;
  readonly random: () => number;
  readonly observe: Observe;
  readonly around: Around;
  readonly transact: TransactEffect;
  readonly reached: (point: CrashPoint) => void;
  readonly after: (ms: number, wake: () => void) => () => void;
  /** How long a function that was told to stop may take to do so before it is given up. */
  readonly graceMs: number;
  /** Whether new attempts may begin. */
  readonly mayBegin: () => boolean;
  /** Whether what has to be recorded is still to be tried while the store does not answer. */
  readonly mayRecord: () => boolean;
  /** A commit of the runner's has brought operations to their end. */
  readonly settled: (draft: Draft) => void;
  /** Someone has to look for due work by then. */
  readonly lookBy: (at: number | null) => void;
  /** Makes sure that a place in the lane still is one, before something begins in it; if not, `lanes` knows. */
  readonly confirmPlace: (lane: string) => Promise<void> | undefined;
  /** A place in a lane has become free. */
  readonly freed: (lane: string) => void;
  /** Keeps work in sight until it is over, with the cell in use; errors of it are dealt with there. */
  readonly follow: (doing: string, cell: Cell, work: () => Promise<void>) => void;
}

/** An operation of a kind that this process does not know is left to others for so long. */
const unknownKindMs = 10_000;
/** A resource for which nothing could be done is looked at again after so long. */
const failedTendMs = 10_000;
const noOrigins: ReadonlyMap<string, Origin> = new Map();

/** Runs the operations of held resources: run → record → retry or settle. What it knows is in the record; it can be killed anywhere. */
export class Runner implements AttemptHost {
  readonly #ports: RunnerPorts;
  /** Cells with work that found no room, and for how many operations in which lanes. */
  readonly #hungry = new Map<Cell, ReadonlyMap<string, number>>();
  readonly #unrecorded: Unrecorded;
  readonly #pruner: Pruner;
  readonly #overdue: Overdue;
  readonly #lostRunners: LostRunners;

  constructor(ports: RunnerPorts) {
    this.#ports = ports;
    this.#unrecorded = new Unrecorded(ports.random);
    const write = (cell: Cell, change: (draft: Draft) => void) => this.#write(cell, null, change);
    this.#pruner = new Pruner({ ...ports, write });
    this.#overdue = new Overdue({ ...ports, write });
    this.#lostRunners = new LostRunners({ ...ports, write });
  }

  /**
   * Does all that can be done now for a resource that is held. Within the cell's turn. `place`: a lane in which a place is taken for
   * it already. `origins`: what is known of its operations without reading.
   */
  async tend(cell: Cell, place: string | null = null, origins: ReadonlyMap<string, Origin> = noOrigins): Promise<void> {
    const { leases, lanes, mayBegin, freed, lookBy } = this.#ports;
    let spare = place;
    try {
      if (!leases.isHeld(cell) && !(await leases.stands(cell))) return;
      this.#interruptEnded(cell);
      // Asked first: most resources need none of it, and five answers that there is nothing to do are not free.
      if (this.#isUntidy(cell)) await this.#tidy(cell);
      if (cell.held === undefined || cell.snapshot === null || cell.snapshot === undefined) return;
      const { state } = cell.snapshot;
      let hungryFor: Map<string, number> | undefined;
      const now = this.now();
      const notBefore = this.#unrecorded.until(cell.key);
      for (const operation of mayBegin() && notBefore <= now ? runnable(state, now) : []) {
        if (cell.attempts.has(operation.id) || isExcluded(operation, cell.attempts.values())) continue;
        if (spare === operation.lane) spare = null;
        else if (!lanes.tryEnter(operation.lane)) {
          hungryFor ??= new Map();
          hungryFor.set(operation.lane, (hungryFor.get(operation.lane) ?? 0) + 1);
          continue;
        }
        this.#begin(cell, operation, origins.get(operation.id), state);
      }
      // Without anything that runs it is given back, and claimed again by whoever has room.
      if (cell.attempts.size > 0 && hungryFor !== undefined) this.#hungry.set(cell, hungryFor);
      else this.#hungry.delete(cell);
      if (cell.attempts.size > 0) return this.#wakeFor(cell, now, notBefore);
      if (hungryFor !== undefined) await this.#lostRunners.deny(cell);
      const next = nextLook(state);
      lookBy(await leases.giveBack(cell, next === null ? null : Math.max(next, notBefore)));
    } catch (error) {
      // Nothing runs under the lease: held, it would be renewed for ever and nobody would try again.
      if (cell.attempts.size === 0) lookBy(await leases.giveBack(cell, this.now() + failedTendMs).catch(() => null));
      // Where not even that came through, the lease runs out.
      lookBy(this.now() + leases.leaseMs);
      throw error;
    } finally {
      if (spare !== null) freed(spare);
    }
  }

  #isUntidy({ snapshot }: Cell): boolean {
    if (!snapshot) return false;
    const { state, record } = snapshot;
    const now = this.now();
    const isDue = isPast(state.queuedDeadlineAt, now) || isPast(state.pruneAt, now) || hasOverdue(state, now);
    return isDue || mayBePoisonous(record, state);
  }

  /** What is due on a resource besides running, before anything runs. */
  async #tidy(cell: Cell): Promise<void> {
    await this.#overdue.end(cell);
    await this.#overdue.endQueued(cell);
    await this.#overdue.end(cell);
    await this.#pruner.pruneIfDue(cell);
    await this.#lostRunners.backOffIfPoisonous(cell);
  }

  /** How many operations of resources that are held wait for a place in the lane. */
  awaited(lane: string): number {
    let awaited = 0;
    for (const [cell, wanted] of this.#hungry) if (cell.held !== undefined) awaited += wanted.get(lane) ?? 0;
    return awaited;
  }

  /** A resource that waits for a place which there is now, if there is one. It is then no longer waiting. */
  takeHungry(): Cell | undefined {
    for (const [cell, wanted] of this.#hungry) {
      if (cell.held !== undefined && ![...wanted.keys()].some((lane) => this.#ports.lanes.hasRoom(lane))) continue;
      this.#hungry.delete(cell);
      if (cell.held !== undefined) return cell;
    }
    return undefined;
  }

  /** What is due on the resource while something runs on it: a retry beside it, a deadline behind it. */
  #wakeFor(cell: Cell, now: number, notBefore: number): void {
    cell.alarm?.();
    cell.alarm = undefined;
    const next = cell.snapshot ? nextLookBeside(cell.snapshot.state, cell.attempts, now) : null;
    const at = notBefore > now ? Math.min(next ?? notBefore, notBefore) : next;
    if (at === null) return;
    cell.alarm = this.#ports.after(Math.max(0, at - this.now()), () => {
      cell.alarm = undefined;
      if (cell.held !== undefined) this.#ports.follow("tend", cell, () => cell.serial(() => this.tend(cell)));
    });
  }

  // --- what attempts ask for ---

  get observe(): Observe {
    return this.#ports.observe;
  }

  get around(): Around {
    return this.#ports.around;
  }

  reached(point: CrashPoint): void {
    this.#ports.reached(point);
  }

  now(): number {
    return this.#ports.time.now();
  }

  after(ms: number, wake: () => void): () => void {
    return this.#ports.after(ms, wake);
  }

  confirmLease(attempt: Attempt): Promise<void> | undefined {
    return this.#ports.leases.confirm(this.#cellOf(attempt), attempt, () => ({
      mayGoOn: () => this.#mayGoOn(attempt),
    }));
  }

  async recordStep(attempt: Attempt, name: string, result: Json): Promise<void> {
    const said = attempt.takeDescription();
    await this.#record(attempt, "goes on", (draft, operation) => {
      draft.recordStep(describeFirst(draft, operation, attempt, said), name, result, attempt.attribution);
    });
  }

  async describe(attempt: Attempt, description: string): Promise<void> {
    await this.#record(attempt, "goes on", (draft, operation) =>
      draft.describe(operation, description, attempt.attribution),
    );
  }

  async change(attempt: Attempt, decide: (resource: Resource) => ResourceChange, wanted: EffectOptions): Promise<void> {
    let cancels = false;
    const write = (draft: Draft, { id }: OpenOperation) => {
      const change = decide(draft.before());
      draft.apply(change, attempt.attribution, id);
      cancels = change.cancel !== undefined;
    };
    await this.#record(attempt, "goes on", write, wanted);
    // What runs beside it may have been cancelled.
    const cell = this.#ports.cells.get(attempt.key);
    if (cancels && cell !== undefined) this.#ports.follow("tend", cell, () => cell.serial(() => this.tend(cell)));
  }

  async readSteps(attempt: Attempt, steps: OpenOperation["steps"]): Promise<ReadonlyMap<string, Json>> {
    const { store, writer } = this.#ports;
    const seqs = steps.map(([, seq]) => seq);
    const entries = await writer.persist("read", () => store.entries(attempt.key, { kind: "numbers", seqs }));
    return resultsFrom(entries, steps);
  }

  async readParts(attempt: Attempt, ids: readonly string[]): Promise<ReadonlyMap<string, Json>> {
    const found = await this.#ports.writer.persist("read", () => this.#ports.store.read(attempt.key, ids));
    return new Map(Array.from(found?.parts ?? [], ([id, body]) => [id, JSON.parse(body) as Json]));
  }

  async transact<T>(
    attempt: Attempt,
    { idempotencyKey }: Step,
    key: string,
    decide: Decide<T>,
    options: TransactEffectOptions,
  ): Promise<Transacted<T>> {
    const of = { key: attempt.key, operation: attempt.operation.id };
    if (key === of.key) throw new Permanent("an operation changes its own resource with operation.change");
    const part = effectPart(idempotencyKey);
    const effect: Effect = {
      part,
      of,
      outlived: await outlivedNotes(this.#ports, key, part),
      confirm: async () => {
        // Within the turn of the other resource: two that change each other's would wait for each other's turn for ever.
        await this.#ports.leases.confirmWithoutTurn(this.#cellOf(attempt), { mayGoOn: () => this.#mayGoOn(attempt) });
        if (attempt.interrupted !== undefined) throw attempt.interrupted;
      },
    };
    // The number of an entry would be one of another journal.
    const by = { ...attempt.attribution, cause: `operation ${of.operation} of ${of.key}` };
    return this.#ports.transact(key, decide, { ...options, by }, effect);
  }

  readPartsUnder({ key }: Attempt, prefix: string, page: PartPage): Promise<Page<Part>> {
    return this.#ports.writer.persist("read", () => this.#ports.reader.parts(key, prefix, page));
  }

  // --- what is due on a resource besides running ---

  /** What runs here although it has ended in the journal is told so; nothing that it would exclude begins before it has stopped. */
  #interruptEnded({ snapshot, attempts }: Cell): void {
    if (!snapshot) return;
    for (const [id, attempt] of attempts) {
      if (snapshot.state.open.some((operation) => operation.id === id)) continue;
      attempt.interrupt(new Interrupted("cancelled", "the operation was ended elsewhere"));
    }
  }

  // --- run ---

  /** A place in the operation's lane is taken. */
  #begin(cell: Cell, operation: OpenOperation, origin: Origin | undefined, { data, labels }: ResourceState): void {
    const attempt = new Attempt(this, factsOf(cell.key, operation, labels), operation);
    cell.attempts.set(operation.id, attempt);
    this.#ports.follow("run", cell, async () => {
      let isReadable = true;
      try {
        await this.#attempt(cell, attempt, origin, data);
      } catch (error) {
        if (saysUnrecorded(error)) this.#unrecorded.failed(cell.key, this.now());
        isReadable = !isUnreadable(error);
        throw error;
      } finally {
        if (cell.attempts.get(operation.id) === attempt) cell.attempts.delete(operation.id);
        this.#ports.freed(operation.lane);
        // What cannot be read is about to be set aside by whoever follows this: looked at before that, it would be tried and told once more.
        if (isReadable && cell.held !== undefined)
          this.#ports.follow("tend", cell, () => cell.serial(() => this.tend(cell)));
      }
    });
  }

  async #attempt(cell: Cell, attempt: Attempt, given: Origin | undefined, data: Json): Promise<void> {
    const { operation } = attempt;
    const { store, writer, lanes, kinds, reached, observe, graceMs, mayRecord, confirmPlace } = this.#ports;
    const kind = rulesOf(kinds, operation.kind) as OperationKind | undefined;
    if (kind === undefined) return this.#leaveToOthers(attempt);
    const read = () => store.entries(cell.key, { kind: "numbers", seqs: originSeqs(operation) });
    const origin = given ?? originFrom(await writer.persist("read", read), operation);
    // Between the claim and here the whole process may have stood still: then another one may have run it, and even ended it.
    await this.confirmLease(attempt);
    if (attempt.interrupted?.why === "lease-lost") return;
    // It was given a place before all that. What the place stood on may be another process's by now; then it waits for the next one.
    await confirmPlace(operation.lane);
    if (!lanes.mayBegin(operation.lane)) return;
    reached("before attempt");
    // The own members first: what is added behind a spread costs as much as ten that are copied.
    observe({ kind: "attempt started", attempt: operation.attempts + 1, ...attempt.facts });
    attempt.watchDeadline();
    const end = await attempt.runOrGiveUp(kind, origin, data, ({ why }) =>
      why === "lease-lost" || !mayRecord() ? 0 : graceMs,
    );
    attempt.end();
    if ("givenUp" in end) observe({ kind: "abandoned", ...attempt.facts, why: end.by.why });
    await this.#concludeSurely(attempt, kind, end);
  }

  /** An end that cannot be recorded as it is would lead to the same end again and again: it is recorded as a failure instead. */
  async #concludeSurely(attempt: Attempt, kind: OperationKind, end: AttemptEnd): Promise<void> {
    try {
      await this.#conclude(attempt, kind, end);
    } catch (error) {
      const { code = undefined } = error instanceof JournalError ? error : {};
      if (code === undefined || !unrecordable.has(code)) throw error;
      const failure = {
        message: `the end of the attempt could not be recorded: ${messageOf(error)}`,
        class: "unkeepable",
      } as const;
      await this.#settle(attempt, { kind: "failed", error: failure });
    }
  }

  async #leaveToOthers(attempt: Attempt): Promise<void> {
    const { operation } = attempt;
    this.observe({ kind: "unknown kind", ...attempt.facts });
    const reason = `this process does not know the kind "${operation.kind}"`;
    await this.#record(attempt, "ends", (draft, open) =>
      draft.postpone(open, this.now() + unknownKindMs, reason, becauseOf(open)),
    );
  }

  async #conclude(attempt: Attempt, kind: OperationKind, end: AttemptEnd): Promise<void> {
    switch (end.kind) {
      case "returned":
        return this.#settle(attempt, { kind: "succeeded", result: end.result });
      case "asleep":
        return this.#sleep(attempt, end);
      case "interrupted":
        if (end.by.why === "deadline") return this.#settle(attempt, pastDeadline(attempt.operation));
        if (end.by.why === "cancelled") return this.#settle(attempt, { kind: "cancelled", reason: end.by.message });
        return;
      case "threw":
        return this.#judge(attempt, kind, end);
    }
  }

  async #settle(attempt: Attempt, outcome: Outcome): Promise<void> {
    this.reached("before operation is settled");
    const said = attempt.takeDescription();
    const rules = rulesOf(this.#ports.kinds, attempt.operation.kind);
    // Read beforehand: a draft that finds them missing is made twice.
    const parts = rules?.settle === undefined ? [] : partsToSettle(rules, attempt.operation);
    const settle = (draft: Draft, open: OpenOperation) =>
      draft.settle(describeFirst(draft, open, attempt, said), outcome, attempt.attribution);
    await this.#record(attempt, "ends", settle, { parts });
    this.reached("after operation is settled");
  }

  async #sleep(attempt: Attempt, end: AttemptEnd & { readonly kind: "asleep" }): Promise<void> {
    const { waits } = end;
    this.reached("before wait is recorded");
    const said = attempt.takeDescription();
    const until = await this.#record(attempt, "ends", (draft, open) =>
      draft.sleep(describeFirst(draft, open, attempt, said), waits, attempt.attribution, end),
    );
    if (until !== undefined) this.observe({ kind: "waiting", until, ...attempt.facts });
    this.reached("after wait is recorded");
  }

  /** The class of the error is the decision. */
  async #judge(
    attempt: Attempt,
    kind: OperationKind,
    { error, waits }: AttemptEnd & { readonly kind: "threw" },
  ): Promise<void> {
    if (error instanceof JournalError && error.code === "lease-lost") return;
    const { attribution } = attempt;
    // As it is now: a step that this attempt has recorded has ended the row of failures.
    const operation =
      this.#cellOf(attempt).snapshot?.state.open.find(({ id }) => id === attempt.operation.id) ?? attempt.operation;
    const decision = decideRetry(error, operation, kind, this.#ports.random);
    if (decision.kind === "fail") return this.#settle(attempt, { kind: "failed", error: decision.error });
    const wanted = Math.min(this.now() + decision.afterMs, operation.deadlineAt ?? Number.MAX_SAFE_INTEGER);
    this.reached("before retry is recorded");
    const said = attempt.takeDescription();
    const until = await this.#record(attempt, "ends", (draft, open) => {
      const described = describeFirst(draft, open, attempt, said);
      return decision.kind === "retry"
        ? draft.retry(described, wanted, decision.error, attribution, waits)
        : draft.postpone(described, wanted, decision.reason, attribution, waits);
    });
    if (until !== undefined && decision.kind === "wait") this.observe({ kind: "waiting", ...attempt.facts, until });
    if (until !== undefined && decision.kind === "retry")
      this.observe({ kind: "retrying", ...attempt.facts, attempt: operation.attempts + 1, until, error });
    this.reached("after retry is recorded");
  }

  // --- record ---

  /**
   * Writes what an attempt has to say, in the cell's turn. J3: if the lease is not ours any more, nothing is written. J8: if the
   * operation was cancelled meanwhile, that is what is written at the attempt's end, and nothing before. Answers what `write` answered,
   * undefined if something else was written.
   */
  async #record<T>(
    attempt: Attempt,
    then: "goes on" | "ends",
    write: (draft: Draft, operation: OpenOperation) => T,
    wanted: EffectOptions = {},
  ): Promise<T | undefined> {
    const cell = this.#cellOf(attempt);
    let answer: T | undefined;
    const record = (draft: Draft) => {
      // While it waited for its turn, the lease may have been lost and taken anew, by this very process.
      if (cell.attempts.get(attempt.operation.id) !== attempt) throw new JournalError("lease-lost");
      const open = draft.state.open.find(({ id }) => id === attempt.operation.id);
      if (open === undefined) throw new JournalError("lease-lost", "the operation was ended by another engine");
      // The answer was lost to a commit that has recorded the end of the attempt already.
      if (then === "ends" && open.attempts > attempt.operation.attempts) return;
      if (open.cancel === null) {
        answer = write(draft, open);
        return;
      }
      answer = undefined;
      if (then === "ends") {
        return draft.settle(open, { kind: "cancelled", reason: open.cancel.reason }, open.cancel.attribution);
      }
      const reason = new Interrupted("cancelled", open.cancel.reason);
      attempt.interrupt(reason);
      throw reason;
    };
    const options = { ...wanted, mayGoOn: () => this.#mayGoOn(attempt) };
    await cell.serial(() => this.#write(cell, then === "ends" ? attempt : null, record, options));
    return answer;
  }

  /** A change by the runner. If an attempt ends with it, the lease goes with the same commit, unless there is more to do. */
  async #write(
    cell: Cell,
    ending: Attempt | null,
    write: (draft: Draft) => void,
    options: WriteOptions = { mayGoOn: () => (this.#ports.mayRecord() ? undefined : new JournalError("stopped")) },
  ): Promise<void> {
    const { writer, leases, settled, lookBy, follow } = this.#ports;
    const known = cell.snapshot?.record.seq;
    let othersWrote = false;
    let frees = false;
    const written = await writer.change(
      cell,
      (newDraft, seen) => {
        othersWrote ||= known !== undefined && seen.snapshot?.record.seq !== known;
        if (cell.held === undefined || !leases.isOurs(cell, seen.snapshot?.record)) {
          if (seen.mayBeMade && frees) {
            // It was given back, if that came to be, and others may have it already, and rightly so: that says nothing of this engine.
            leases.drop(cell);
            lookBy(seen.snapshot?.record.dueAt ?? null);
          } else leases.taken(cell);
          throw new JournalError("lease-lost");
        }
        const draft = newDraft();
        write(draft);
        draft.heldBy(cell.held.epoch);
        const tenure = () => {
          frees = !this.#hasMore(cell, draft, ending);
          return frees ? this.#free(draft, seen) : leases.hold(seen);
        };
        return { result: draft, draft, tenure };
      },
      options,
    );
    this.#unrecorded.recorded(cell.key);
    settled(written);
    // The commit's answer was lost: what it led to has to be read.
    if (cell.snapshot === undefined) await writer.refresh(cell, options);
    const record = cell.snapshot?.record;
    if (cell.held === undefined) return;
    if (record !== undefined && leases.isOurs(cell, record)) {
      cell.held.until = record.lease?.until ?? 0;
      // This commit has put the due time, by which others called for attention, back to the end of the lease.
      if (othersWrote) follow("tend", cell, () => cell.serial(() => this.tend(cell)));
    } else if (frees) {
      // If the answer was lost, others may have it already, and rightly so.
      leases.drop(cell);
      lookBy(record?.dueAt ?? null);
    } else {
      // The commit counted, but while its answer was on the way another engine has taken over.
      leases.taken(cell);
    }
  }

  #hasMore(cell: Cell, draft: Draft, ending: Attempt | null): boolean {
    // Without an attempt that ends, this is one change of several; who makes them gives the lease back when done.
    if (ending === null) return true;
    for (const attempt of cell.attempts.values()) if (attempt !== ending) return true;
    const now = this.now();
    return this.#ports.mayBegin() && (runnable(draft.state, now).length > 0 || hasOverdue(draft.state, now));
  }

  #free(draft: Draft, { now }: Seen): Tenure {
    const dueAt = nextLook(draft.state);
    return { lease: null, raisesEpoch: false, dueAt, wake: !this.#ports.mayBegin() && dueAt !== null && dueAt <= now };
  }

  #cellOf(attempt: Attempt): Cell {
    const cell = this.#ports.cells.get(attempt.key);
    if (cell?.attempts.get(attempt.operation.id) !== attempt) throw new JournalError("lease-lost");
    return cell;
  }

  /** While the store does not answer, what has to be recorded is kept and tried again, unless nobody wants it any more. */
  #mayGoOn(attempt: Attempt): JournalError | undefined {
    if (!this.#ports.mayRecord()) return new JournalError("stopped");
    const why = attempt.interrupted?.why;
    return why === "lease-lost" || why === "stopping" ? new JournalError("lease-lost") : undefined;
  }
}

/** A description that is not written yet goes along with what is. It is taken once, because a draft may be made more than once. */
function describeFirst(draft: Draft, open: OpenOperation, attempt: Attempt, description: string | null): OpenOperation {
  if (description === null) return open;
  draft.describe(open, description, attempt.attribution);
  return { ...open, description };
}

/** J7: nothing begins beside what it excludes, whatever the record says of whose turn it is: what has ended there may still be running. */
function isExcluded({ mode }: OpenOperation, attempts: Iterable<Attempt>): boolean {
  for (const { operation } of attempts) if (mode === "exclusive" || operation.mode === "exclusive") return true;
  return false;
}

/** What is stored is damaged: its resource is set aside. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof SyntaxError || (error instanceof JournalError && error.code === "unreadable");
}

/** An attempt went wrong, and not even that could be recorded. Not so if another engine goes on with it, or it is about to be set aside. */
function saysUnrecorded(error: unknown): boolean {
  if (error instanceof Interrupted) return false;
  return !(error instanceof JournalError && ["lease-lost", "stopped", "unreadable"].includes(error.code));
}

/** The journal's own errors that say so of a value: a store that does not answer, or a lease that is lost, is another matter. */
const unrecordable: ReadonlySet<string> = new Set(["invalid-change", "not-serialisable", "too-large", "queue-full"]);
