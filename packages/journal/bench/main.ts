import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import type { Benchmark } from "./benchmark.js";
import { benchmarks } from "./benchmarks.js";
import { type Figure, inUnit, meets } from "./figure.js";
import { fsyncTime } from "./fsync-time.js";
import { describeMachine } from "./machine.js";
import { helpText, type Options, readOptions } from "./options.js";
import { asText, type Report, tableOf } from "./report.js";
import { runBenchmark } from "./run-benchmark.js";
import { type Servers, startServers } from "./servers.js";

/** `npm run bench:journal`: runs the benchmarks one after the other, each in a process of its own, and tells what came out. */
process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args);
  if (options === undefined) return 2;
  if (options.help) {
    console.log(helpText());
    return 0;
  }
  const started = performance.now();
  const chosen = benchmarks.filter(({ name }) => options.only.length === 0 || options.only.includes(name));
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  const servers = await startServers(wantedStores(chosen, options));
  try {
    const machine = describeMachine(servers.versions);
    const fsync = fsyncTime(tmpdir(), 2_000);
    const { figures, failures } = await runAll(chosen, options, servers, interrupted.signal);
    const report: Report = {
      date: new Date().toISOString(),
      command: ["npm run bench:journal", ...(args.length > 0 ? ["--", ...args] : [])].join(" "),
      quick: options.quick,
      tookSeconds: Math.round((performance.now() - started) / 1000),
      machine,
      fsync,
      leftOut: [...servers.leftOut, ...failures],
      figures,
      table: tableOf(figures),
    };
    console.log(`\n${asText(report)}`);
    await mkdir(dirname(options.json), { recursive: true });
    await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
    return failures.length > 0 ? 1 : 0;
  } finally {
    await servers.stop();
  }
}

function optionsOf(args: readonly string[]): Options | undefined {
  try {
    return readOptions(args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return undefined;
  }
}

function wantedStores(chosen: readonly Benchmark[], { stores }: Options): readonly string[] {
  return stores.filter((store) => chosen.some((benchmark) => benchmark.stores.includes(store)));
}

async function runAll(chosen: readonly Benchmark[], options: Options, servers: Servers, interrupted: AbortSignal) {
  const figures: Figure[] = [];
  const failures: string[] = [];
  for (const benchmark of chosen) {
    const stores = benchmark.stores.filter((store) => options.stores.includes(store) && servers.has(store));
    if (stores.length === 0 || interrupted.aborted) continue;
    const heard = (figure: Figure) => {
      figures.push(figure);
      console.error(progress(figure));
    };
    try {
      await runBenchmark(
        benchmark,
        { stores, quick: options.quick, resources: options.resources, servers, interrupted },
        heard,
      );
    } catch (error) {
      failures.push(`${benchmark.name}: ${error instanceof Error ? error.message : error}`);
      console.error(failures.at(-1));
    }
  }
  return { figures, failures };
}

function progress(figure: Figure): string {
  const { benchmark, what, store, value, unit, beside } = figure;
  return `${meets(figure) ? " " : "!"} ${benchmark}: ${what}, ${store}: ${inUnit(value, unit)} (${beside})`;
}
