import type { Around } from "./around.js";
import type { Clock } from "./clock.js";
import type { Backlog } from "./decisions/backlog.js";
import type { LaneRule } from "./decisions/lane-shares.js";
import type { Retention } from "./decisions/retention.js";
import type { OperationKinds } from "./engine/runner.js";
import type { Followed, FollowedOptions } from "./followed.js";
import type { Json, ReturnsJson } from "./json.js";
import type { CrashPoint, Observe } from "./observe.js";
import type { AskedOperation, Attribution, Outcome } from "./operation.js";
import type { Page, Part, PartPage } from "./page.js";
import type { EntryPage, KeyPage, OperationPage, OperationStatus, ResourceQuery, WorkQuery } from "./reader.js";
import type { Decide, Entry, Resource, Transacted } from "./resource.js";
import type { Store } from "./store.js";

export interface JournalOptions {
  readonly store: Store;
  readonly kinds: OperationKinds;
  /** Operations that run at the same time in this process. Default 256. */
  readonly concurrency?: number;
  /** Of them, how many of one lane, so that a service that hangs leaves room for the others. Default half. */
  readonly laneConcurrency?: number;
  /** Open operations of one resource. Default 10,000. */
  readonly maxOpen?: number;
  /** How long entries are kept after the end of their operation. */
  readonly retention?: Partial<Retention>;
  /** How long a transaction is tried before the caller gets an error. Default 10 seconds. */
  readonly timeoutMs?: number;
  /** How long a lease lasts without being renewed. Default: as the store advises. */
  readonly leaseMs?: number;
  /** How long an operation that was told to stop may take to do so. Default 10 seconds. */
  readonly graceMs?: number;
  readonly observe?: Observe;
  /** Stands around what the functions of kinds do. */
  readonly around?: Around;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Chance for ids: 1 to 32 lower-case letters and digits that do not come twice. */
  readonly token?: () => string;
  /** Where the crash suite kills. */
  readonly reached?: (point: CrashPoint) => void;
}

export interface TransactOptions {
  /** Who asks, why, and under which request. */
  readonly by: Attribution;
  /** Parts that the decision wants to see. It sees the open operations about them, too, however many others are before those. */
  readonly parts?: readonly string[];
  /** The decision wants to see all open operations. Costs more, the more of them there are. */
  readonly open?: "all";
  /**
   * Prefixes of ids: the decision sees all parts under them as well, in the order of ids, and of the same moment. At most 1,000 in all; for
   * more there is `journal.parts`.
   */
  readonly partsUnder?: readonly string[];
  /** The resource most likely does not exist yet: saves reading it first. */
  readonly likelyNew?: boolean;
  readonly timeoutMs?: number;
}

/** Durable operations per resource: what was accepted is kept, goes on after a crash, and is told. */
export interface Journal {
  /**
   * The one way to change a resource: `decide` looks at it and says what to change; all of that is one commit. It is called again if
   * the resource changed meanwhile. When this resolves, the change is durable (J1).
   */
  transact<Result>(key: string, decide: Decide<Result>, options: TransactOptions): Promise<Transacted<Result>>;
  /**
   * Follows the data of a resource: one small value (at most 512 KiB of JSON) that is kept in the store, with a copy in every process that
   * follows it. `read` makes the value of the data, which is `null` as long as nobody has written one; keep in mind that another version
   * of the program may have written it. The first copy is read before this resolves.
   */
  followed<Value>(key: string, read: ((data: Json) => Value) & ReturnsJson<Value>): Promise<Followed<Value>>;
  /** A resource as it is now, with those of the wanted parts that exist, and the open operations about them. */
  read(key: string, parts?: readonly string[]): Promise<Resource | undefined>;
  /** Entries of a resource: after a number in their order, or before one, newest first. */
  entries(key: string, range?: EntryPage): Promise<readonly Entry[]>;
  /** Parts of a resource by a prefix of their ids, in the order of ids. */
  parts(key: string, prefix: string, page?: PartPage): Promise<Page<Part>>;
  /** Resources by label or by a prefix of their keys, in the order of keys. One that cannot be read is left out and reported. */
  find(query?: ResourceQuery): Promise<Page<Resource>>;
  /** Resources with open operations that are due some time, in the order of lanes and due times; it costs nothing to keep. */
  withWork(query?: WorkQuery): Promise<Page<Resource>>;
  /** What became of an operation, as long as its entries are kept. */
  operation(key: string, id: string): Promise<OperationStatus | undefined>;
  /** The open operations of a resource in their order, those far behind included, each with who asked for it and its input. */
  operations(key: string, page?: OperationPage): Promise<Page<AskedOperation>>;
  /** Asks for an operation's end. Answers false if it has ended already. */
  cancel(key: string, id: string, reason: string, by: Attribution): Promise<boolean>;
  /** Waits for an operation to end, for so long; undefined if it has not. */
  ended(
    key: string,
    id: string,
    options: { readonly withinMs: number; readonly signal?: AbortSignal },
  ): Promise<Outcome | undefined>;
  /** Keys of resources that were set aside because they cannot be read, in their order. */
  listSetAside(page?: KeyPage): Promise<Page<string>>;
  /** How much is open, counted and sampled within bounds: for whoever watches. */
  backlog(bounds?: Partial<BacklogBounds>): Promise<Backlog>;
  /** Puts a resource that was set aside back to work, once someone has mended it. */
  restore(key: string): Promise<void>;
  /**
   * From now on nothing begins in these lanes in this process, and in no others than these; what runs in them goes on. Operations that
   * wait there cost nothing, and can be cancelled; their deadlines are looked at once the lane is free again.
   */
  pauseLanes(lanes: ReadonlySet<string>): void;
  /**
   * Pauses and limits of lanes that hold in all processes of the store. Every process that runs operations asks for them before `start`;
   * from then on it keeps to them, and sees what others change.
   */
  lanes(): Promise<SharedLaneRules>;
  /** The store's clock. */
  now(): number;
  /** Operations that run in this process. */
  readonly running: number;
  /** Begins to run operations. */
  start(): Promise<void>;
  /** Runs nothing new, lets what runs end for so long (default 10 seconds), hands the rest to others, closes the store. */
  stop(options?: { readonly drainMs?: number }): Promise<void>;
  /** Drops everything as a killed process would, and closes the store. */
  kill(): Promise<void>;
}

/** Pauses and limits of lanes that hold in all processes. */
export interface SharedLaneRules {
  /** Lanes that have a rule. */
  readonly value: readonly LaneRule[];
  /** See `Followed`. */
  readonly staleSince: number | null;
  /**
   * Changes what holds for a lane; what is not said stays. When this resolves, it is durable, and holds in this process; the others hear
   * of it as of any followed value. What runs goes on.
   */
  set(lane: string, rule: Partial<Omit<LaneRule, "lane">>, options: FollowedOptions): Promise<void>;
  onChange(listener: (rules: readonly LaneRule[]) => void): () => void;
}

export interface BacklogBounds {
  /** Resources are counted no further than this in each lane. Default 10,000. */
  readonly limit: number;
  /** So many resources of each lane, those due earliest, are looked into. Default 200. */
  readonly sample: number;
  /** An operation is failing after so many failed attempts in a row. Default 5. */
  readonly failures: number;
}
