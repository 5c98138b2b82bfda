import { setTimeout as sleep } from "node:timers/promises";
import type { Followed, Journal, Json } from "@osbert/journal";
import type { StoredSource } from "../reconcile/records.js";
import { SourceCopy } from "./source-copy.js";

export interface SourceCopiesPorts {
  readonly journal: () => Journal;
  /** Another process, or this one, has changed a source, and the copy has it. If this rejects, it comes again. */
  readonly changed: (key: string) => Promise<void>;
  /** A change could not be taken in, and is tried again. Told once for each reason, until it is taken in. */
  readonly notTakenIn: (key: string, error: unknown) => void;
}

/** After a change that could not be taken in. */
const againMs = 1_000;

/** What this process takes in from all: a copy of each source that is followed, as new as the last change that anybody has committed. */
export class SourceCopies {
  readonly #ports: SourceCopiesPorts;
  readonly #copies = new Map<string, SourceCopy>();
  readonly #followed = new Map<string, Followed<Json>>();
  #closing = new AbortController();

  constructor(ports: SourceCopiesPorts) {
    this.#ports = ports;
  }

  /** By the key of its resource. One that was not asked for before is empty until it is refreshed. */
  get(key: string): SourceCopy {
    const copy = this.#copies.get(key) ?? new SourceCopy(this.#ports.journal(), key);
    this.#copies.set(key, copy);
    return copy;
  }

  all(): readonly SourceCopy[] {
    return [...this.#copies.values()];
  }

  /** What is stored of a source, as far as this process knows. */
  stored(key: string): StoredSource | undefined {
    return this.#copies.get(key)?.stored;
  }

  /** The same of all that there are, by key. */
  allStored(): ReadonlyMap<string, StoredSource> {
    const known = this.all().flatMap(({ key, stored }) => (stored === undefined ? [] : [[key, stored] as const]));
    return new Map(known);
  }

  /** By the name that a source has now. */
  keyOf(name: string): string | undefined {
    return this.all().find(({ stored }) => stored?.data.name === name)?.key;
  }

  isFollowed(key: string): boolean {
    return this.#followed.has(key);
  }

  /** From now on, what anybody changes is taken in. When this resolves, the copy has what was stored when it was asked for. */
  async follow(key: string): Promise<void> {
    const { signal } = this.#closing;
    const followed = await this.#ports.journal().followed(key, (data: Json): Json => data);
    if (signal.aborted) {
      followed.close();
      throw new Error("the broker has stopped");
    }
    followed.onChange(() => void this.#takeIn(key, signal));
    this.#followed.set(key, followed);
    await this.get(key).refresh();
  }

  /** The broker stops: nothing is taken in any more. */
  close(): void {
    this.#closing.abort();
    this.#closing = new AbortController();
    for (const followed of this.#followed.values()) followed.close();
    this.#followed.clear();
    this.#copies.clear();
  }

  /** While the store does not answer, what is offered stays, and it is tried again. */
  async #takeIn(key: string, signal: AbortSignal): Promise<void> {
    let told: string | undefined;
    while (!signal.aborted) {
      try {
        await this.get(key).refresh();
        await this.#ports.changed(key);
        return;
      } catch (error) {
        // What a broker that stops cannot take in is taken in by the next one.
        if (!signal.aborted && told !== String(error)) this.#ports.notTakenIn(key, error);
        told = String(error);
        await sleep(againMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
    }
  }
}
