import type { Figure } from "./figure.js";
import type { Ground, StoreName } from "./places.js";

/** One thing to measure, in a process of its own. */
export interface Benchmark {
  readonly name: string;
  readonly about: string;
  readonly stores: readonly StoreName[];
  /** Far more than it takes: it is ended then. With more resources than usual it may take longer, as they are more. */
  readonly longestMs: number;
  run(task: Task): Promise<void>;
}

/** What a benchmark is given. */
export interface Task {
  readonly ground: Ground;
  /** Those of the benchmark's stores that are wanted and there. */
  readonly stores: readonly StoreName[];
  /** Small sizes, to see that it works. */
  readonly quick: boolean;
  /** How many resources there are where many are asked for. */
  readonly resources: number;
  readonly tell: (figure: Omit<Figure, "benchmark">) => void;
}
