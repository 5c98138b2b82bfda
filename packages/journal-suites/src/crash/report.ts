import type { CrashResult } from "./crash-result.js";

/** A result as lines for a person. */
export function report(name: string, result: CrashResult): string {
  const { kills, takeOver, outcomes, violations } = result;
  const rows: readonly (readonly [string, string])[] = [
    ["kills", `${kills.atPoints + kills.atRandom} (${kills.atPoints} at crash points, ${kills.atRandom} at random)`],
    ...(result.freezes > 0 ? [["freezes", String(result.freezes)] as const] : []),
    ...Object.entries(result.disturbances).map(([kind, { times, hit }]) => [kind, `${times} (hit ${hit})`] as const),
    ["processes", `${result.processes}, ${result.startMs.toFixed(0)} ms to start`],
    [
      "operations",
      `${result.operations}: ${Object.entries(outcomes)
        .map(([kind, n]) => `${n} ${kind}`)
        .join(", ")}`,
    ],
    [
      "attempts, effects",
      `${result.attempts}, ${result.effects}${result.stalledEffects > 0 ? ` (${result.stalledEffects} after a standstill)` : ""}`,
    ],
    [
      "goes on after a kill",
      `median ${takeOver.medianMs.toFixed(0)} ms, 95 % ${takeOver.p95Ms.toFixed(0)} ms, longest ${takeOver.maxMs.toFixed(0)} ms (${takeOver.samples} kills)`,
    ],
    ["time", `${(result.tookMs / 1_000).toFixed(1)} s`],
    ["seed", String(result.seed)],
    ["violations", String(violations.length)],
  ];
  const width = Math.max(...rows.map(([title]) => title.length));
  const lines = rows.map(([title, text]) => `  ${title.padEnd(width)}  ${text}`);
  return [name, ...lines, ...violationLines(result)].join("\n");
}

/** How often a process was killed at each crash point, as a table. */
export function pointTable(result: CrashResult): string {
  const width = Math.max(...Object.keys(result.points).map((point) => point.length));
  return Object.entries(result.points)
    .map(([point, times]) => `  ${point.padEnd(width)}  ${times === 0 ? "never" : times}`)
    .join("\n");
}

const mostShown = 20;

/** What a process wrote to standard error before its end is long; the evidence has all of it. */
function brief(story: string): string {
  const line = story.replaceAll(/\s+/g, " ").trim();
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

function violationLines({ violations }: CrashResult): readonly string[] {
  const lines = violations.slice(0, mostShown).map(({ kind, story }) => `  ! ${kind}: ${brief(story)}`);
  return violations.length > mostShown ? [...lines, `  ! and ${violations.length - mostShown} more`] : lines;
}
