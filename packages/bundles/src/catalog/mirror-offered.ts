import type { CatalogEntry } from "../reconcile/merge-sources.js";
import { OneAtATime } from "./one-at-a-time.js";

export interface MirrorOfferedPorts {
  /** What is offered now. */
  readonly entries: () => Iterable<CatalogEntry>;
  /** Has what an entry is made of in the mirror. */
  readonly mirror: (entry: CatalogEntry, signal: AbortSignal) => Promise<void>;
}

/**
 * Mirrors what is offered before anybody asks for it (F5-34, `onDiscovery`): one after the other, so that a registry is not asked for all of it
 * at once, and in the background of each machine, which has a mirror of its own. What cannot be had now is tried again when it looks next.
 */
export class MirrorOffered {
  readonly #ports: MirrorOfferedPorts;
  readonly #mirrored = new Set<string>();
  readonly #looking = new OneAtATime(() => this.#look());
  #stop = new AbortController();

  constructor(ports: MirrorOfferedPorts) {
    this.#ports = ports;
  }

  /** Never rejects. */
  look(): Promise<void> {
    return this.#looking.run();
  }

  stop(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
  }

  async #look(): Promise<void> {
    const { signal } = this.#stop;
    for (const entry of [...this.#ports.entries()]) {
      if (signal.aborted) return;
      const name = `${entry.source} ${entry.spec}@${entry.current.digest}`;
      if (this.#mirrored.has(name)) continue;
      await this.#ports.mirror(entry, signal).then(
        () => void this.#mirrored.add(name),
        () => undefined,
      );
    }
  }
}
