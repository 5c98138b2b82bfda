import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { type Around, type AroundAttempt, noAttemptAround } from "../around.js";
import { unshowable } from "../decisions/decide-retry.js";
import { Interrupted, JournalError, Permanent, RetryLater } from "../errors.js";
import { type Json, type Jsonified, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import { listened } from "../listened.js";
import { isSpan } from "../names.js";
import type { CrashPoint, Observe, OperationFacts } from "../observe.js";
import { type Attribution, acceptedSeq, journalActor, type OpenOperation, type Wait } from "../operation.js";
import type { Page, Part, PartPage } from "../page.js";
import type { Decide, Resource, ResourceChange, Transacted } from "../resource.js";
import { AskedWork } from "./asked-work.js";
import type {
  EffectOptions,
  Look,
  Operation,
  OperationKind,
  PollOptions,
  Step,
  StepOptions,
  TransactEffectOptions,
} from "./operation-kind.js";
import { noResults, type Origin } from "./origin.js";

/** What an attempt needs from the engine that runs it. */
export interface AttemptHost {
  readonly observe: Observe;
  readonly around: Around;
  reached(point: CrashPoint): void;
  now(): number;
  after(ms: number, wake: () => void): () => void;
  /** Makes sure that the lease is still ours for a while, before an effect. */
  confirmLease(attempt: Attempt): Promise<void> | undefined;
  recordStep(attempt: Attempt, name: string, result: Json): Promise<void>;
  describe(attempt: Attempt, description: string): Promise<void>;
  change(attempt: Attempt, change: (resource: Resource) => ResourceChange, options: EffectOptions): Promise<void>;
  readSteps(attempt: Attempt, steps: OpenOperation["steps"]): Promise<ReadonlyMap<string, Json>>;
  transact<T>(
    attempt: Attempt,
    step: Step,
    key: string,
    decide: Decide<T>,
    options: TransactEffectOptions,
  ): Promise<Transacted<T>>;
  readPartsUnder(attempt: Attempt, prefix: string, page: PartPage): Promise<Page<Part>>;
  readParts(attempt: Attempt, ids: readonly string[]): Promise<ReadonlyMap<string, Json>>;
}

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly kind: "returned"; readonly result: Json }
  /** `waits`: what went on beside the failure has its times, and they stay. */
  | { readonly kind: "threw"; readonly error: unknown; readonly waits: readonly Wait[] }
  /** `looked`: polls whose look has failed, which the function caught. Since when they look is kept, and nothing waits for them. */
  | {
      readonly kind: "asleep";
      readonly waits: readonly Wait[];
      readonly looked: readonly Wait[];
      readonly goesOn: boolean;
    }
  | { readonly kind: "interrupted"; readonly by: Interrupted };

/** How it ended if nobody waits for its function any more. */
export type GivenUp = AttemptEnd & { readonly kind: "interrupted"; readonly givenUp: true };

/** Thrown through the author's function to end the attempt when it goes to sleep. */
class Asleep extends Error {
  override readonly name = "Asleep";
}

/** A description that changes faster than this is written less often. */
const describeEveryMs = 500;
/** Of a step or wait, in characters. */
const longestName = 200;

/** Shared by all attempts whose function has not asked for anything: nothing is ever put into it. */
const nothingAsked = new AskedWork();
/** Until the attempt runs. */
const noOrigin: Origin = { input: null, attribution: { actor: journalActor }, results: noResults };

/** One try at running one operation, in this process. */
export class Attempt {
  readonly facts: OperationFacts;
  readonly operation: OpenOperation;
  readonly #host: AttemptHost;
  #origin = noOrigin;
  #attribution: Attribution | undefined;
  #data: Json = null;
  #around: AroundAttempt = noAttemptAround;
  #asked = nothingAsked;
  /** Made when someone asks for the signal: most functions never do, and to make one is not free. */
  #controller: AbortController | undefined;
  /** Why what runs must stop: the signal's reason. */
  #stopped: Interrupted | undefined;
  /** Told of that, whether there is a signal or not. */
  #onStop: ((by: Interrupted) => void) | undefined;
  /** As soon as it waits for something, nothing begins any more, and the attempt ends when what is under way has ended. */
  #isAsleep = false;
  #interrupted: Interrupted | undefined;
  #described: string | null = null;
  #describeTimer: (() => void) | undefined;
  readonly #callOff: (() => void)[] = [];
  /** Steps whose work has begun and not ended. */
  #effects = 0;
  #over = false;
  /** Something was recorded beside a wait: what comes after it has not begun, and must not wait as long as that. */
  #goesOn = false;
  /** What kept a step from being recorded. The attempt ends with it, also if the author caught it: a step that is not recorded was not done. */
  #unrecorded: { readonly error: unknown } | undefined;

