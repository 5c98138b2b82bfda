import type { Schema } from "./schema.js";
import type { Session } from "./session.js";

/** Tells listeners of this process when some process has committed work. */
export class Wake {
  readonly #listeners = new Set<() => void>();
  readonly #channel: string;
  #called = false;

  constructor(schema: Schema) {
    this.#channel = schema.channel;
  }

  /** Returns how to call it off. */
  on(listener: () => void): () => void {
    // Its own function, so that a listener which was given twice is called off once.
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Hears what is told from now on. */
  async listen(session: Session): Promise<void> {
    session.onNotification(() => this.call());
    await session.run({ name: "osbert listen", text: `listen "${this.#channel}"` }, []);
  }

  /** Many calls in one turn of the event loop are one: a busy server tells of every batch of every process. */
  call(): void {
    if (this.#called) return;
    this.#called = true;
    setImmediate(() => {
      this.#called = false;
      for (const listener of this.#listeners) listener();
    });
  }
}
