import type { ReadingProgress } from "../reconcile/observation.js";
import type { SourceHealth, StoredSource } from "../reconcile/records.js";

/** A reading that is at work. */
export interface ReadingNow extends ReadingProgress {
  readonly since: number;
}

/** How often it is told how far a reading is: one of some seconds is not worth a word. */
const tellEveryMs = 5_000;

/**
 * What this process alone knows of the readings that it does: how far one is, and what the last one saw of the source's health where nothing
 * else had changed, because that is stored once an hour only (F5-80). It is gone with the process; what is lost of it is that hour.
 */
export class SourceReadings {
  readonly #now: () => number;
  readonly #reading = new Map<string, ReadingNow & { told: number }>();
  /** By key: the health after the last reading, and the one that was stored then. */
  readonly #seen = new Map<string, { readonly stored: SourceHealth; readonly health: SourceHealth }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Answers whether it is time to tell someone. */
  progress(key: string, progress: ReadingProgress): boolean {
    const now = this.#now();
    const { since, told } = this.#reading.get(key) ?? { since: now, told: now };
    const isTime = now - told >= tellEveryMs;
    this.#reading.set(key, { ...progress, since, told: isTime ? now : told });
    return isTime;
  }

  ended(key: string): void {
    this.#reading.delete(key);
  }

  /** `null`: this process does not read it now. */
  reading(key: string): ReadingNow | null {
    const reading = this.#reading.get(key);
    return reading === undefined ? null : { done: reading.done, of: reading.of, since: reading.since };
  }

  /** What a reading comes to, upon what was stored. */
  saw(key: string, stored: SourceHealth, health: SourceHealth): void {
    this.#seen.set(key, { stored, health });
  }

  /** A source with what was seen of its health since it was stored. What others have stored meanwhile counts more. */
  upToDate(key: string, source: StoredSource): StoredSource {
    const seen = this.#seen.get(key);
    if (seen === undefined || JSON.stringify(seen.stored) !== JSON.stringify(source.data.health)) return source;
    return { ...source, data: { ...source.data, health: seen.health } };
  }
}
