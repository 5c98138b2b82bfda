import type { Operation, Step } from "../../src/engine/operation-kind.js";
import type { Interrupted } from "../../src/errors.js";
import type { OpenOperation, Outcome } from "../../src/operation.js";
import type { ResourceState } from "../../src/state.js";
import type { Change, Store, StoredEntry, StoredRecord } from "../../src/store.js";
import type { StoreCall } from "../../src/testing/index.js";
import type { Known, Ledger } from "./ledger.js";
import type { Process } from "./process.js";
import { Broken, must, type Story } from "./story.js";

/** One run of an operation's function, as seen from outside. */
export interface Running {
  readonly known: Known;
  readonly process: Process;
  readonly operation: Operation;
  readonly epoch: number;
  /** Its lease has gone to another one, or was given back: whatever it does does not count. */
  fenced: boolean;
  over: boolean;
}

/**
 * Stands at the store and inside every step, sees all that happens there, and holds it against what was promised. It knows nothing of
 * how the engine works.
 */
export class Witness {
  readonly running = new Set<Running>();
  broken: Broken | undefined;
  readonly #store: Store;
  readonly #ledger: Ledger;
  readonly #story: Story;
  readonly #now: () => number;
  #effects = 0;

  constructor(store: Store, ledger: Ledger, story: Story, now: () => number) {
    this.#store = store;
    this.#ledger = ledger;
    this.#story = story;
    this.#now = now;
  }

  /** Runs a check whose failure must not be swallowed by whoever called. */
  check(look: () => void): void {
    try {
      look();
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      this.broken ??= error;
    }
  }

  // --- at the store ---

  /** The memory store does its work before it answers, so what is read right before and after a call is of that very moment. */
  async apply(process: Process, call: StoreCall, go: () => Promise<unknown>): Promise<unknown> {
    if (!changes.has(call.method)) return go();
    const everything = { after: null, limit: 1_000 };
    const before = this.#store.find(everything);
    const answer = go();
    const after = this.#store.find(everything);
    answer.catch(() => undefined);
    const now = this.#now();
    const old = new Map((await before).map((record) => [record.key, record]));
    for (const record of await after) {
      const previous = old.get(record.key);
      if (previous === record) continue;
      this.check(() => this.#changed(process, call, previous, record, now));
    }
    return answer;
  }

  #changed(process: Process, call: StoreCall, old: StoredRecord | undefined, record: StoredRecord, now: number): void {
    const state = stateOf(record);
    this.#tell(process, call, record);
    this.#leaseChanged(process, call, old, record, now);
    this.#isLookedAt(record, state, now);
    if (call.method !== "commit") return;
    const change = call.args[0] as Change;
    if (old?.seq === record.seq) {
      if (isMoved(old, record)) return;
      must(process.owners.has(old.lease?.owner ?? "") && record.epoch === old.epoch + 1, () => {
        return `J3: ${process} changed ${record.key} without a word and without a lease`;
      });
      return;
    }
    this.#writtenByRunner(process, change, old, now);
    this.#orderKept(change, old === undefined ? undefined : stateOf(old), state);
  }