  constructor(host: AttemptHost, facts: OperationFacts, operation: OpenOperation) {
    this.#host = host;
    this.facts = facts;
    this.operation = operation;
  }

  get key(): string {
    return this.facts.key;
  }

  /** J9: what the attempt records is recorded in the name of who asked for the operation, and because of that request. */
  get attribution(): Attribution {
    this.#attribution ??= attributionOf(this.operation, this.#origin);
    return this.#attribution;
  }

  get interrupted(): Interrupted | undefined {
    return this.#interrupted;
  }

  /** What was described and is not written yet. */
  takeDescription(): string | null {
    const described = this.#described;
    this.#described = null;
    return described;
  }

  /** Runs to its end. If it was told to stop and had its time to do so, it is given up, whatever it still does. */
  runOrGiveUp(
    kind: OperationKind,
    origin: Origin,
    data: Json,
    graceMs: (by: Interrupted) => number,
  ): Promise<AttemptEnd | GivenUp> {
    return new Promise((resolve, reject) => {
      this.#run(kind, origin, data).then(resolve, reject);
      const giveUp = (by: Interrupted) => {
        const ms = graceMs(by);
        const end: GivenUp = { kind: "interrupted", by, givenUp: true };
        if (ms <= 0) resolve(end);
        else this.#callOff.push(this.#host.after(ms, () => resolve(end)));
      };
      if (this.#interrupted !== undefined) giveUp(this.#interrupted);
      else this.#onStop = giveUp;
    });
  }

  /** Interrupts by itself when the deadline comes. */
  watchDeadline(): void {
    const { deadlineAt } = this.operation;
    if (deadlineAt === null) return;
    const watch = () => {
      const left = deadlineAt - this.#host.now();
      if (left <= 0) this.interrupt(new Interrupted("deadline", "the deadline of the operation has passed"));
      else this.#callOff.push(this.#host.after(left, watch));
    };
    watch();
  }

  /** Whether a step is having its effect. One whose result waits to be recorded has had it. */
  get hasEffects(): boolean {
    return this.#effects > 0;
  }

  /** Nothing of it goes on by itself any more. Steps that it does not wait for are told to stop: the next attempt may begin them anew. */
  end(): void {
    const isFirst = !this.#over;
    this.#over = true;
    this.#describeTimer?.();
    if (isFirst && this.#effects > 0)
      this.#stop(new Interrupted("ended", "the attempt has ended without waiting for this step"));
    for (const callOff of this.#callOff) callOff();
  }

  /** J8: aborts the signal at once; nothing that the attempt does from here on is recorded. The first reason stays. */
  interrupt(by: Interrupted): void {
    if (this.#interrupted !== undefined || this.#over) return;
    this.#interrupted = by;
    this.#stop(by);
  }

  get #signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped);
    }
    return this.#controller.signal;
  }

  #stop(by: Interrupted): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = by;
    this.#controller?.abort(by);
    this.#onStop?.(by);
  }

  async #run(kind: OperationKind, origin: Origin, data: Json): Promise<AttemptEnd> {
    this.#origin = origin;
    this.#attribution = undefined;
    this.#data = data;
    const { trace = null } = origin.attribution;
    const around = this.#host.around.attempt({ attempt: this.operation.attempts + 1, trace, ...this.facts });
    this.#around = around;
    const end = await this.#endOf(() => around.run(() => kind.run(this.#facade())));
    around.end(end.kind, end.kind === "threw" ? end.error : undefined);
    return end;
  }

