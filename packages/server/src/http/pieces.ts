import { Readable } from "node:stream";

/**
 * A body that is there in pieces, and nowhere as a whole: one of many megabytes of which a little changes now and then shares all other pieces
 * with the one before it, and whoever reads it slowly holds no copy.
 */
export class Pieces {
  /** In their order. Nobody changes them. */
  readonly pieces: readonly Uint8Array<ArrayBuffer>[];
  /** Of all of them. */
  readonly byteLength: number;

  #whole: Uint8Array<ArrayBuffer> | undefined;

  constructor(pieces: readonly Uint8Array<ArrayBuffer>[]) {
    this.pieces = pieces;
    this.byteLength = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Of a small body: all of it in one piece, which is kept. It goes out twice as fast as a stream. `undefined`: it is not small. */
  small(): Uint8Array<ArrayBuffer> | undefined {
    if (this.byteLength > smallBytes) return undefined;
    this.#whole ??= this.whole();
    return this.#whole;
  }

  /** In one piece, made for whoever asks. */
  whole(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.byteLength);
    let at = 0;
    for (const piece of this.pieces) {
      whole.set(piece, at);
      at += piece.byteLength;
    }
    return whole;
  }

  toReadable(): Readable {
    const left = this.pieces.values();
    return new Readable({
      highWaterMark: aheadBytes,
      read() {
        let isRoom = true;
        while (isRoom) {
          const { done, value } = left.next();
          isRoom = this.push(done ? null : value);
        }
      },
    });
  }

  toStream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const left = this.pieces.values();
    return new ReadableStream({
      pull(controller) {
        const { done, value } = left.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
  }
}

/** A second copy of so much costs nobody anything. */
const smallBytes = 262_144;

/** So much is given to a connection at a time: enough that it is not waited for again and again. */
const aheadBytes = 1_048_576;
