/**
 * The raw driver committing the rows of some changes, for one new resource after the other, into tables like the store's. It decides
 * nothing, checks nothing, and answers nobody: the most that a store on this driver can reach.
 */
export interface Ceiling {
  /** Ways of grouping, the best of which is the ceiling: for so long, answers how many resources a second. */
  readonly grouped: Readonly<Record<string, (ms: number) => Promise<number>>>;
  /** The same, each change committed by itself. */
  readonly ungrouped: (ms: number) => Promise<number>;
  close(): Promise<void>;
}
