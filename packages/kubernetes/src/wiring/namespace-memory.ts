import type { Pending } from "../flows/conditions.js";
import type { Action } from "../flows/pass.js";
import { nameOf } from "./carry-out.js";

const firstPauseMs = 1_000;
const mostPauseMs = 600_000;

interface Repeat {
  readonly times: number;
  readonly lastAt: number;
}

/**
 * What this process remembers of a namespace between two looks, beside what is kept: nothing that would be missed. What was done and has to be done
 * again is done less and less often: a copy that lags is given time, and nobody fights with another who wants it otherwise.
 */
export class NamespaceMemory {
  pending: ReadonlyMap<string, Pending> = new Map();
  #failures = 0;
  readonly #repeats = new Map<string, Repeat>();

  /** Those that are due, and when the next of the others is. */
  due(actions: readonly Action[], now: number): { readonly due: readonly Action[]; readonly nextAt: number | null } {
    const keys = new Set(actions.map(keyOf));
    for (const [key, { lastAt }] of this.#repeats) {
      if (!keys.has(key) && now - lastAt > mostPauseMs) this.#repeats.delete(key);
    }
    let nextAt: number | null = null;
    const due = actions.filter((action) => {
      const repeat = this.#repeats.get(keyOf(action));
      const at = repeat === undefined ? now : repeat.lastAt + pauseMs(repeat.times);
      if (at > now) nextAt = Math.min(nextAt ?? at, at);
      return at <= now;
    });
    return { due, nextAt };
  }

  done(action: Action, now: number): void {
    const key = keyOf(action);
    this.#repeats.set(key, { times: (this.#repeats.get(key)?.times ?? 0) + 1, lastAt: now });
  }

  /** How long to wait after so many looks in a row in which something failed. */
  failed(): number {
    this.#failures += 1;
    return Math.min(60_000, pauseMs(this.#failures));
  }

  succeeded(): void {
    this.#failures = 0;
  }
}

/** The first repeat comes after a second: news of what was done takes a moment. */
function pauseMs(times: number): number {
  return Math.min(mostPauseMs, firstPauseMs * 2 ** Math.min(20, times - 1));
}

/** What is applied is another thing when it says something else. */
function keyOf(action: Action): string {
  const name = `${action.kind} ${action.what} ${nameOf(action)}`;
  return action.kind === "remove"
    ? `${name} ${action.uid} ${action.resourceVersion}`
    : `${name} ${JSON.stringify(action.desired.object)}`;
}
