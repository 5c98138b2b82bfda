import type { IncomingMessage } from "node:http";
import type { BodyReader } from "../client/client-fetch.js";

/** The body of an answer as it comes, without the cost of a web stream: it is read once, by a reader or in a loop. */
export class MessageBody implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;

  constructor(message: IncomingMessage) {
    this.#message = message;
  }

  getReader(): BodyReader {
    return new MessageReader(this.#message);
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  }
}

class MessageReader implements BodyReader {
  readonly #message: IncomingMessage;
  #look: () => void = () => undefined;
  #error: Error | undefined;

  constructor(message: IncomingMessage) {
    this.#message = message;
    const look = () => this.#look();
    message.on("readable", look).on("end", look).on("close", look);
    message.on("error", (error) => {
      this.#error = error;
      look();
    });
  }

  /** One at a time. */
  read(): ReturnType<BodyReader["read"]> {
    return new Promise((resolve, reject) => {
      this.#look = () => {
        const message = this.#message;
        const value = message.read() as Uint8Array | null;
        if (value !== null) resolve({ done: false, value });
        else if (message.readableEnded) resolve({ done: true });
        else if (message.destroyed)
          reject(this.#error ?? new Error("the connection was closed in the middle of the answer"));
      };
      this.#look();
    });
  }

  async cancel(): Promise<void> {
    this.#message.destroy();
  }
}
