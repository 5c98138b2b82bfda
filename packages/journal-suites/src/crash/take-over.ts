import type { Witnessed } from "./witness.js";

/** J11, measured: how long after a kill something that the killed process was in the middle of went on. */
export interface TakeOver {
  /** Kills of a process that was in the middle of something which went on later. */
  readonly samples: number;
  readonly medianMs: number;
  readonly p95Ms: number;
  readonly maxMs: number;
}

export function takeOverOf(witnessed: readonly Witnessed[]): TakeOver {
  const running = new Map<number, Map<string, number>>();
  const spawnedAt = new Map<number, number>();
  /** Kills that nobody has followed up yet: when, and which operations were under way. */
  let open: { readonly at: number; readonly operations: ReadonlySet<number> }[] = [];
  const waits: number[] = [];
  for (const event of [...witnessed].sort((a, b) => a.at - b.at)) {
    const { kind, at, process } = event;
    if (kind === "spawned") {
      spawnedAt.set(process, at);
      running.set(process, new Map());
    } else if (kind === "attempt begins") {
      for (const kill of open) if (kill.operations.has(event.n)) waits.push(at - kill.at);
      open = open.filter(({ operations }) => !operations.has(event.n));
      running.get(process)?.set(event.attempt, event.n);
    } else if (kind === "attempt ends") running.get(process)?.delete(event.attempt);
    else if (kind === "killed") {
      // A successor that was killed before it got anywhere says nothing about how long one takes.
      open = open.filter((kill) => kill.at > (spawnedAt.get(process) ?? 0));
      const operations = new Set(running.get(process)?.values());
      if (operations.size > 0) open.push({ at, operations });
    }
  }
  waits.sort((a, b) => a - b);
  const share = (part: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * part))] ?? Number.NaN;
  return { samples: waits.length, medianMs: share(0.5), p95Ms: share(0.95), maxMs: share(1) };
}
