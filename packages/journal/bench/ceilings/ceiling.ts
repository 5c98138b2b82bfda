/** Goes on for so long, and answers how many resources a second that were. */
export type Run = (ms: number) => Promise<number>;

/**
 * The raw driver committing the rows of some changes, for one new resource after the other, into tables like the store's. It decides
 * nothing, checks nothing, and answers nobody: the most that a store on this driver can reach.
 */
export interface Ceiling {
  /** Ways of grouping, the best of which is the ceiling. */
  readonly grouped: Readonly<Record<string, Run>>;
  /** Ways in which no more than one group is under way in total: no more than as many callers could ask for, who wait for their answers. */
  readonly shared: Readonly<Record<string, Run>>;
  /** Each change committed by itself. */
  readonly ungrouped: Run;
  close(): Promise<void>;
}
