import type { Journal } from "@osbert/journal";
import { OneAtATime } from "./one-at-a-time.js";
import { byItself, followKind, sourceResource } from "./source-resource.js";

export interface HurryUnreadPorts {
  readonly journal: () => Journal;
  /** Keys of the sources that this process is configured with as they are stored, and that nobody has tried to read yet. */
  readonly neverRead: () => readonly string[];
}

const everyMs = 1_000;
/** For a source: by then it is no roll-out any more, and what keeps it from being read is not that others lack it. */
const mostTimes = 120;

/**
 * In a roll-out, a process that lacks a source may get the operation that follows it, and puts that off for half a minute, maybe again and
 * again. Whoever has the source does not wait for that: it has the operation looked at until a reading has begun somewhere. A reading that
 * fails was one: from then on the source's own pauses hold.
 */
export class HurryUnread {
  readonly #ports: HurryUnreadPorts;
  readonly #times = new Map<string, number>();
  readonly #hurrying = new OneAtATime(() => this.#hurry());
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: HurryUnreadPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.stop();
    // What cannot be written now is tried again the next time.
    this.#timer = setInterval(() => void this.#hurrying.run().catch(() => undefined), everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#times.clear();
  }

  async #hurry(): Promise<void> {
    for (const key of this.#ports.neverRead()) {
      const times = this.#times.get(key) ?? 0;
      if (times === mostTimes) continue;
      this.#times.set(key, times + 1);
      await this.#ports.journal().transact(key, hurryWaiting, { by: byItself });
    }
  }
}

/** One that runs is left alone: it may be the reading, and who hurries it has it read once more. */
const hurryWaiting = sourceResource.decide((resource) => {
  const waiting = resource?.open.filter(({ kind, state }) => kind === followKind && state === "waiting") ?? [];
  return waiting.length === 0 ? { result: null } : { result: null, change: { hurry: waiting.map(({ id }) => id) } };
});
