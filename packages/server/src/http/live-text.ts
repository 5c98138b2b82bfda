/** A body that is not known yet: it is sent piece by piece, for as long as somebody listens. */
export class LiveText {
  /** Asked for the pieces once. The signal says that nobody listens any more. */
  readonly pieces: (signal: AbortSignal) => AsyncIterable<string>;
  readonly #over: AbortSignal | undefined;

  /** When `over` is aborted, the pieces end soon; whoever has not read them a second later is cut off, because they may never read. */
  constructor(pieces: (signal: AbortSignal) => AsyncIterable<string>, over?: AbortSignal) {
    this.pieces = pieces;
    this.#over = over;
  }

  /** The bytes. Whoever stops reading them ends what makes the pieces, also while it waits for the next one. */
  toStream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const listening = new AbortController();
    const encoder = new TextEncoder();
    const pieces = this.pieces(listening.signal)[Symbol.asyncIterator]();
    const over = this.#over;
    const stop = () => {
      listening.abort();
      // Not waited for: what makes the pieces may be waiting for something itself.
      void pieces.return?.()?.catch(() => undefined);
    };
    let isEnded = false;
    let cutOff: () => void = () => undefined;
    const end = () => {
      isEnded = true;
      over?.removeEventListener("abort", cutOff);
    };
    return new ReadableStream({
      start(controller) {
        cutOff = () =>
          void setTimeout(() => {
            if (isEnded) return;
            end();
            stop();
            controller.error(new Error("it was not read in time"));
          }, graceMs).unref();
        if (over?.aborted === true) cutOff();
        else over?.addEventListener("abort", cutOff, { once: true });
      },
      async pull(controller) {
        const next = await pieces.next();
        if (isEnded) return;
        if (next.done === true) {
          end();
          controller.close();
        } else controller.enqueue(encoder.encode(next.value));
      },
      cancel() {
        end();
        stop();
      },
    });
  }
}

const graceMs = 1_000;
