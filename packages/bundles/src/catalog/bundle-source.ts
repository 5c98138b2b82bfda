import type { Source } from "../sources/source.js";
import type { FollowedSource } from "./follow-source.js";

/** A source of bundles, configured. */
export interface BundleSource extends FollowedSource {
  readonly name: string;
  /** `false`: nothing is read, and nothing goes (F5-28). Default true. */
  readonly enabled?: boolean;
  /** Names that it had before: its bundles keep their ids (F5-24). */
  readonly previousNames?: readonly string[];
  /** Of two sources that offer the same service, the one with the higher number counts (F5-58). Default 0. */
  readonly priority?: number;
  /** Whether it may take over a service of another source that has retired there (F5-59). Default false. */
  readonly failover?: boolean;
  /** What is pushed may be a classic bundle of runtime 2. Default false. */
  readonly runsRuntime2?: boolean;
  readonly source: Source;
}
