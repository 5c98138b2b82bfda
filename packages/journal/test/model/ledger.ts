import type { Mode } from "../../src/operation.js";

/** What one operation of the test does: steps that wait for a word of the test, sleeps, and polls that see something at the third look. */
export type Script = readonly ("step" | "sleep" | "poll")[];

/** What was asked for. */
export interface Asked {
  readonly name: string;
  readonly key: string;
  readonly mode: Mode;
  readonly place: "back" | "front";
  readonly held: boolean;
  readonly delayMs: number;
  readonly deadlineMs: number | null;
  readonly script: Script;
  /** Stops when its signal says so; one that does not has to be given up. */
  readonly obedient: boolean;
  readonly describes: boolean;
  /** Ends all others of its resource when it has succeeded. */
  readonly drops?: boolean;
  /** One of a crowd, of which the story does not tell. */
  readonly quiet?: boolean;
}

/** An operation as the test knows it: what was asked, what the caller heard, and what the test did to its steps. */
export interface Known {
  readonly asked: Asked;
  readonly askedAt: number;
  /** "accepted": the caller was told so. "unsure": the caller heard of a failure; it may be there all the same. */
  answer: "none yet" | "accepted" | "unsure";
  id: string | undefined;
  /** Values that its steps have returned, by step. */
  readonly given: Map<string, Set<string>>;
  readonly permanent: Set<string>;
  /** A caller was told that it is being cancelled. */
  cancelled: boolean;
  readonly idempotencyKeys: Map<string, string>;
}

/** The model: everything that was asked of the journals, by the name that it goes by in the story. */
export class Ledger {
  readonly #known = new Map<string, Known>();

  add(asked: Asked, askedAt: number): Known {
    const known: Known = {
      asked,
      askedAt,
      answer: "none yet",
      id: undefined,
      given: new Map(),
      permanent: new Set(),
      cancelled: false,
      idempotencyKeys: new Map(),
    };
    this.#known.set(asked.name, known);
    return known;
  }

  get(name: string): Known {
    const known = this.#known.get(name);
    if (known === undefined) throw new Error(`nothing is called "${name}"`);
    return known;
  }

  all(): readonly Known[] {
    return [...this.#known.values()];
  }

  /** a, b, c … z, a2, b2 … */
  nextName(): string {
    const count = this.#known.size;
    const letter = String.fromCharCode(97 + (count % 26));
    return count < 26 ? letter : `${letter}${Math.floor(count / 26) + 1}`;
  }
}
