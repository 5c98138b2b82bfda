/** More than the allocator of the system keeps for itself: it is given back when it is free. */
const boardBytes = 1_048_576;

/**
 * Memory for texts that come one after the other and go together, as those of a reading do. Each in a place of its own, thousands would leave as many
 * gaps between what stays, too small for most of what comes next.
 */
export class TextShelf {
  #board = Buffer.alloc(0);
  #used = 0;

  /** The bytes of a value's JSON. */
  put(value: unknown): Buffer {
    const text = JSON.stringify(value);
    const length = Buffer.byteLength(text);
    if (this.#used + length > this.#board.length) {
      this.#board = Buffer.allocUnsafeSlow(Math.max(length, boardBytes));
      this.#used = 0;
    }
    const bytes = this.#board.subarray(this.#used, this.#used + length);
    bytes.write(text);
    this.#used += length;
    return bytes;
  }
}
