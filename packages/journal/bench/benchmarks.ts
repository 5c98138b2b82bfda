import type { Benchmark } from "./benchmark.js";
import { accept } from "./benchmarks/accept.js";
import { backlog } from "./benchmarks/backlog.js";
import { commits } from "./benchmarks/commits.js";
import { lifecycles } from "./benchmarks/lifecycles.js";
import { resources } from "./benchmarks/resources.js";
import { restart } from "./benchmarks/restart.js";
import { takeOver } from "./benchmarks/take-over.js";
import { waiting } from "./benchmarks/waiting.js";

export const benchmarks: readonly Benchmark[] = [
  accept,
  commits,
  lifecycles,
  resources,
  waiting,
  restart,
  takeOver,
  backlog,
];
