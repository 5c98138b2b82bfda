/** What a storm can be drawn for. */
export interface Terms {
  readonly processes: number;
  readonly leaseMs: number;
  readonly has: ReadonlySet<Need>;
}

/** What a disturbance needs to be made. */
export type Need =
  | "frozen processes"
  | "a wire"
  | "sessions to end"
  | "entries to refuse"
  | "a server to restart"
  | "a file";
