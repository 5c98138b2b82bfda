import { Readable } from "node:stream";
import { BrokerError } from "@osbert/protocol";

/** Reads a body to its end, or until there is more of it than wanted. The stream is left open: an answer has to go back. */
export function readStream(stream: Readable, mostBytes: number): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = () => {
      stream.off("data", read).off("end", end).off("error", broken).off("close", broken);
    };
    const read = (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes <= mostBytes) return void chunks.push(chunk);
      stop();
      stream.pause();
      resolve(undefined);
    };
    const end = () => {
      stop();
      resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    };
    const broken = (cause?: unknown) => {
      stop();
      reject(new BrokerError("bad-request", "the body did not come to its end", { cause }));
    };
    stream.on("data", read).on("end", end).on("error", broken).on("close", broken);
    // Nothing would be told of a stream that is over already.
    if (stream.destroyed) broken();
  });
}

/** What is still read of a body that nobody wants, so that its sender gets as far as reading the answer. */
export const mostDrained = { bytes: 16 * 1_048_576, ms: 5_000 } as const;

/** Reads on and throws away, until the end or one of the bounds. */
export function drain(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const stop = () => {
      clearTimeout(timer);
      stream.off("data", count).off("end", stop).off("close", stop);
      stream.pause();
      resolve();
    };
    const count = (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes > mostDrained.bytes) stop();
    };
    const timer = setTimeout(stop, mostDrained.ms);
    stream.on("data", count).on("end", stop).on("close", stop);
    stream.on("error", () => undefined);
    if (stream.destroyed || stream.readableEnded) stop();
    else stream.resume();
  });
}

/**
 * An answer to somebody who is still sending. It goes out whole at once, but ends only when what is on its way has been read: a connection
 * that is closed with unread bytes in it is reset, and the answer is lost with it.
 */
export function answerWhileDraining(body: string | Uint8Array, unread: Readable): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.from(body as Uint8Array);
      await drain(unread);
    })(),
  );
}
