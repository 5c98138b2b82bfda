import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { benchmarksPage } from "./benchmarks-page.js";

/**
 * `npm run bench [-- --quick]`: all benchmarks, of the journal, the broker, bundles, the platform and event flow, one process at a time. Without `--quick` what came
 * out becomes docs/benchmarks.md. A figure that misses its target is told, and fails nothing: machines differ.
 */
const args = process.argv.slice(2);
const isQuick = args.includes("--quick");
if (args.some((argument) => argument !== "--quick")) {
  console.error(
    "npm run bench takes --quick alone; for more: npm run bench:journal -- --help, bench:broker, bench:bundles, bench:platform, bench:events",
  );
  process.exit(2);
}

const root = fileURLToPath(new URL("..", import.meta.url));
for (const script of ["bench:journal", "bench:broker", "bench:bundles", "bench:platform", "bench:events"]) {
  console.error(`\n${script}`);
  const { status } = spawnSync("npm", ["run", "--silent", script, "--", ...args], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

if (!isQuick) {
  const read = (name: string) => JSON.parse(readFileSync(`${root}.bench/${name}.json`, "utf8"));
  const page = benchmarksPage(read("journal"), read("broker"), read("bundles"), read("platform"), read("events"));
  writeFileSync(`${root}docs/benchmarks.md`, page);
  console.error("\ndocs/benchmarks.md is written");
}
