import type { Operation } from "../../src/engine/operation-kind.js";
import { Permanent, RetryLater } from "../../src/errors.js";
import { openJournal } from "../../src/open-journal.js";
import { memoryStore } from "../../src/stores/memory.js";
import { manualClock } from "../../src/testing/index.js";
import { type Asked, type Known, Ledger } from "./ledger.js";
import { clockOf, Process, type Slot } from "./process.js";
import { must, Story } from "./story.js";
import { Wire } from "./wire.js";
import { at, type Running, sleepMs, startMs, Witness } from "./witness.js";

export interface WorldOptions {
  /** "one process": nobody else writes to the store, so nobody looks for work of others. */
  readonly kind: "one process" | "several processes";
  /** Room for everything, or for two operations at a time, one of a lane. */
  readonly room: "wide" | "tight";
  /** Chance for back-off. */
  readonly random: () => number;
}

/** A step that has begun and waits for the test's word. */
export interface Gate {
  readonly running: Running;
  readonly step: string;
  finish(): void;
  fail(how: "error" | "later" | "permanent"): void;
}

export const leaseMs = 30_000;
/** So long after the last disturbance everything that can run runs. */
const calmAfterMs = leaseMs + 10_000;
const by = { actor: { type: "user", subject: "model" } } as const;

/** Processes with journals on one store, a clock that the test moves, and operations whose steps wait for the test's word. */
export class World {
  readonly options: WorldOptions;
  readonly clock = manualClock(startMs);
  readonly store = memoryStore({ clock: this.clock.wallMs });
  readonly story = new Story();
  readonly ledger = new Ledger();
  readonly witness = new Witness(this.store, this.ledger, this.story, this.clock.wallMs);
  readonly gates: Gate[] = [];
  readonly #processes = new Map<Slot, Process>();
  readonly #lives = new Map<Slot, number>();
  #disturbedAt = startMs;
  #tokens = 0;
  #letGo = false;

  constructor(options: WorldOptions) {
    this.options = options;
  }

  get slots(): readonly Slot[] {
    return this.options.kind === "one process" ? [1] : [1, 2, 3];
  }

  process(slot: Slot): Process | undefined {
    const process = this.#processes.get(slot);
    return process?.phase === "dead" ? undefined : process;
  }

  /** Processes that are there, whatever state they are in. */
  get processes(): readonly Process[] {
    return this.slots.flatMap((slot) => this.process(slot) ?? []);
  }

