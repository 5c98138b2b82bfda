import type { Pending } from "../flows/conditions.js";
import type { Action } from "../flows/pass.js";
import { nameOf } from "./carry-out.js";

const firstPauseMs = 1_000;
const mostPauseMs = 600_000;
/** What failed is tried more often than what somebody else undoes: nobody fights. */
const mostFailurePauseMs = 60_000;

interface Repeat {
  readonly ended: "done" | "failed";
  /** In a row. */
  readonly times: number;
  readonly lastAt: number;
  readonly pauseMs: number;
}

/**
 * What this process remembers of a namespace between two looks, beside what is kept: nothing that would be missed. What was done and has to be done
 * again is done less and less often: a copy that lags is given time, and nobody fights with another who wants it otherwise.
 */
export class NamespaceMemory {
  pending: ReadonlyMap<string, Pending> = new Map();
  readonly #repeats = new Map<string, Repeat>();
  #dueAt = 0;

  /** A look begins. Before its time: somebody has asked for it, or something has changed, and what was refused may be taken now. */
  begin(now: number): void {
    if (now >= this.#dueAt) return;
    for (const [key, repeat] of this.#repeats)
      if (repeat.ended === "failed" && repeat.pauseMs > mostFailurePauseMs)
        this.#repeats.set(key, { ...repeat, pauseMs: mostFailurePauseMs });
  }

  /** The next one is due then. */
  end(dueAt: number): void {
    this.#dueAt = dueAt;
  }

  /** Those that are due, and when the next of the others is. */
  due(actions: readonly Action[], now: number): { readonly due: readonly Action[]; readonly nextAt: number | null } {
    const keys = new Set(actions.map(keyOf));
    for (const [key, { lastAt }] of this.#repeats) {
      if (!keys.has(key) && now - lastAt > mostPauseMs) this.#repeats.delete(key);
    }
    let nextAt: number | null = null;
    const due = actions.filter((action) => {
      const repeat = this.#repeats.get(keyOf(action));
      // A clock that was set back does not make it wait for longer.
      const at = repeat === undefined ? now : Math.min(repeat.lastAt, now) + repeat.pauseMs;
      if (at > now) nextAt = Math.min(nextAt ?? at, at);
      return at <= now;
    });
    return { due, nextAt };
  }

  done(action: Action, now: number): void {
    this.#note(action, "done", mostPauseMs, 0, now);
  }

  /** Answers how long to wait before it is tried again, at least for as long as the cluster has asked for. */
  failed(action: Action, askedMs: number, now: number): number {
    return this.#note(action, "failed", mostFailurePauseMs, Math.min(mostPauseMs, askedMs), now);
  }

  /** The same of what the cluster does not take, and nobody waits for: it is tried less and less often. */
  refused(action: Action, now: number): number {
    return this.#note(action, "failed", mostPauseMs, 0, now);
  }

  /** Nobody wants these objects any more: who wants them again is no other who fights. */
  forget(names: ReadonlySet<string>): void {
    for (const key of this.#repeats.keys()) if (names.has(key.split(" ", 3)[2] ?? "")) this.#repeats.delete(key);
  }

  /** The first repeat comes after a second: news of what was done takes a moment. */
  #note(action: Action, ended: Repeat["ended"], mostMs: number, leastMs: number, now: number): number {
    const key = keyOf(action);
    const before = this.#repeats.get(key);
    const times = before?.ended === ended ? before.times + 1 : 1;
    const pauseMs = Math.max(leastMs, Math.min(mostMs, firstPauseMs * 2 ** Math.min(20, times - 1)));
    this.#repeats.set(key, { ended, times, lastAt: now, pauseMs });
    return pauseMs;
  }
}

/** So long after its next look was due, a namespace is taken to be followed by another process. */
const graceMs = 60_000;

/** The memories of the namespaces that this process follows. What it knew before another one followed tells nothing of now, and is dropped. */
export class NamespaceMemories {
  readonly #known = new Map<string, { readonly memory: NamespaceMemory; readonly until: number }>();
  #sweptAt = 0;

  of(namespace: string, now: number): NamespaceMemory {
    if (now - this.#sweptAt > graceMs) {
      for (const [name, { until }] of this.#known) if (until < now) this.#known.delete(name);
      this.#sweptAt = now;
    }
    const known = this.#known.get(namespace);
    return known === undefined || known.until < now ? new NamespaceMemory() : known.memory;
  }

  /** Until the next look, which is due then. */
  keep(namespace: string, memory: NamespaceMemory, nextAt: number): void {
    this.#known.set(namespace, { memory, until: nextAt + graceMs });
  }

  forget(namespace: string): void {
    this.#known.delete(namespace);
  }
}

/** What is applied is another thing when it says something else. */
function keyOf(action: Action): string {
  const name = `${action.kind.replace(" ", "-")} ${action.what} ${nameOf(action)}`;
  if (action.kind === "remove") return `${name} ${action.uid} ${action.resourceVersion}`;
  return `${name} ${action.kind === "clear" ? action.paths.join(" ") : JSON.stringify(action.desired.object)}`;
}
