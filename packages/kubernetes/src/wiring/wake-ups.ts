/** Where wake-ups end: what follows namespaces is told to look. */
export interface WakeUpPorts {
  /** `isOurs`: there is an object of ours for it, whether or not there are flows. */
  readonly namespace: (namespace: string, isOurs: boolean) => Promise<void>;
  /** Those that have flows: of one of these applications, or all. */
  readonly flowing: (applications: ReadonlySet<string> | "all") => AsyncIterable<string>;
}

/** News come in crowds: those of so long are taken together. */
const gatherMs = 50;
const retryMs = 1_000;
/** With more names than this, all are meant. */
const mostNames = 10_000;

/**
 * Gathers what has changed in the cluster and wakes those who follow the namespaces that it touches. A wake-up that is lost, because the process
 * dies or the store does not answer, is one that comes later: whoever follows a namespace also looks by itself.
 */
export class WakeUps {
  readonly #ports: WakeUpPorts;
  #namespaces = new Map<string, boolean>();
  #applications = new Set<string>();
  #all = false;
  #timer: NodeJS.Timeout | undefined;
  #flushing = false;
  #closed = false;

  constructor(ports: WakeUpPorts) {
    this.#ports = ports;
  }

  namespace(namespace: string, isOurs = false): void {
    // Where all are meant, only one that nobody may follow yet has to be named.
    if (isOurs || !this.#all) this.#namespaces.set(namespace, isOurs || this.#namespaces.get(namespace) === true);
    if (this.#namespaces.size > mostNames) this.#all = true;
    this.#soon(gatherMs);
  }

  application(application: string): void {
    if (!this.#all) this.#applications.add(application);
    if (this.#applications.size > mostNames) this.#all = true;
    this.#soon(gatherMs);
  }

  all(): void {
    this.#all = true;
    this.#soon(gatherMs);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #soon(ms: number): void {
    if (this.#closed || this.#flushing || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#flush();
    }, ms);
    this.#timer.unref();
  }

  async #flush(): Promise<void> {
    this.#flushing = true;
    const [namespaces, applications, all] = [this.#namespaces, this.#applications, this.#all];
    this.#namespaces = new Map();
    this.#applications = new Set();
    this.#all = false;
    let failed = false;
    try {
      const woken = new Set<string>();
      for (const [namespace, isOurs] of namespaces) {
        if (this.#closed) return;
        if (all && !isOurs) continue;
        woken.add(namespace);
        await this.#ports.namespace(namespace, isOurs);
      }
      if (all || applications.size > 0) {
        for await (const namespace of this.#ports.flowing(all ? "all" : applications)) {
          if (this.#closed) return;
          if (!woken.has(namespace)) await this.#ports.namespace(namespace, false);
        }
      }
    } catch {
      // The store does not answer, or the journal is stopping: all of it once more.
      failed = true;
      for (const [namespace, isOurs] of namespaces) this.#namespaces.set(namespace, isOurs);
      for (const application of applications) this.#applications.add(application);
      this.#all ||= all;
    } finally {
      this.#flushing = false;
    }
    if (failed) this.#soon(retryMs);
    else if (this.#all || this.#namespaces.size > 0 || this.#applications.size > 0) this.#soon(gatherMs);
  }
}