  async start(slot: Slot): Promise<void> {
    const { clock, store, options } = this;
    const life = (this.#lives.get(slot) ?? 0) + 1;
    this.#lives.set(slot, life);
    const several = options.kind === "several processes";
    const wire: Wire = new Wire({
      store,
      pace: { leaseMs, pollMs: several ? 5_000 : null, reapMs: several ? 10_000 : null },
      troubled: () => this.disturbed(),
      apply: (call, go) => {
        if (call.method === "attend") {
          process.owners.add(call.args[0] as string);
          process.lost = call.args[1] as () => void;
        }
        this.witness.check(() =>
          must(!process.closed, () => `${process} has closed the store, and calls ${call.method}`),
        );
        if (call.method === "close") process.closed = true;
        return this.witness.apply(process, call, go);
      },
    });
    const process: Process = new Process(slot, life, wire);
    this.#processes.set(slot, process);
    this.disturbed();
    const journal = await openJournal({
      store: wire.store,
      kinds: {
        work: {
          run: (operation) => this.#run(process, operation),
          lane: (input) =>
            options.room === "wide" ? "work" : `lane ${(input as { name: string }).name.charCodeAt(0) % 2}`,
          settle: (resource, { brief }, outcome) => ({
            data: { ended: ((resource.data as { ended?: number } | null)?.ended ?? 0) + 1 },
            ...(brief === "drops" &&
              outcome.kind === "succeeded" && { cancel: { others: true, reason: "dropped" } as const }),
          }),
        },
      },
      ...(options.room === "tight" && { concurrency: 2, laneConcurrency: 1 }),
      clock: clockOf(clock, wire),
      random: options.random,
      token: () => `t${(++this.#tokens).toString(36)}`,
    });
    process.journal = journal;
    if (slot !== 3) await journal.start();
    if (process.phase === "starting") process.phase = "up";
    await this.settle();
  }

  /** What a SIGKILL leaves. `seen`: the store knows at once, as a database does whose session broke. */
  async crash(process: Process, seen: boolean): Promise<void> {
    process.phase = "dead";
    process.wire.cut();
    this.witness.died(process);
    this.#dropGates(({ running }) => running.process === process);
    this.disturbed();
    void process.journal.kill();
    if (seen) for (const owner of process.owners) await this.store.leave(owner);
    await this.settle();
  }

  async stop(process: Process): Promise<void> {
    process.phase = "stopping";
    const stopped = process.journal.stop({ drainMs: 10_000 });
    const gone = () => {
      if (process.phase === "dead") return;
      process.phase = "dead";
      this.disturbed();
      this.story.saw(`${process} has stopped`);
    };
    stopped.then(gone, gone);
    await this.settle();
  }

  /** Something happened to a process or its wire: for a while not everything has to be prompt. */
  disturbed(): void {
    this.#disturbedAt = this.clock.wallMs();
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Lets everything take its course that waits for nothing but its turn. */
  async settle(): Promise<void> {
    await this.clock.advance(0);
  }

  /** After every command. */
  async check(): Promise<void> {
    if (this.processes.some(({ phase, wire }) => wire.disturbed || phase === "stopping" || phase === "starting"))
      this.disturbed();
    const engines = this.processes.filter(({ slot, phase }) => slot !== 3 && phase === "up");
    const calm =
      engines.length > 0 && this.options.room === "wide" && this.clock.wallMs() - this.#disturbedAt >= calmAfterMs;
    await this.witness.checkJournals(calm);
    if (this.witness.broken !== undefined) throw this.witness.broken;
  }

  // --- what callers do ---

  accept(process: Process, asked: readonly Asked[], replaces?: Known): void {
    const known = asked.map((one) => this.ledger.add(one, this.clock.wallMs()));
    const [{ key }] = asked as [Asked];
    const accept = asked.map(({ name, script, mode, place, held, delayMs, deadlineMs, drops = false }) => ({
      kind: "work",
      input: { name, script },
      ...(drops && { brief: "drops" }),
      mode,
      place,
      held,
      delayMs,
      deadlineMs,
    }));
    const cancel = replaces?.id === undefined ? [] : [{ operation: replaces.id, reason: "replaced" }];
    const names = asked.length > 3 ? `${asked.length} operations` : asked.map(({ name }) => `"${name}"`).join(", ");
    process.journal
      .transact(
        key,
        (resource) => {
          const isOpen = resource?.open.some(({ id }) => id === replaces?.id) ?? false;
          return { result: isOpen, change: { accept, cancel: isOpen ? cancel : [] } };
        },
        { by },
      )
      .then(
        ({ accepted, result }) => {
          if (process.phase === "dead") return;
          if (asked.length <= 3) this.story.saw(`${names} is accepted`);
          if (result && replaces !== undefined) replaces.cancelled = true;
          this.witness.check(() =>
            must(accepted.length === known.length, () => `J1: ${names} was accepted, as nothing`),
          );
          known.forEach((one, index) => {
            one.answer = "accepted";
            one.id ??= accepted[index]?.id;
          });
        },
        (error: Error) => {
          this.story.saw(`the caller of ${names} hears: ${error.message}`);
          for (const one of known) one.answer = "unsure";
        },
      );
  }

  cancel(process: Process, known: Known): void {
    const { key, name } = known.asked;
    process.journal.cancel(key, known.id ?? "", "not wanted any more", by).then(
      (asked) => {
        if (process.phase === "dead") return;
        this.story.saw(`"${name}" ${asked ? "is being cancelled" : "has ended already"}`);
        if (asked) known.cancelled = true;
      },
      (error: Error) => this.story.saw(`the caller hears: ${error.message}`),
    );
  }

  /** Holding, releasing and re-ordering; refusals are answers, too. */
  arrange(process: Process, key: string, change: { hold?: string[]; release?: string[]; order?: string[] }): void {
    process.journal
      .transact(key, (resource) => (resource === undefined ? { result: null } : { result: null, change }), { by })
      .catch((error: Error) => this.story.saw(`the caller hears: ${error.message}`));
  }

  // --- what operations do ---

  async #run(process: Process, operation: Operation): Promise<unknown> {
    const running = await this.witness.begins(process, operation);
    const { script, name, describes, obedient } = running.known.asked;
    try {
      const values: string[] = [];
      for (const [index, part] of script.entries()) {
        const step = `s${index + 1}`;
        if (describes) operation.describe(`${name} is at ${step}`);
        if (part === "sleep") await operation.sleep(step, sleepMs);
        else if (part === "poll") {
          const look = (looks: number) => this.witness.looks(running, step, looks);
          const seen = await operation.poll(step, ({ looks }) => look(looks), { everyMs: sleepMs });
          values.push(seen.value);
        } else {
          const result = await operation.step(step, async (given) => {
            const promised = await this.witness.effect(running, step, given);
            return this.#gate(running, step, promised, obedient);
          });
          values.push(result.value);
        }
      }
      return { values };
    } finally {
      running.over = true;
      this.#dropGates((gate) => gate.running === running);
    }
  }

  #gate(
    running: Running,
    step: string,
    result: { readonly value: string; readonly by: string },
    obedient: boolean,
  ): Promise<{ readonly value: string; readonly by: string }> {
    const { known, process, operation } = running;
    return new Promise((resolve, reject) => {
      const gate: Gate = {
        running,
        step,
        finish: () => {
          this.#dropGates((other) => other === gate);
          this.witness.gave(running, step, result.value);
          resolve(result);
        },
        fail: (how) => {
          this.#dropGates((other) => other === gate);
          const message = `${result.value} failed`;
          if (how === "permanent") known.permanent.add(message);
          reject(
            how === "permanent"
              ? new Permanent(message)
              : how === "later"
                ? new RetryLater(message, { afterMs: 5_000 })
                : new Error(message),
          );
        },
      };
      if (this.#letGo) return gate.finish();
      this.gates.push(gate);
      if (!obedient) return;
      const stop = () =>
        process.wire.whenAwake(() => {
          this.#dropGates((other) => other === gate);
          reject(operation.signal.reason as Error);
        });
      if (operation.signal.aborted) stop();
      else operation.signal.addEventListener("abort", stop, { once: true });
    });
  }

  #dropGates(which: (gate: Gate) => boolean): void {
    for (let index = this.gates.length - 1; index >= 0; index--) {
      const gate = this.gates[index];
      if (gate !== undefined && which(gate)) this.gates.splice(index, 1);
    }
  }

