import { randomBytes } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Benchmark } from "./benchmark.js";
import { cleanUp } from "./clean-up.js";
import type { Figure } from "./figure.js";
import type { Ground, StoreName } from "./places.js";
import { type Program, startProgram } from "./program.js";
import type { BenchmarkOrder, BenchmarkTold } from "./programs/benchmark.js";
import type { Servers } from "./servers.js";

export interface Run {
  readonly stores: readonly StoreName[];
  readonly quick: boolean;
  readonly resources: number;
  readonly servers: Servers;
  readonly interrupted: AbortSignal;
}

/** Runs a benchmark in a process of its own, within its time, and removes whatever it has left. */
export async function runBenchmark(benchmark: Benchmark, run: Run, heard: (figure: Figure) => void): Promise<void> {
  const { postgresUrl, mysqlUrl } = run.servers;
  const prefix = `bench_${randomBytes(4).toString("hex")}_`;
  const folder = await mkdtemp(join(tmpdir(), "osbert-bench-"));
  const ground: Ground = { folder, prefix, postgresUrl, mysqlUrl };
  const order: BenchmarkOrder = {
    name: benchmark.name,
    ground,
    stores: run.stores,
    quick: run.quick,
    resources: run.resources,
  };
  const patience = Math.max(1, run.resources / 1_000_000);
  const program = startProgram<BenchmarkTold>("benchmark", order, process.execArgv, patience);
  const end = () => void program.kill();
  const overdue = setTimeout(end, benchmark.longestMs * patience);
  run.interrupted.addEventListener("abort", end);
  try {
    await listen(program, heard);
  } finally {
    clearTimeout(overdue);
    run.interrupted.removeEventListener("abort", end);
    await program.kill();
    await cleanUp(ground);
  }
}

async function listen(program: Program<BenchmarkTold>, heard: (figure: Figure) => void): Promise<void> {
  for (;;) {
    const told = await program.next();
    if (told.kind === "done") return;
    if (told.kind === "failed") throw new Error(told.why);
    heard(told.figure);
  }
}
