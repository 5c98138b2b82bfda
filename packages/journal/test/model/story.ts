/** What was done and what came of it, line by line: a counter-example that a person can follow. */
export class Story {
  readonly #lines: string[] = [];
  #commands = 0;

  /** Something that a command of the test did. */
  did(what: string): void {
    this.#lines.push(`${String(++this.#commands).padStart(3)}. ${what}`);
  }

  /** Something that came of it. */
  saw(what: string): void {
    this.#lines.push(`       ${what}`);
  }

  toString(): string {
    return this.#lines.join("\n");
  }
}

/** A promise that was not kept. */
export class Broken extends Error {
  override readonly name = "Broken";
}

export function must(kept: boolean, sentence: () => string): asserts kept {
  if (!kept) throw new Broken(sentence());
}
