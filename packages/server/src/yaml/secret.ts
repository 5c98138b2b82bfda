import { inspect } from "node:util";

/** What takes a secret's place wherever people or programs read. */
export const mask = "***";

/**
 * A text in settings that must not be seen. It cannot be printed, logged, put into a message or written as JSON by accident: all of these give
 * the mask. `reveal()` is the one way to it, so that a search for that word finds every use.
 */
export class Secret {
  readonly #text: string;
  readonly #shown: string;

  /** `shown`: as much of it as may be seen, such as an address without its password. */
  constructor(text: string, shown: string = mask) {
    this.#text = text;
    this.#shown = shown;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return this.#shown;
  }

  toJSON(): string {
    return this.#shown;
  }

  [inspect.custom](): string {
    return this.#shown;
  }
}
