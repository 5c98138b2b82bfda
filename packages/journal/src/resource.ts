import type { Json } from "./json.js";
import type { Actor, FinishedOperation, ListedOperation, NewOperation, OpenOperation } from "./operation.js";

/** What a decision sees: a resource at one moment. */
export interface Resource {
  readonly key: string;
  readonly seq: number;
  readonly data: Json;
  readonly labels: Readonly<Record<string, string>>;
  /** Those of the wanted parts that exist. */
  readonly parts: ReadonlyMap<string, Json>;
  /**
   * The first open operations, in their order: all of them if none is `queued`, else those in turn, of which there may be 32, and a few more. Behind them, those about the wanted parts, or all
   * others, as it was asked for.
   */
  readonly open: readonly ListedOperation[];
  /** How many more are behind them. */
  readonly queued: number;
  /** The operation that ended last. */
  readonly last: FinishedOperation | null;
  /** An engine runs it now. */
  readonly running: boolean;
}

/** One line of a resource's journal. */
export interface Entry {
  readonly seq: number;
  readonly at: number;
  readonly kind: string;
  readonly operation: string | null;
  readonly actor: Actor;
  readonly cause: number | string | null;
  readonly requestId: string | null;
  readonly payload: Json;
}

/** What a decision wants to change. All of it is one commit. */
export interface ResourceChange {
  readonly data?: Json;
  /** Replaces all labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Parts to write; `null` removes one. */
  readonly parts?: Readonly<Record<string, Json>>;
  /** Entries of the user's own kinds. */
  readonly entries?: readonly { readonly kind: string; readonly payload?: Json; readonly operation?: string }[];
  /**
   * Operations to end (J8). What nobody can be running ends with this commit, the rest is told to stop. Their ends build on what the change
   * makes of the resource, and come before what it accepts. What one of these ends cancels in its turn ends after it.
   */
  readonly cancel?: readonly Cancellation[] | CancelOthers;
  /** Operations to do. */
  readonly accept?: readonly NewOperation[];
  /** Not to be started until released; those behind them go on. Only operations that have not started; "others": all those. */
  readonly hold?: readonly string[] | "others";
  readonly release?: readonly string[] | "others";
  /**
   * Open operations that wait for their time (the next attempt, a wait of their own) and are to go on now. One that runs, and then would
   * wait for its next look or its next attempt, has that at once, and waits after it.
   */
  readonly hurry?: readonly string[];
  /** The open operations that have not started, in their new order. Those not named stay behind them in their old order. */
  readonly order?: readonly string[];
  /** Nothing is left of the resource: its record goes when retention has taken its last entries. */
  readonly gone?: boolean;
}

/** All of them: what else stands in a change would be lost, and is refused. */
export const changeMembers: Readonly<Record<keyof ResourceChange, true>> = {
  data: true,
  labels: true,
  parts: true,
  entries: true,
  cancel: true,
  accept: true,
  hold: true,
  release: true,
  hurry: true,
  order: true,
  gone: true,
};

export interface Cancellation {
  readonly operation: string;
  readonly reason: string;
}

/**
 * Every open operation, however many wait: but not what the same commit accepts, nor the operation that makes the change. All are told with
 * this commit, and 500 end with it; of more, the rest is never run and ends in commits that follow at once.
 */
export interface CancelOthers {
  readonly others: true;
  readonly reason: string;
}

export interface Decision<Result> {
  readonly result: Result;
  readonly change?: ResourceChange;
  /** What is to be ended stands in the change: written here it would be lost. */
  readonly cancel?: never;
}

/** All of them: what else stands beside a change would be lost, and is refused. */
export const decisionMembers: Readonly<Record<Exclude<keyof Decision<unknown>, "cancel">, true>> = {
  result: true,
  change: true,
};

/** What came of a decision. */
export interface Transacted<Result> {
  readonly result: Result;
  /** The operations that were accepted, in the order in which they were asked for. */
  readonly accepted: readonly OpenOperation[];
}

/** Pure: from what is stored to what to do. May be called several times for one change; only the last call counts. */
export type Decide<Result> = (resource: Resource | undefined, now: number) => Decision<Result>;
