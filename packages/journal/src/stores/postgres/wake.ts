import type { Woken } from "../../store.js";
import type { Schema } from "./schema.js";
import type { Session } from "./session.js";

/** What is told with a commit, as the text of its notification; `null`: nothing. */
export function wakePayload(work: boolean, value: boolean): string | null {
  if (work) return value ? "work value" : "work";
  return value ? "value" : null;
}

/** What a notification tells. Osbert once had but work to tell, and said nothing: processes of that version may share the database. */
export function wokenBy(payload: string): readonly Woken[] {
  return payload === "" ? ["work"] : payload.split(" ").filter((word) => word === "work" || word === "value");
}

/** Tells listeners of this process when some process has committed work, or changed a value. */
export class Wake {
  readonly #listeners = new Set<(what: Woken) => void>();
  readonly #channel: string;
  readonly #called = new Set<Woken>();

  constructor(schema: Schema) {
    this.#channel = schema.channel;
  }

  /** Returns how to call it off. */
  on(listener: (what: Woken) => void): () => void {
    // Its own function, so that a listener which was given twice is called off once.
    const entry = (what: Woken) => listener(what);
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Hears what is told from now on. */
  async listen(session: Session): Promise<void> {
    session.onNotification((payload) => {
      for (const what of wokenBy(payload)) this.call(what);
    });
    await session.run({ name: "osbert listen", text: `listen "${this.#channel}"` }, []);
  }

  /** Many calls in one turn of the event loop are one: a busy server tells of every batch of every process. */
  call(what: Woken): void {
    if (this.#called.has(what)) return;
    this.#called.add(what);
    setImmediate(() => {
      this.#called.delete(what);
      for (const listener of this.#listeners) listener(what);
    });
  }
}
