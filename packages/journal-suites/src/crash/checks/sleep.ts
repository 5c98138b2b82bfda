import type { Witnessed } from "../witness.js";
import type { Run } from "./evidence.js";
import type { Violation } from "./violation.js";

/**
 * The bound: once nothing is disturbed any more, something happens on each resource at least so often until all is done there. It is
 * less than half of a usual lease, and more than any pause that the engine or a store makes on purpose.
 */
export const sleepBoundMs = 15_000;

/** What shows that someone works on a resource. */
const work: ReadonlySet<Witnessed["kind"]> = new Set(["attempt begins", "effect begins", "step done", "settled"]);

/**
 * Finds work that everybody leaves to somebody else: it was accepted, nothing was done on its resource for long, and then it went on.
 * It looks for silence, not for slowness: a busy machine does one thing after the other.
 */
export function sleepViolations({ scenario, witnessed }: Run): readonly Violation[] {
  const calmAt = witnessed.find(({ kind }) => kind === "calm")?.at;
  if (calmAt === undefined) return [];
  const found: Violation[] = [];
  const acceptedAt = new Map<string, number>();
  const lastAt = new Map<string, number>();
  for (const event of [...witnessed].sort((a, b) => a.at - b.at)) {
    if (event.kind === "accepted") {
      const { key = "", scripts = [] } = scenario.requests[event.request] ?? {};
      for (const { n } of scripts) acceptedAt.set(String(n), event.at);
      for (const id of event.ids ?? []) acceptedAt.set(`${key} ${id}`, event.at);
    }
    if (!work.has(event.kind)) continue;
    const [key, operation] =
      event.kind === "settled"
        ? [event.key, `${event.key} ${event.id}`]
        : "n" in event
          ? [scenario.scripts[event.n]?.key ?? "", String(event.n)]
          : ["", ""];
    // Who was not told of its acceptance may still have been asking for it.
    const since = Math.max(calmAt, lastAt.get(key) ?? calmAt, acceptedAt.get(operation) ?? event.at);
    lastAt.set(key, event.at);
    if (event.at - since <= sleepBoundMs) continue;
    const story = `${key}: nothing for ${seconds(event.at - since)}, then ${event.kind} (${operation}) in process ${event.process}`;
    found.push({ kind: "slept", story });
  }
  return found;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