  #tell(process: Process, { method, args }: StoreCall, { key, epoch, lease }: StoredRecord): void {
    if (method === "renew") return;
    const [change] = args as [Change];
    const quiet = (change.entries ?? []).every(
      ({ operation }) => this.#knownOf(key, operation ?? "", change)?.asked.quiet ?? false,
    );
    if (method === "commit" && quiet) return;
    const what =
      method === "commit" ? `commits "${change.entries.map(({ kind }) => kind).join(", ")}" on` : `${method}s`;
    const held = lease === null ? "no lease" : `lease until ${at(lease.until)}, epoch ${epoch}`;
    this.#story.saw(
      `${process} ${what.length > 100 ? `${what.slice(0, 60)}…` : what} ${key} at ${at(this.#now())}: ${held}`,
    );
  }

  /** J3: a lease goes to another one only when it has run out or its holder is gone. */
  #leaseChanged(
    process: Process,
    call: StoreCall,
    old: StoredRecord | undefined,
    record: StoredRecord,
    now: number,
  ): void {
    const lease = old?.lease ?? null;
    if (old === undefined || lease === null) return;
    // Also under a new epoch: who takes up its own lease, which had run out, goes on.
    if (record.lease?.owner === lease.owner) return;
    const own = process.owners.has(lease.owner);
    const live = lease.until > now;
    must(own || !live || call.method === "reap", () => {
      return `J3: ${process} took ${record.key} although ${this.#holder(lease.owner)} holds a lease on it until ${at(lease.until)}`;
    });
    for (const running of this.running) {
      if (running.over || running.operation.key !== record.key || !running.process.owners.has(lease.owner)) continue;
      if (running.fenced) continue;
      must(
        !own || !live || call.method === "reap" || running.operation.signal.aborted || running.process !== process,
        () => {
          return `J3: ${process} gave its lease on ${record.key} back while "${running.known.asked.name}" was running there`;
        },
      );
      running.fenced = true;
    }
  }

  /** J5, J6: what can go on has a time at which someone looks at it. */
  #isLookedAt(record: StoredRecord, state: ResourceState, now: number): void {
    const turn = inTurn(state.open);
    const ready = Math.min(...turn.map((operation) => (operation.cancel === null ? operation.readyAt : 0)));
    if (ready === Number.POSITIVE_INFINITY) return;
    const latest = Math.max(ready, now, record.lease?.until ?? 0);
    must(record.dueAt !== null && record.dueAt <= latest, () => {
      const what = turn.map((operation) => this.#nameOf(record.key, operation.id)).join(", ");
      return `J5: nobody will look at ${record.key} in time for ${what}: it is due ${record.dueAt === null ? "never" : `at ${at(record.dueAt)}`} instead of ${at(latest)}`;
    });
  }

  /** J3: only the holder of the lease records what an attempt has to say, and only what its own steps returned. */
  #writtenByRunner(process: Process, change: Change, old: StoredRecord | undefined, now: number): void {
    for (const { kind, body, operation } of change.entries) {
      if (!ofRunner.has(kind)) continue;
      const name = this.#nameOf(change.key, operation ?? "");
      must(old?.lease !== null && process.owners.has(old?.lease?.owner ?? ""), () => {
        return `J3: ${process} recorded a "${kind}" of "${name}" without holding the lease on ${change.key} (${at(now)})`;
      });
      if (kind !== "step") continue;
      const { result } = (JSON.parse(body) as { payload: { result: { by: string } } }).payload;
      must(result.by === process.label, () => {
        return `J3: ${process} recorded a step of "${name}" that ${result.by} had run`;
      });
    }
  }

  /** J7: nothing changes places but what was asked to, and what has started keeps its place. */
  #orderKept(change: Change, before: ResourceState | undefined, after: ResourceState): void {
    const old = (before?.open ?? []).map(({ id }) => id);
    const order = after.open.map(({ id }) => id);
    const reordered = change.entries.find(({ kind }) => kind === "reordered");
    const stayed = old.filter((id) => order.includes(id));
    const nowStands = order.filter((id) => stayed.includes(id));
    const names = (ids: readonly string[]) => ids.map((id) => this.#nameOf(change.key, id, change)).join(", ");
    const released = change.entries.filter(({ kind }) => kind === "released").map(({ operation }) => operation ?? "");
    const unmoved = (ids: readonly string[]) => ids.filter((id) => !released.includes(id)).join();
    if (reordered === undefined) {
      must(unmoved(stayed) === unmoved(nowStands), () => {
        return `J7: the order on ${change.key} went from ${names(stayed)} to ${names(nowStands)} without being asked to`;
      });
    } else {
      const { order: asked } = (JSON.parse(reordered.body) as { payload: { order: string[] } }).payload;
      // Also those that waited in parts, and have a place in the record now; one that has none stands behind it.
      const stands = order.filter((id) => stayed.includes(id) || asked.includes(id));
      const named = asked.filter((id) => stands.includes(id));
      const first = stands.filter(
        (id) => !named.includes(id) && stands.indexOf(id) < Math.min(...named.map((a) => stands.indexOf(a))),
      );
      const rest = stayed.filter((id) => !asked.includes(id) && !first.includes(id));
      must([...first, ...named, ...rest].join() === stands.join(), () => {
        return `J7: ${change.key} was to be in the order ${names(asked)}, and is now in the order ${names(stands)}`;
      });
    }
    for (const [index, id] of order.entries()) {
      if (old.includes(id) || before === undefined) continue;
      const known = this.#knownOf(change.key, id, change);
      const behind = order.slice(index + 1).filter((other) => old.includes(other));
      if (known === undefined) continue;
      if (known.asked.place === "back") {
        must(
          // A held one comes back from where it waited to the place that it would have.
          behind.length === 0 || after.queued > 0 || after.open[index]?.held === true,
          () => `J7: "${known.asked.name}" came before ${names(behind)}, which were there first`,
        );
      } else {
        const started = behind.find((other) => this.#hasStarted(other, before));
        must(
          started === undefined,
          () => `J7: "${known.asked.name}" was put before "${names([started ?? ""])}", which has started`,
        );
      }
    }
  }

  #hasStarted(id: string, state: ResourceState): boolean {
    const operation = state.open.find((open) => open.id === id);
    if (operation !== undefined && (operation.attempts > 0 || operation.steps.length > 0)) return true;
    return [...this.running].some((running) => running.operation.id === id && isAlive(running));
  }

  // --- in the steps ---

  async begins(process: Process, operation: Operation): Promise<Running> {
    const { name } = operation.input as { name: string };
    const known = this.#ledger.get(name);
    const entries = this.#store.entries(operation.key, { kind: "after", after: 0, limit: 10_000 });
    const found = await this.#store.read(operation.key, []);
    const written = await entries;
    const record = found?.record;
    const running: Running = { known, process, operation, epoch: record?.epoch ?? 0, fenced: false, over: false };
    const holds = record !== undefined && this.#holds(process, record);
    if (!known.asked.quiet)
      this.#story.saw(`${process} begins attempt ${operation.attempt} of "${name}"${holds ? "" : ", without a lease"}`);
    known.id ??= operation.id;
    this.check(() => {
      must(known.id === operation.id, () => `J1: "${name}" was accepted twice, as ${known.id} and as ${operation.id}`);
      if (!holds) {
        running.fenced = true;
        return;
      }
      const state = stateOf(record);
      const open = state.open.find(({ id }) => id === operation.id);
      must(open !== undefined, () => `J4: "${name}" has ended, and runs again`);
      must(!open.held, () => `J7: "${name}" is held, and runs`);
      const notBefore = timeOf(written, operation.id, known);
      must(notBefore <= this.#now(), () => {
        return `J6: "${name}" runs at ${at(this.#now())}, before its time (${at(notBefore)})`;
      });
      must(inTurn(state.open).includes(open), () => {
        return `J7: "${name}" runs although it is not its turn: ${state.open
          .slice(0, 5)
          .map((other) => this.#orderWord(operation.key, other))
          .join(", ")}`;
      });
      this.#runsAlone(running, state);
    });
    this.running.add(running);
    return running;
  }

  /** J3 and J7: not twice at a time, and an exclusive one beside no other. */
  #runsAlone(running: Running, state: ResourceState): void {
    const { known, operation, process } = running;
    for (const other of this.running) {
      if (other === running || other.operation.key !== operation.key || !isAlive(other)) continue;
      // One that was told to stop and did not was given up.
      const ended = !state.open.some(({ id }) => id === other.operation.id);
      if (ended && other.operation.signal.aborted) continue;
      if (other.operation.id === operation.id) {
        must(false, () => `J3: ${process} runs "${known.asked.name}" while ${other.process} does, too`);
      }
      must(known.asked.mode === "shared" && other.known.asked.mode === "shared", () => {
        return `J7: ${known.asked.mode} "${known.asked.name}" runs beside ${other.known.asked.mode} "${other.known.asked.name}"`;
      });
    }
  }

  /** A step is about to have its effect. Answers the value that it will return. */
  async effect(running: Running, name: string, step: Step): Promise<{ readonly value: string; readonly by: string }> {
    const { known, process, operation } = running;
    const number = ++this.#effects;
    const entries = this.#store.entries(operation.key, { kind: "after", after: 0, limit: 10_000 });
    const found = this.#store.read(operation.key, []);
    const now = this.#now();
    const record = (await found)?.record;
    const done = stepsOf(await entries, operation.id);
    const what = `step ${name} of "${known.asked.name}"`;
    this.check(() => {
      must(!done.has(name), () => `J4: ${process} runs ${what} again, which is recorded already`);
      must(record !== undefined && this.#holds(process, record), () => {
        const holder = record?.lease === null || record === undefined ? "nobody" : this.#holder(record.lease.owner);
        return `J3: ${process} runs ${what} at ${at(now)} without a lease: ${holder} has one${record?.lease ? ` until ${at(record.lease.until)}` : ""}`;
      });
      const usual = known.idempotencyKeys.get(name) ?? step.idempotencyKey;
      must(usual === step.idempotencyKey, () => `J4: ${what} was given another idempotency key than before`);
      known.idempotencyKeys.set(name, usual);
    });
    return { value: `${known.asked.name}.${name} #${number}`, by: process.label };
  }

  /** A poll looks. It sees something at the third look. J6: not before the time that the record has for it, and none is lost or counted twice. */
  async looks(
    running: Running,
    name: string,
    looks: number,
  ): Promise<{ readonly value: string; readonly by: string } | undefined> {
    const { known, process, operation } = running;
    const found = this.#store.read(operation.key, []);
    const now = this.#now();
    const record = (await found)?.record;
    const open = record === undefined ? undefined : stateOf(record).open.find(({ id }) => id === operation.id);
    const place = open?.polls?.find(([poll]) => poll === name);
    this.check(() => {
      if (!isAlive(running)) return;
      must((place?.[2] ?? 0) === looks, () => {
        return `J6: poll ${name} of "${known.asked.name}" looks after ${looks} looks on ${process}, and ${place?.[2] ?? 0} are kept`;
      });
      must(now >= (place?.[1] ?? 0), () => {
        return `J6: poll ${name} of "${known.asked.name}" was to look at ${at(place?.[1] ?? 0)}, and does on ${process} at ${at(now)}`;
      });
    });
    if (looks < 2) return undefined;
    const idempotencyKey = "a poll has none";
    const { signal, attempt } = operation;
    const seen = await this.effect(running, name, { idempotencyKey, signal, attempt });
    this.gave(running, name, seen.value);
    return seen;
  }

  gave(running: Running, name: string, value: string): void {
    const { given } = running.known;
    given.set(name, (given.get(name) ?? new Set()).add(value));
  }

  died(process: Process): void {
    for (const running of this.running) if (running.process === process) this.running.delete(running);
  }

  // --- in the journals ---

  async checkJournals(calm: boolean): Promise<void> {
    for (const record of await this.#store.find({ after: null, limit: 1_000 })) {
      const entries = await this.#store.entries(record.key, { kind: "after", after: 0, limit: 10_000 });
      this.check(() => this.#checkJournal(record, entries, calm));
    }
    this.check(() => {
      if (this.broken !== undefined) throw this.broken;
    });
    for (const known of this.#ledger.all()) await this.#checkKept(known);
  }

  #checkJournal(record: StoredRecord, entries: readonly StoredEntry[], calm: boolean): void {
    const { key } = record;
    const state = stateOf(record);
    entries.forEach(({ seq }, index) => {
      must(seq === index + 1, () => `J2: the entries of ${key} have a gap: ${index + 1} is missing`);
    });
    must(record.seq === entries.length, () => `J2: ${key} is at ${record.seq} and has ${entries.length} entries`);
    const names = new Map<string, string>();
    const cancelled = new Set<string>();
    const settled = new Set<string>();
    for (const entry of entries) {
      const { operation } = entry;
      const { payload } = JSON.parse(entry.body) as { payload: unknown };
      if (entry.kind === "accepted" && operation !== null) {
        const { name } = (payload as { input: { name: string } }).input;
        must(!names.has(name), () => `J1: "${name}" was accepted twice, as ${names.get(name)} and as ${operation}`);
        names.set(name, operation);
      }
      if (operation === null) continue;
      const known = this.#byId(entries, operation);
      const { name } = known.asked;
      must(!settled.has(operation) || entry.kind === "cancel requested", () => {
        return `J2: "${name}" has ended, and a "${entry.kind}" of it was recorded after that`;
      });
      if (entry.kind === "cancel requested") cancelled.add(operation);
      else if (cancelled.has(operation) && (ofRunner.has(entry.kind) || entry.kind === "settled")) {
        const outcome = entry.kind === "settled" ? (payload as Outcome).kind : undefined;
        must(
          outcome === "cancelled",
          () => `J8: "${name}" was cancelled; after that its journal says ${outcome ?? entry.kind}`,
        );
      }
      if (entry.kind === "settled") {
        settled.add(operation);
        this.#checkOutcome(known, payload as Outcome, entries, entry, cancelled.has(operation));
      }
    }
    const ended = (state.data as { ended?: number } | null)?.ended ?? 0;
    must(
      ended === settled.size,
      () => `J2: ${settled.size} operations of ${key} have ended, and its fold counts ${ended}`,
    );
    const open = names.size - settled.size;
    must(state.open.length + state.queued === open, () => {
      return `J1: ${open} operations of ${key} have not ended, and its record has ${state.open.length} and ${state.queued} queued`;
    });
    if (calm) this.#nothingLiesAround(record, state);
  }

  /** With an engine that nothing disturbs, what can run runs, and what was cancelled has been told. */
  #nothingLiesAround(record: StoredRecord, state: ResourceState): void {
    const now = this.#now();
    for (const operation of inTurn(state.open)) {
      const running = [...this.running].filter((one) => one.operation.id === operation.id && isAlive(one));
      const name = this.#nameOf(record.key, operation.id);
      if (operation.cancel !== null) {
        must(
          running.every((one) => one.operation.signal.aborted),
          () => `J8: "${name}" was cancelled, and its signal is not aborted`,
        );
      } else if (operation.readyAt <= now) {
        must(running.length > 0, () => {
          const due = record.dueAt === null ? "never" : at(record.dueAt);
          return `J5: "${name}" lies around: it could run since ${at(operation.readyAt)}, now is ${at(now)}, and ${record.key} is due ${due}, leased ${record.lease === null ? "by nobody" : `by ${this.#holder(record.lease.owner)} until ${at(record.lease.until)}`}`;
        });
      }
    }
  }

  #checkOutcome(
    known: Known,
    outcome: Outcome,
    entries: readonly StoredEntry[],
    entry: StoredEntry,
    wasCancelled: boolean,
  ): void {
    const { name, deadlineMs, script } = known.asked;
    const { operation } = entry;
    switch (outcome.kind) {
      case "cancelled":
        must(wasCancelled, () => `J8: "${name}" ended as cancelled, and nobody asked for that`);
        return;
      case "failed": {
        const { message, class: why } = outcome.error;
        if (why === "permanent") {
          must(
            known.permanent.has(message),
            () => `"${name}" ended as failed with "${message}", which none of its steps threw`,
          );
        } else {
          must(why === "deadline", () => `"${name}" ended as failed (${why}): ${message}`);
          must(
            deadlineMs !== null && entry.at >= known.askedAt + deadlineMs,
            () => `J6: "${name}" ended before its deadline because of it`,
          );
        }
        return;
      }
      case "succeeded": {
        const recorded = [...stepsOf(entries, operation ?? "")];
        const steps = script.flatMap((part, index) => (part === "sleep" ? [] : [`s${index + 1}`]));
        must(recorded.map(([step]) => step).join() === steps.join(), () => {
          return `J4: "${name}" succeeded with the steps ${recorded.map(([step]) => step).join(", ") || "none"} recorded instead of ${steps.join(", ")}`;
        });
        for (const [step, value] of recorded) {
          must(
            known.given.get(step)?.has(value) ?? false,
            () => `J4: step ${step} of "${name}" was recorded as "${value}", which it never returned`,
          );
        }
        const told = (outcome.result as { values: string[] }).values;
        must(told.join() === recorded.map(([, value]) => value).join(), () => {
          return `J4: "${name}" saw ${told.join(", ")}, and ${recorded.map(([, value]) => value).join(", ")} are recorded`;
        });
      }
    }
  }

  /** J1. */
  async #checkKept(known: Known): Promise<void> {
    if (known.answer !== "accepted" || known.id === undefined) return;
    const { key, name } = known.asked;
    const [entry] = await this.#store.entries(key, { kind: "numbers", seqs: [Number(known.id.split("-")[0])] });
    this.check(() => {
      must(
        entry?.kind === "accepted" && entry.operation === known.id,
        () => `J1: "${name}" was accepted, and its journal does not have it`,
      );
    });
  }

  #holds(process: Process, record: StoredRecord): boolean {
    return record.lease !== null && process.owners.has(record.lease.owner) && record.lease.until > this.#now();
  }

  #holder(owner: string): string {
    const holder = [...this.running].find(({ process }) => process.owners.has(owner))?.process;
    return holder === undefined ? `owner ${owner}` : String(holder);
  }

  #orderWord(key: string, operation: OpenOperation): string {
    return `"${this.#nameOf(key, operation.id)}" (${operation.mode}${operation.held ? ", held" : ""})`;
  }

  #nameOf(key: string, id: string, change?: Change): string {
    return this.#knownOf(key, id, change)?.asked.name ?? id;
  }

  #knownOf(key: string, id: string, change?: Change): Known | undefined {
    const accepted = change?.entries.find(({ kind, operation }) => kind === "accepted" && operation === id);
    if (accepted !== undefined) {
      const { payload } = JSON.parse(accepted.body) as { payload: { input: { name: string } } };
      return this.#ledger.get(payload.input.name);
    }
    return this.#ledger.all().find((known) => known.id === id && known.asked.key === key);
  }

  #byId(entries: readonly StoredEntry[], id: string): Known {
    const accepted = entries.find(({ kind, operation }) => kind === "accepted" && operation === id);
    must(accepted !== undefined, () => `J1: the journal speaks of ${id}, which it never accepted`);
    const { payload } = JSON.parse(accepted.body) as { payload: { input: { name: string } } };
    const known = this.#ledger.get(payload.input.name);
    known.id ??= id;
    return known;
  }
}

