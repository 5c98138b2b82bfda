/** A body that is not known yet: it is sent piece by piece, for as long as somebody listens. */
export class LiveText {
  /** Asked for the pieces once. The signal says that nobody listens any more. */
  readonly pieces: (signal: AbortSignal) => AsyncIterable<string>;

  constructor(pieces: (signal: AbortSignal) => AsyncIterable<string>) {
    this.pieces = pieces;
  }

  /** The bytes. Whoever stops reading them ends what makes the pieces, also while it waits for the next one. */
  toStream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const listening = new AbortController();
    const encoder = new TextEncoder();
    const pieces = this.pieces(listening.signal)[Symbol.asyncIterator]();
    return new ReadableStream({
      async pull(controller) {
        const next = await pieces.next();
        if (next.done === true) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
      cancel() {
        listening.abort();
        // Not waited for: what makes the pieces may be waiting for something itself.
        void pieces.return?.()?.catch(() => undefined);
      },
    });
  }
}
