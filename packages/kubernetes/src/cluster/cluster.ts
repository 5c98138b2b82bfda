import type { ClusterObject, ObjectKind, ObjectPlace } from "./cluster-object.js";

/**
 * What this room asks of an API server, and nothing more. Every call has a deadline and rejects with a `ClusterError`, whose class says what
 * to do; objects that are not there are answers, no errors. Writes are made under one field manager.
 */
export interface Cluster {
  /** `undefined`: there is no such object. A kind that the server does not know is an error, `no such kind`. */
  read(kind: ObjectKind, place: ObjectPlace, options?: CallOptions): Promise<ClusterObject | undefined>;
  /** All objects, page by page; a list that grows too old while it is read begins anew, and may then yield an object twice. */
  list(kind: ObjectKind, options?: ListOptions): AsyncGenerator<ClusterObject, void>;
  /** Server-side apply: what is not in the object is left to others. `force` takes over fields that another manager holds. */
  apply(kind: ObjectKind, object: ClusterObject, options?: ApplyOptions): Promise<ClusterObject>;
  /** The same for the status, where the kind has it apart. */
  applyStatus(kind: ObjectKind, object: ClusterObject, options?: ApplyOptions): Promise<ClusterObject>;
  /** `conflict` if there is one with the name. */
  create(kind: ObjectKind, object: ClusterObject, options?: CallOptions): Promise<ClusterObject>;
  /** JSON Patch; a `test` that does not hold is a `conflict`. `undefined`: there is no such object. */
  patch(
    kind: ObjectKind,
    place: ObjectPlace,
    operations: readonly PatchOperation[],
    options?: CallOptions,
  ): Promise<ClusterObject | undefined>;
  /**
   * Removes exactly the object that was seen. `removed`: the server has accepted it; finalizers may keep it for a while. `gone`: there was none.
   * `changed`: there is one, but it is another one or has been changed since.
   */
  remove(
    kind: ObjectKind,
    place: ObjectPlace,
    seen: Preconditions,
    options?: RemoveOptions,
  ): Promise<"removed" | "gone" | "changed">;
  /** The log of a container, its last bytes at most. `undefined`: there is no such pod. */
  log(place: ObjectPlace, options: LogOptions): Promise<string | undefined>;
  /**
   * Lists objects and follows what becomes of them, for as long as it is open: over closed connections, 410, 429, servers that restart. Holds of
   * each what `keep` makes of it. What is held goes only because the server says so of the object, in a complete list, or by not having the kind.
   */
  watch<Kept>(kind: ObjectKind, options: WatchOptions<Kept>): Watch<Kept>;
  /** Ends all watches and calls. */
  close(): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Default 10 seconds. */
  readonly timeoutMs?: number;
}

export interface ListOptions extends CallOptions {
  /** Default: of all namespaces. */
  readonly namespace?: string;
  /** As in `kubectl --selector`. */
  readonly labels?: string;
  /** As in `kubectl --field-selector`. */
  readonly fields?: string;
}

export interface ApplyOptions extends CallOptions {
  readonly force?: boolean;
}

export interface RemoveOptions extends CallOptions {
  /** What becomes of its dependents. Default `Background`. */
  readonly propagation?: "Background" | "Foreground" | "Orphan";
}

/** What an object must still be for a removal to count. */
export interface Preconditions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export type PatchOperation =
  | { readonly op: "test" | "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

export interface LogOptions extends CallOptions {
  readonly container?: string;
  readonly lastBytes: number;
}

export interface WatchOptions<Kept> {
  readonly namespace?: string;
  readonly labels?: string;
  readonly fields?: string;
  /** What is held of an object: as little as will do. `undefined`: nothing, as if it were not there. Pure; must not throw. */
  readonly keep: (object: ClusterObject) => Kept | undefined;
  /** Told of what came, changed (`keep` says something else, compared as JSON) or went, after it was taken in; and, without a change, when `state` has changed. */
  readonly changed?: (change: WatchChange<Kept> | undefined) => void;
  /** At most so many objects are held; more make the watch `too many`. Default 100,000. */
  readonly most?: number;
}

export interface WatchChange<Kept> {
  readonly place: ObjectPlace;
  readonly before: Kept | undefined;
  readonly after: Kept | undefined;
}

/**
 * `starting`: nothing was listed yet. `current`: what is held is what the server had a moment ago. `behind`: the server has not been heard of for a
 * while; what is held is old. `no such kind`: the server does not know the kind, and nothing is held; looked for again from time to time. `forbidden`, `too many`: what
 * is held is old, if anything is; tried again from time to time.
 */
export type WatchState = "starting" | "current" | "behind" | "no such kind" | "forbidden" | "too many";

/** A copy of objects of a kind, kept up to date. */
export interface Watch<Kept> {
  readonly state: WatchState;
  /** Why it is not current, for a person. */
  readonly why: string | null;
  /** Resolves when the first list was taken in, or it is known that there is no such kind, or the watch is closed. Never rejects. */
  readonly started: Promise<void>;
  get(place: ObjectPlace): Kept | undefined;
  /** Of a namespace, or all. */
  values(namespace?: string): Iterable<Kept>;
  readonly size: number;
  close(): void;
}
