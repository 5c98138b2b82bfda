import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import type { Figure } from "./figure.js";
import { type ProgramName, runProgram } from "./program.js";

// `npm run bench:platform [-- --quick] [-- accept|play|read|polled …]`: what the platform costs over the journal and over the calls that it makes, each
// against a ceiling that is measured in the same process, turn by turn.

const programs: readonly ProgramName[] = ["accept", "play", "read", "polled"];
const args = process.argv.slice(2);
const quick = args.includes("--quick");
const chosen = programs.filter((name) => args.includes(name));
const load = loadavg()[0] ?? 0;
const begun = performance.now();
const figures: Figure[] = [];
for (const name of chosen.length === 0 ? programs : chosen) {
  console.error(`${name}…`);
  const folder = await mkdtemp(join(tmpdir(), "osbert-platform-bench-"));
  try {
    figures.push(...(await runProgram(name, { folder, quick })));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
const head = ["platform", "measured", "target", "", "absolute"];
const rows = figures.map(({ what, measured, target, isMet, absolute }) => {
  return [what, measured, target ?? "", target === null ? "" : isMet ? "pass" : "MISS", absolute];
});
for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
const tookSeconds = Math.round((performance.now() - begun) / 1_000);
const report = {
  ...{ date: new Date().toISOString(), quick, command: "npm run bench:platform", load, tookSeconds },
  table: [head, ...rows],
};
await mkdir(".bench", { recursive: true });
await writeFile(join(".bench", "platform.json"), `${JSON.stringify(report, null, 2)}\n`);
