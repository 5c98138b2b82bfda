/** A line was longer than is held. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
}

/** Bytes in, whole lines out. Holds at most one line, of at most `mostBytes`; bytes are copied once. */
export class LineSplitter {
  readonly #mostBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** The lines that end in this chunk, without their ends and without empty ones. What comes after the last end waits for the next chunk. */
  *split(chunk: Buffer): Generator<string, void> {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#hold(chunk.subarray(from, end));
      from = end + 1;
      const line = Buffer.concat(this.#parts).toString("utf8").trim();
      this.#parts = [];
      this.#bytes = 0;
      if (line !== "") yield line;
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from));
  }

  #hold(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#mostBytes) throw new LineTooLong(`a line of more than ${this.#mostBytes} bytes`);
    this.#parts.push(part);
  }
}
