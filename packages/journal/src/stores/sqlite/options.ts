import type { Store } from "../../store.js";

export interface SqliteStoreOptions {
  /**
   * The store's clock in milliseconds since 1970, for tests. It is used as it is. Left out: a clock that cannot jump
   * and is never behind the newest time in the file, so that a machine whose clock was set back does not delay what
   * is due.
   */
  readonly clock?: () => number;
  /**
   * `"full"` (default): what was answered survives a power cut. `"normal"`: it survives the death of the process, but
   * the last moments may be lost with the power. Group commit makes the difference small; there is hardly a reason
   * for it.
   */
  readonly synchronous?: "full" | "normal";
  /** The database grows to no more than so many pages of 4 KiB; what needs more is refused as on a full disk. */
  readonly maxPages?: number;
}

/** What a store of this kind has done since it was made. */
export interface SqliteStats {
  /** Requests that were carried out: commits (refused ones too), claims, renewals and so on. */
  readonly requests: number;
  /** Transactions that they shared, as far as they changed something: each cost one durable write. */
  readonly transactions: number;
}

export interface SqliteStore extends Store {
  stats(): SqliteStats;
}