  async #endOf(work: () => Promise<unknown>): Promise<AttemptEnd> {
    try {
      this.#check();
      const returned = await work();
      if (this.#isAsleep) return await this.#asleep();
      if (this.#interrupted !== undefined) return { kind: "interrupted", by: this.#interrupted };
      if (this.#unrecorded !== undefined) return this.#threw(this.#unrecorded.error);
      this.#checkAwaited();
      const text = toJsonText(returned, limits.jsonBytes - 65_536, `the result of ${this.operation.kind}`);
      return { kind: "returned", result: JSON.parse(text) as Json };
    } catch (error) {
      // An author may catch what ends the attempt; that it ended stands here all the same. A failure beside a wait that the function has
      // heard of, and throws, is what it ends with.
      if (this.#isAsleep && !this.#asked.failures.has(error)) return await this.#asleep();
      // A poll that has looked in the same breath gets its next time.
      if (this.#asked.underWay.size > 0) await turn();
      if (this.#interrupted !== undefined) return { kind: "interrupted", by: this.#interrupted };
      return this.#threw(error);
    } finally {
      this.end();
    }
  }

  /**
   * What was begun beside a wait ends before the attempt does, although the function has been left: what was done is recorded, what was
   * seen is not lost, and each poll gets its next time. Else a poll would have them begun anew whenever it looks. A failure among them is
   * the end of the attempt, because nobody is left to hear of it.
   */
  async #asleep(): Promise<AttemptEnd> {
    const ends = await Promise.allSettled(this.#asked.underWay);
    const failed = ends.find((end) => end.status === "rejected" && !isAsleep(end.reason));
    if (failed?.status !== "rejected" && this.#unrecorded === undefined) {
      const [waits, looked] = [[...this.#asked.waits.values()], [...this.#asked.looked.values()]];
      return { kind: "asleep", waits, looked, goesOn: this.#goesOn };
    }
    if (this.#interrupted !== undefined) return { kind: "interrupted", by: this.#interrupted };
    const reason: unknown = failed?.status === "rejected" ? failed.reason : this.#unrecorded?.error;
    return this.#threw(reason);
  }

  #threw(error: unknown): AttemptEnd {
    const { looked, waits } = this.#asked;
    return { kind: "threw", error: lookable(error), waits: [...looked.values(), ...waits.values()] };
  }

  #facade(): Operation {
    const { operation, attribution } = this;
    const signal = () => this.#signal;
    return {
      id: operation.id,
      key: this.key,
      kind: operation.kind,
      part: operation.part,
      input: this.#origin.input,
      attempt: operation.attempts + 1,
      actor: attribution.actor,
      requestId: attribution.requestId ?? null,
      acceptedAt: operation.acceptedAt,
      deadlineAt: operation.deadlineAt,
      get signal() {
        return signal();
      },
      data: this.#data,
      parts: (ids) => heard(this.#host.readParts(this, ids)),
      partsUnder: (prefix, page = {}) => heard(this.#host.readPartsUnder(this, prefix, page)),
      change: (change, options = {}) => {
        const decide = typeof change === "function" ? change : () => change;
        return this.#awaited("a change", "operation.change(…)", this.#host.change(this, decide, options));
      },
      recordedBy: (steps) => heard(this.#host.readSteps(this, steps)),
      recorded: (step) => this.#origin.results.get(step),
      step: <T>(name: string, work: (step: Step) => Promise<T> | T, options?: StepOptions) =>
        // Its type says what JSON makes of the result, and that is what was kept.
        this.#awaited(
          `step ${quoted(name)}`,
          "operation.step(…)",
          this.#begun(this.#step(name, work, options)),
        ) as Promise<Jsonified<T>>,
      transact: <T>(name: string, key: string, decide: Decide<T>, options: TransactEffectOptions = {}) =>
        this.#awaited(
          `transaction ${quoted(name)}`,
          "operation.transact(…)",
          this.#begun(this.#step(name, (step) => this.#host.transact(this, step, key, decide, options))),
        ) as Promise<unknown> as Promise<Transacted<Jsonified<T>>>,
      sleep: (name, ms) =>
        this.#awaited(`wait ${quoted(name)}`, "operation.sleep(…)", this.#begun(this.#sleep(name, ms))),
      poll: <T>(name: string, look: (look: Look) => Promise<T | undefined> | T | undefined, options: PollOptions) =>
        this.#awaited(
          `poll ${quoted(name)}`,
          "operation.poll(…)",
          this.#begun(this.#poll(name, look, options)),
        ) as Promise<Jsonified<T>>,
      describe: (description) => this.#describe(description),
      awaited: (what, call, promise) => this.#awaited(what, call, promise),
    };
  }

  /** As what the function asks for is written down. */
  #asks(): AskedWork {
    if (this.#asked === nothingAsked) this.#asked = new AskedWork();
    return this.#asked;
  }

  #begun<T>(promise: Promise<T>): Promise<T> {
    const { underWay, failures } = this.#asks();
    underWay.add(promise);
    const ended = () => underWay.delete(promise);
    promise.then(ended, (error: unknown) => {
      ended();
      if (!isAsleep(error)) failures.add(error);
    });
    return promise;
  }

  #awaited<T>(what: string, call: string, promise: Promise<T>): Promise<T> {
    const asked = listened(promise);
    this.#asks().promises.set(asked, `${what} was not awaited: write await ${call}`);
    return asked;
  }

  /** Whether it was done when the function returned is chance, and its failure would be lost: that is told the first time, and every time. */
  #checkAwaited(): void {
    for (const [asked, sentence] of this.#asked.promises) if (!asked.isListenedTo) throw new Permanent(sentence);
  }

  async #step(name: string, work: (step: Step) => unknown, options: StepOptions = {}): Promise<Json> {
    this.#use(name);
    const recorded = this.#origin.results.get(name);
    if (recorded !== undefined) return recorded;
    this.#check();
    // Also where there is nothing to wait for: the work of a step never begins within the call that asks for it.
    await this.#host.confirmLease(this);
    this.#checkGoesOn();
    this.#host.reached("before step");
    const started = this.#host.now();
    const { key, operation } = this;
    const signal = () => this.#signal;
    // The key and the signal are made when somebody asks for them: neither is free.
    let idempotencyKey: string | undefined;
    const step: Step = {
      get idempotencyKey() {
        idempotencyKey ??= keyOfStep(key, operation.id, name);
        return idempotencyKey;
      },
      get signal() {
        return signal();
      },
      attempt: operation.attempts + 1,
    };
    const around = this.#around.step(name);
    let kept: Json;
    try {
      const result = await this.#within(
        this.#effect(() => around.run(() => work(step))),
        name,
        options.timeoutMs,
      );
      kept = await this.#keep(name, result);
    } catch (error) {
      around.end(error);
      throw error;
    }
    around.end();
    this.#host.observe({ kind: "step finished", step: name, tookMs: this.#host.now() - started, ...this.facts });
    return kept;
  }

  async #effect<T>(work: () => Promise<T> | T): Promise<T> {
    this.#effects++;
    try {
      return await work();
    } finally {
      this.#effects--;
    }
  }

  async #keep(name: string, result: unknown): Promise<Json> {
    this.#host.reached("after step, before it is recorded");
    this.#checkGoesOn();
    const text = toJsonText(result, limits.jsonBytes - 65_536, `the result of step ${quoted(name)}`);
    // What a later attempt will get is what this one gets, so that a value which JSON changes is noticed now and not after a crash.
    const kept = JSON.parse(text) as Json;
    try {
      await this.#host.recordStep(this, name, kept);
    } catch (error) {
      this.#unrecorded = { error };
      throw error;
    }
    this.#asked.looked.delete(name);
    if (this.#isAsleep) this.#goesOn = true;
    this.#host.reached("after step is recorded");
    return kept;
  }

  async #sleep(name: string, ms: number): Promise<void> {
    this.#use(name);
    if (!isSpan(ms)) throw new Permanent(`cannot sleep for ${ms} milliseconds`);
    this.#check();
    const begun = this.operation.waits.find(([wait]) => wait === name);
    const now = this.#host.now();
    if (begun !== undefined && begun[1] <= now) return;
    return this.#fallAsleep({ kind: "sleep", name, until: Math.ceil(begun?.[1] ?? now + ms) });
  }

  async #poll(name: string, look: (look: Look) => unknown, options: PollOptions): Promise<Json> {
    this.#use(name);
    const recorded = this.#origin.results.get(name);
    if (recorded !== undefined) return recorded;
    this.#check();
    const started = this.#host.now();
    const [, dueAt = started, looks = 0, since = started] = this.operation.polls?.find(([poll]) => poll === name) ?? [];
    if (dueAt > started) return this.#fallAsleep({ kind: "poll", name, until: dueAt, looks, since });
    await this.#host.confirmLease(this);
    this.#checkGoesOn();
    this.#host.reached("before step");
    // Whatever becomes of this look: since when it looks stays.
    this.#asks().looked.set(name, { kind: "poll", name, until: Math.ceil(dueAt), looks, since });
    const seen = await this.#look(name, look, { looks, elapsedMs: started - since }, options);
    if (seen.kind === "something") {
      const kept = await this.#keep(name, seen.result);
      this.#host.observe({ kind: "step finished", step: name, tookMs: this.#host.now() - started, ...this.facts });
      return kept;
    }
    const pauseMs = Math.max(limits.shortestPauseMs, seen.afterMs ?? pauseOf(options, looks + 1));
    const until = Math.ceil(this.#host.now() + pauseMs);
    return this.#fallAsleep({ kind: "poll", name, until, looks: looks + 1, since });
  }

  async #look(
    name: string,
    look: (look: Look) => unknown,
    so: Omit<Look, "signal">,
    { timeoutMs }: PollOptions,
  ): Promise<
    { readonly kind: "something"; readonly result: unknown } | { readonly kind: "nothing"; afterMs?: number }
  > {
    const around = this.#around.step(name);
    const work = () => around.run(() => look({ signal: this.#signal, ...so }));
    try {
      const result = await this.#within(this.#effect(work), name, timeoutMs);
      around.end();
      return result === undefined ? { kind: "nothing" } : { kind: "something", result };
    } catch (error) {
      const isLater = error instanceof RetryLater && isSpan(error.afterMs);
      around.end(isLater ? undefined : error);
      if (!isLater) throw error;
      return { kind: "nothing", afterMs: error.afterMs };
    }
  }

  async #fallAsleep(wait: Wait): Promise<never> {
    this.#asked.looked.delete(wait.name);
    this.#asks().waits.set(wait.name, wait);
    // What the function asks for in the same breath, past its recorded steps, still begins.
    await turn();
    this.#checkGoesOn();
    this.#isAsleep = true;
    throw new Asleep("the operation waits; let this pass");
  }

  #describe(description: string): void {
    if (this.#over || this.#interrupted !== undefined) return;
    this.#described = description.length > 1_000 ? `${description.slice(0, 999)}…` : description;
    this.#describeTimer ??= this.#host.after(describeEveryMs, () => {
      this.#describeTimer = undefined;
      const text = this.takeDescription();
      // If it cannot be written, the next one will be, or the outcome says what there is to say.
      if (text !== null && !this.#over) this.#host.describe(this, text).catch(() => undefined);
    });
  }

  #use(name: string): void {
    if (typeof name !== "string" || name === "" || name.length > longestName) {
      throw new Permanent(`the name of a step or wait is a text of 1 to ${longestName} characters`);
    }
    const { names } = this.#asks();
    if (names.has(name)) {
      throw new JournalError(
        "step-repeated",
        `two steps or waits of one operation are called ${quoted(name)}; give each a name of its own`,
      );
    }
    names.add(name);
  }

