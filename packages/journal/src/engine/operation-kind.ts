import type { KindRules } from "../decisions/kind.js";
import type { Json, Jsonified, ReturnsJson } from "../json.js";
import type { Actor, OpenOperation } from "../operation.js";
import type { Page, Part, PartPage } from "../page.js";
import type { Decide, Resource, ResourceChange, Transacted } from "../resource.js";

/** A kind of operation: its rules, and the function that does it. */
export interface OperationKind<Input extends Json = Json> extends KindRules {
  /**
   * Does the operation; what it returns is the result. It may be run again from its beginning at any time, in any process: effects
   * belong into steps.
   */
  run(operation: Operation<Input>): Promise<unknown>;
}

/** What the function that does an operation is given. */
export interface Operation<Input extends Json = Json> {
  readonly id: string;
  readonly key: string;
  readonly kind: string;
  readonly part: string | null;
  readonly input: Input;
  /** 1 for the first. */
  readonly attempt: number;
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly acceptedAt: number;
  readonly deadlineAt: number | null;
  /** Aborted when the operation is cancelled, its deadline passes, the process stops or another one has taken over. */
  readonly signal: AbortSignal;
  /** The user's data of the resource, as it was when the attempt began. */
  readonly data: Json;
  /** Reads parts of the resource as they are now. */
  parts(ids: readonly string[]): Promise<ReadonlyMap<string, Json>>;
  /** Parts of the resource by a prefix of their ids, as they are now, in the order of ids. */
  partsUnder(prefix: string, page?: PartPage): Promise<Page<Part>>;
  /**
   * Changes the resource now, in a commit of its own: for what must be known whatever becomes of the operation. Where others change the
   * resource, too, give a pure function: it is told what the resource is at that moment, and is called again if that was changed meanwhile.
   * An operation that another process has taken over changes nothing.
   */
  change(change: OperationChange | ((resource: Resource) => OperationChange), options?: EffectOptions): Promise<void>;
  /** Results that another operation of the resource has recorded, as its `steps` list says; those that retention took are missing. */
  recordedBy(steps: OpenOperation["steps"]): Promise<ReadonlyMap<string, Json>>;
  /** The result of a step that is recorded already. */
  recorded(step: string): Json | undefined;
  /**
   * J4: a named piece of work whose result is recorded. Runs at least once, is recorded once, and never again after that: a later
   * attempt gets the recorded result. Give the idempotency key, which stays the same over attempts, to whatever can use one. What comes
   * back is what JSON makes of the result, also the first time. To be awaited, as `sleep` and `change` are: else the operation fails.
   */
  step<T>(
    name: string,
    work: ((step: Step) => Promise<T> | T) & ReturnsJson<T>,
    options?: StepOptions,
  ): Promise<Jsonified<T>>;
  /**
   * A step that changes another resource, exactly once: `decide` is carried out there as `journal.transact` does it, in a commit that also
   * notes the step. Killed between that commit and the record of the step, the next attempt finds the note and gets what came of it, also if the
   * other resource is gone by then: as long as the operation is open, its bare record stays. A decision without a change leaves no note
   * and may be made again.
   * Answers what JSON makes of the result, and the operations that were accepted there.
   */
  transact<T>(
    name: string,
    key: string,
    decide: Decide<T> & ReturnsJson<T>,
    options?: TransactEffectOptions,
  ): Promise<Transacted<Jsonified<T>>>;
  /** J5: goes on after so long. Holds no memory meanwhile: the function ends here and is run anew then, past its recorded steps. */
  sleep(name: string, ms: number): Promise<void>;
  /**
   * Looks again and again until `look` answers something, and records that as a step does. As long as it answers `undefined`, or throws
   * `RetryLater`, the operation sleeps until the next look (J5): for days, if need be, and however often. No entry tells of a look that saw
   * nothing; when to look next, how often and since when are kept, so that a restart changes none of it (J6). Side by side, polls have
   * their own times. Beside a step it looks again when that has ended.
   */
  poll<T>(
    name: string,
    look: ((look: Look) => Promise<T | undefined> | T | undefined) & ReturnsJson<T>,
    options: PollOptions,
  ): Promise<Jsonified<T>>;
  /** Says what the operation is doing, for whoever asks. Written with the next step, or soon. */
  describe(description: string): void;
  /**
   * For what is built on the above: the operation fails, saying that `what` was not awaited, if nobody listens to the promise that this
   * answers. `what` reads like `wait "boots"`, `call` like `operation.sleep(…)`.
   */
  awaited<T>(what: string, call: string, promise: Promise<T>): Promise<T>;
}

/** What an operation may change of its own resource while it runs. */
export type OperationChange = Pick<ResourceChange, "data" | "labels" | "parts" | "entries" | "cancel">;

/** What a step's function is given. */
export interface Step {
  /** The same over attempts and restarts, and another one for every other step there ever is. */
  readonly idempotencyKey: string;
  /** Aborted when the operation must stop. */
  readonly signal: AbortSignal;
  /** Of the operation; 1 for the first. */
  readonly attempt: number;
}

/** What a decision about a resource wants to see. */
export interface EffectOptions {
  readonly parts?: readonly string[];
  /** Prefixes of ids: all parts under them. */
  readonly partsUnder?: readonly string[];
}

/** What a decision about another resource sees of it. */
export interface TransactEffectOptions extends EffectOptions {
  /** All open operations, as with `journal.transact`. */
  readonly open?: "all";
}

/** How a step is run. */
export interface StepOptions {
  /** The attempt fails, and is tried again later, if the step takes longer. */
  readonly timeoutMs?: number;
}

/** What the function of a poll is given. */
export interface Look {
  /** Looks before this one that saw nothing. */
  readonly looks: number;
  /** Since the first look. */
  readonly elapsedMs: number;
  /** Aborted when the operation must stop. */
  readonly signal: AbortSignal;
}

/** How a poll is done. */
export interface PollOptions extends StepOptions {
  /** From one look to the next; of a function, after so many looks. `RetryLater` says it for once. At least `limits.shortestPauseMs`. */
  readonly everyMs: number | ((looks: number) => number);
}
