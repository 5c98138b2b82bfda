import type { Verdict } from "./verdict.js";

/** A verdict as lines for a person. */
export function report(name: string, verdict: Verdict): string {
  const { kills, takeOver, outcomes, violations } = verdict;
  const rows: readonly (readonly [string, string])[] = [
    ["kills", `${kills.atPoints + kills.atRandom} (${kills.atPoints} at crash points, ${kills.atRandom} at random)`],
    ...(verdict.freezes > 0 ? [["freezes", String(verdict.freezes)] as const] : []),
    ...Object.entries(verdict.disturbances).map(([kind, { times, hit }]) => [kind, `${times} (hit ${hit})`] as const),
    ["processes", `${verdict.processes}, ${verdict.startMs.toFixed(0)} ms to start`],
    [
      "operations",
      `${verdict.operations}: ${Object.entries(outcomes)
        .map(([kind, n]) => `${n} ${kind}`)
        .join(", ")}`,
    ],
    [
      "attempts, effects",
      `${verdict.attempts}, ${verdict.effects}${verdict.stalledEffects > 0 ? ` (${verdict.stalledEffects} after a standstill)` : ""}`,
    ],
    [
      "goes on after a kill",
      `median ${takeOver.medianMs.toFixed(0)} ms, 95 % ${takeOver.p95Ms.toFixed(0)} ms, longest ${takeOver.maxMs.toFixed(0)} ms (${takeOver.samples} kills)`,
    ],
    ["time", `${(verdict.tookMs / 1_000).toFixed(1)} s`],
    ["seed", String(verdict.seed)],
    ["violations", String(violations.length)],
  ];
  const width = Math.max(...rows.map(([title]) => title.length));
  const lines = rows.map(([title, text]) => `  ${title.padEnd(width)}  ${text}`);
  return [name, ...lines, ...violationLines(verdict)].join("\n");
}

/** How often a process was killed at each crash point, as a table. */
export function pointTable(verdict: Verdict): string {
  const width = Math.max(...Object.keys(verdict.points).map((point) => point.length));
  return Object.entries(verdict.points)
    .map(([point, times]) => `  ${point.padEnd(width)}  ${times === 0 ? "never" : times}`)
    .join("\n");
}

const mostShown = 20;

/** What a process wrote to standard error before its end is long; the evidence has all of it. */
function brief(story: string): string {
  const line = story.replaceAll(/\s+/g, " ").trim();
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}

function violationLines({ violations }: Verdict): readonly string[] {
  const lines = violations.slice(0, mostShown).map(({ kind, story }) => `  ! ${kind}: ${brief(story)}`);
  return violations.length > mostShown ? [...lines, `  ! and ${violations.length - mostShown} more`] : lines;
}