/** Nobody runs it, and nothing of it has changed but the lane in which it is found. */
function isMoved(old: StoredRecord, record: StoredRecord): boolean {
  const { heldEpoch, ...before } = stateOf(old);
  const { heldEpoch: heldAfter, ...after } = stateOf(record);
  const isSame = JSON.stringify(before) === JSON.stringify(after) && heldAfter === heldEpoch + 1;
  return (
    isSame &&
    old.lease === null &&
    record.lease === null &&
    old.dueAt === record.dueAt &&
    record.epoch === old.epoch + 1
  );
}

const changes: ReadonlySet<string> = new Set(["commit", "claim", "renew", "release", "reap"]);
const ofRunner: ReadonlySet<string> = new Set(["step", "waiting", "retry", "described"]);

/** Still runs somewhere, and what it does counts. */
function isAlive({ over, fenced, process, operation: { signal } }: Running): boolean {
  const letGo = signal.aborted && (signal.reason as Interrupted).why === "lease-lost";
  return !over && !fenced && !letGo && process.phase !== "dead";
}

/** J7, in the model's own words: nobody before it but held ones, or all of them shared. */
function inTurn(open: readonly OpenOperation[]): readonly OpenOperation[] {
  const waiting = open.filter(({ held }) => !held);
  return waiting.filter((operation, index) =>
    waiting.slice(0, index).every((earlier) => earlier.mode === "shared" && operation.mode === "shared"),
  );
}

