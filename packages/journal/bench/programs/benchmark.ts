import type { Task } from "../benchmark.js";
import { benchmarks } from "../benchmarks.js";
import type { Figure } from "../figure.js";
import { order, tell } from "../program.js";

/** What the process of a benchmark is started with. */
export interface BenchmarkOrder extends Omit<Task, "tell"> {
  readonly name: string;
}

export type BenchmarkTold =
  | { readonly kind: "figure"; readonly figure: Figure }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly why: string };

/** One benchmark in a process of its own: it starts with a clean heap, and leaves none to the next. */
const { name, ...task } = await order<BenchmarkOrder>();
const say = (told: BenchmarkTold) => tell(told);
try {
  const benchmark = benchmarks.find((candidate) => candidate.name === name);
  if (benchmark === undefined) throw new Error(`there is no benchmark "${name}"`);
  await benchmark.run({ ...task, tell: (figure) => say({ kind: "figure", figure: { benchmark: name, ...figure } }) });
  say({ kind: "done" });
} catch (error) {
  say({ kind: "failed", why: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}