  // --- the end ---

  /** Everything is let go: wires are fast, steps succeed at once, what is held is released. Then every operation ends. */
  async end(): Promise<void> {
    this.story.did("everything is let go");
    this.#letGo = true;
    for (const { wire } of this.processes) {
      wire.calmDown();
      wire.thaw();
    }
    for (const gate of [...this.gates]) gate.finish();
    await this.settle();
    for (let waits = 0; this.processes.some(({ phase }) => phase === "stopping"); waits++) {
      must(waits < 10, () => "a process does not stop");
      await this.advance(10_000);
    }
    if (!this.processes.some(({ slot }) => slot !== 3)) await this.start(1);
    for (let waits = 0; ; waits++) {
      await this.#releaseAll();
      await this.check();
      const open = await this.#open();
      if (open.length === 0) break;
      must(waits < 60, () => `J5: ${open.join(", ")} does not end`);
      await this.advance(waits < 5 ? 10_000 : 60_000);
    }
    await this.#checkEnd();
  }

  async #releaseAll(): Promise<void> {
    const [process] = this.processes;
    for (const record of await this.store.find({ after: null, limit: 1_000 })) {
      const { open } = JSON.parse(record.state) as { open: { id: string; held: boolean }[] };
      const release = open.filter(({ held }) => held).map(({ id }) => id);
      if (release.length > 0 && process !== undefined) this.arrange(process, record.key, { release });
    }
    await this.settle();
  }

  async #open(): Promise<string[]> {
    const open: string[] = [];
    for (const known of this.ledger.all()) {
      if (known.id === undefined) continue;
      const [process] = this.processes;
      const status = await process?.journal.operation(known.asked.key, known.id);
      if (status === undefined)
        must(known.answer !== "accepted", () => `J1: "${known.asked.name}" was accepted, and is unknown`);
      if (status?.status === "open") open.push(`"${known.asked.name}"`);
      if (known.cancelled && status?.outcome) {
        must(
          status.status === "cancelled",
          () => `J8: "${known.asked.name}" was cancelled, and ended as ${status.status}`,
        );
      }
    }
    return open;
  }

  /** Nothing is left over: no lease, no place in a lane. */
  async #checkEnd(): Promise<void> {
    await this.advance(calmAfterMs);
    await this.check();
    for (const { key, lease, dueAt } of await this.store.find({ after: null, limit: 1_000 })) {
      must(
        lease === null,
        () =>
          `all of ${key} has ended, and there is a lease on it until ${at(lease?.until ?? 0)} (due ${at(dueAt ?? 0)})`,
      );
    }
    for (const process of this.processes) {
      must(
        process.journal.running === 0,
        () => `${process} has ${process.journal.running} places taken, and nothing runs`,
      );
    }
    for (const process of this.processes) {
      let stopped = false;
      void process.journal.stop().then(() => {
        stopped = true;
      });
      await this.settle();
      must(stopped, () => `${process} has nothing to do, and does not stop`);
    }
  }
}