function stepsOf(entries: readonly StoredEntry[], operation: string): Map<string, string> {
  const steps = new Map<string, string>();
  for (const entry of entries) {
    if (entry.kind !== "step" || entry.operation !== operation) continue;
    const { step, result } = (JSON.parse(entry.body) as { payload: { step: string; result: { value: string } } })
      .payload;
    must(!steps.has(step), () => `J4: step ${step} of ${operation} is recorded twice`);
    steps.set(step, result.value);
  }
  return steps;
}

/** J6: when an operation may go on, from what was asked and what its journal says; not from what the engine remembers of it. */
function timeOf(entries: readonly StoredEntry[], operation: string, { asked, askedAt }: Known): number {
  const waits = entries.filter((entry) => entry.operation === operation && ["retry", "waiting"].includes(entry.kind));
  const last = waits.at(-1);
  if (last === undefined) return askedAt + asked.delayMs;
  const { until, wait } = (JSON.parse(last.body) as { payload: { until: number; wait?: string } }).payload;
  must(wait === undefined || until >= askedAt + sleepMs, () => {
    return `J6: "${asked.name}" was to sleep for ${sleepMs} ms, and sleeps until ${at(until)}`;
  });
  return until;
}

/** How long the operations of the model sleep. */
export const sleepMs = 10_000;

function stateOf(record: StoredRecord): ResourceState {
  return JSON.parse(record.state) as ResourceState;
}

/** Times in stories count from the beginning of the run. */
export const startMs = Date.UTC(2030, 0, 1);

export function at(time: number): string {
  return `${(time - startMs) / 1_000} s`;
}
