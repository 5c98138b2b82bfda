import type { Json } from "./json.js";
import type { Actor, FinishedOperation, ListedOperation, NewOperation } from "./operation.js";

/** What a decision sees: a resource at one moment. */
export interface Resource {
  readonly key: string;
  readonly seq: number;
  readonly data: Json;
  readonly labels: Readonly<Record<string, string>>;
  /** Those of the wanted parts that exist. */
  readonly parts: ReadonlyMap<string, Json>;
  /** The first open operations, in their order: all of them if none is `queued`, else at least 32. */
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
  /** Operations to do. */
  readonly accept?: readonly NewOperation[];
  /** Not to be started until released; those behind them go on. Only operations that have not started. */
  readonly hold?: readonly string[];
  readonly release?: readonly string[];
  /** Open operations that wait for their time (the next attempt, a wait of their own) and are to go on now. */
  readonly hurry?: readonly string[];
  /** The open operations that have not started, in their new order. Those not named stay behind them in their old order. */
  readonly order?: readonly string[];
  /** Nothing is left of the resource: its record goes when retention has taken its last entries. */
  readonly gone?: boolean;
}

export interface Cancellation {
  readonly operation: string;
  readonly reason: string;
}

export type Decision<Result> =
  | { readonly result: Result; readonly change?: undefined; readonly cancel?: undefined }
  | { readonly result: Result; readonly change?: ResourceChange; readonly cancel?: readonly Cancellation[] };

/** Pure: from what is stored to what to do. May be called several times for one change; only the last call counts. */
export type Decide<Result> = (resource: Resource | undefined, now: number) => Decision<Result>;
