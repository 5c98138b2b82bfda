import type { Figure } from "./figure.js";
import { inUnit, meets } from "./figure.js";
import type { FsyncTime } from "./fsync-time.js";
import type { Machine } from "./machine.js";

/** All that a run found out; this is what is written as JSON. */
export interface Report {
  readonly date: string;
  readonly command: string;
  readonly quick: boolean;
  readonly tookSeconds: number;
  readonly machine: Machine;
  readonly fsync: FsyncTime;
  readonly leftOut: readonly string[];
  readonly figures: readonly Figure[];
  /** The same for people: the head and a row for each. */
  readonly table: readonly (readonly string[])[];
}

export function tableOf(figures: readonly Figure[]): readonly (readonly string[])[] {
  return [heads, ...figures.map(cells)];
}

export function asText(report: Report): string {
  const { machine, fsync, figures } = report;
  const missed = figures.filter((figure) => !meets(figure)).length;
  return [
    `${report.date}  ${report.command}  (${report.tookSeconds} s)`,
    `${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB, Node ${machine.node}, ${machine.stores.join(", ")}`,
    `fdatasync of 4 KiB: p50 ${fsync.p50Ms.toFixed(2)} ms, p99 ${fsync.p99Ms.toFixed(2)} ms; load ${machine.load.toFixed(1)} before the run`,
    ...(machine.load > machine.cores / 2 ? ["others used this machine: run it again when they have gone"] : []),
    ...report.leftOut.map((line) => `left out: ${line}`),
    "",
    ...asTable(figures),
    "",
    `${figures.filter(({ target }) => target !== null).length - missed} targets met, ${missed} missed`,
    ...(report.quick ? ["--quick: small sizes, rough figures"] : []),
  ].join("\n");
}

const heads = ["benchmark", "store", "measured", "spread", "target", "", "absolute"];

function asTable(figures: readonly Figure[]): readonly string[] {
  const rows = tableOf(figures);
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [line(heads), rule, ...figures.map((figure) => line(cells(figure)))];
}

function cells(figure: Figure): readonly string[] {
  const { benchmark, what, store, value, spread, unit, target, beside } = figure;
  return [
    `${benchmark}: ${what}`,
    store,
    inUnit(value, unit),
    spread === undefined ? "" : spread.map((bound) => inUnit(bound, unit)).join(" to "),
    target === null ? "" : `${target.kind === "at least" ? "≥" : "≤"} ${inUnit(target.value, unit)}`,
    target === null ? "" : meets(figure) ? "pass" : "MISS",
    beside,
  ];
}
