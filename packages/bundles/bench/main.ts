import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import type { LeftOut } from "../../../tools/servers.js";
import type { Figure } from "./figure.js";
import { firstReading } from "./first-reading.js";
import { manyBundles } from "./many-bundles.js";
import { manyAtOnce, runnerTime } from "./run-bundles.js";
import { unchangedSource } from "./unchanged-source.js";

// `npm run bench:bundles [-- --quick]`: sources, catalog and runners of bundles, each against a ceiling that is measured in the same run.

const quick = process.argv.includes("--quick");
const rounds = quick ? 2 : 5;
const load = loadavg()[0] ?? 0;
const begun = performance.now();
const folder = await mkdtemp(join(tmpdir(), "osbert-bundles-bench-"));
const figures: Figure[] = [];
const leftOut: string[] = [];
try {
  console.error("reading an unchanged registry…");
  tell(await unchangedSource(500, rounds));
  console.error("reading a registry for the first time…");
  tell(await firstReading(folder, quick ? 500 : 2_000));
  console.error("15,000 bundles…");
  tell(...(await manyBundles(folder, { many: 15_000, few: 15, rounds, forMs: quick ? 1_000 : 2_000 })));
  console.error("running bundles…");
  tell(...(await runnerTime(folder, quick ? 10 : 30)), await manyAtOnce(folder, 64, quick ? 1 : 3));
} finally {
  await rm(folder, { recursive: true, force: true });
}
const head = ["bundles", "measured", "target", "", "absolute"];
const rows = figures.map(({ what, measured, target, isMet, absolute }) => {
  return [what, measured, target, isMet ? "pass" : "MISS", absolute];
});
for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
for (const line of leftOut) console.log(`left out: ${line}`);
const tookSeconds = Math.round((performance.now() - begun) / 1_000);
const report = {
  ...{ date: new Date().toISOString(), quick, command: "npm run bench:bundles", load, tookSeconds, leftOut },
  table: [head, ...rows],
};
await mkdir(".bench", { recursive: true });
await writeFile(join(".bench", "bundles.json"), `${JSON.stringify(report, null, 2)}\n`);

function tell(...found: readonly (Figure | LeftOut)[]): void {
  for (const each of found) {
    if ("leftOut" in each) leftOut.push(each.leftOut);
    else figures.push(each);
  }
}