  /** Nothing begins any more once the attempt must end, also if the author caught what said so. */
  #check(): void {
    this.#checkGoesOn();
    if (this.#isAsleep) throw new Asleep("the operation waits; let this pass");
  }

  /** What was begun before the attempt went to sleep goes on. */
  #checkGoesOn(): void {
    if (this.#interrupted !== undefined) throw this.#interrupted;
    if (this.#unrecorded !== undefined) throw this.#unrecorded.error;
    if (this.#over) throw new Interrupted("cancelled", "the operation has ended; a step was started and not awaited");
  }

  #within<T>(work: Promise<T>, name: string, timeoutMs: number | undefined): Promise<T> {
    if (timeoutMs === undefined) return work;
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`step ${quoted(name)} took longer than ${timeoutMs} ms`));
      const callOff = this.#host.after(timeoutMs, late);
      work.then(resolve, reject).finally(callOff);
    });
  }
}

function attributionOf({ id }: OpenOperation, { attribution }: Origin): Attribution {
  const cause = acceptedSeq(id);
  return cause === undefined ? attribution : { ...attribution, cause };
}

function pauseOf({ everyMs }: PollOptions, looks: number): number {
  const ms = typeof everyMs === "function" ? everyMs(looks) : everyMs;
  if (!isSpan(ms)) throw new Permanent(`cannot look again after ${ms} milliseconds`);
  return ms;
}

function isAsleep(thrown: unknown): boolean {
  return lookable(thrown) instanceof Asleep;
}

/** Anything can be thrown, also what cannot even be asked for its class. */
function lookable(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    return thrown;
  } catch {
    return new Error(unshowable);
  }
}

/** What was not awaited must not end the process when it fails; who awaits it hears of it all the same. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** A name as a sentence has it: an author may have given anything. */
function quoted(name: unknown): string {
  return typeof name === "string" ? JSON.stringify(name.slice(0, longestName)) : typeof name;
}

/** The same over all attempts, in every process; another one for every other step there ever is. */
export function keyOfStep(key: string, operation: string, step: string): string {
  return createHash("sha256")
    .update(JSON.stringify([key, operation, step]))
    .digest("hex")
    .slice(0, 32);
}
