import { Worker } from "node:worker_threads";
import type { Connection } from "./connection.js";
import { workerFile } from "./worker-file.js";

/** After about so many pages were appended to the log, they are brought into the database. */
const roundPages = 8_000;

/** With no more than so many pages left the writer finishes by itself: a few milliseconds. */
const finishPages = 1_000;

/**
 * If writing goes on as fast as the thread copies, the writer finishes all the same after so many rounds, or the log
 * would grow for ever.
 */
const mostRounds = 4;

/**
 * Brings the log (WAL) into the database file, on a thread of its own.
 *
 * In a large database the pages that a thousand changes touched lie anywhere in the file, and writing them takes tens
 * of milliseconds. SQLite would do so inside a commit, and its 64 callers would wait. Copying may go on while others
 * write; only the last bit may not: once all of the log is copied and nobody reads in it, the next change starts it
 * over from the beginning. So the thread copies in rounds, and when little is left the writer copies the rest between
 * two transactions.
 *
 * Nothing here matters for what is kept. If all of it failed, the log would be longer and the next start slower.
 */
export class Checkpoints {
  readonly #database: Connection;
  readonly #path: string;
  #thread: Worker | undefined;
  #isCopying = false;
  #isClosed = false;
  #rounds = 0;
  /** Appended since the last round was begun. */
  #pages = 0;

  constructor(database: Connection, path: string) {
    this.#database = database;
    this.#path = path;
  }

  /** To be told after each transaction, with a guess of how many pages it changed. */
  appended(pages: number): void {
    this.#pages += pages;
    if (!this.#isCopying && !this.#isClosed && this.#pages >= roundPages) this.#copy();
  }

  /** Ends the thread, so that the writer is the last on the file. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    if (thread === undefined) return;
    this.#thread = undefined;
    thread.ref();
    await new Promise<void>((resolve) => {
      thread.once("exit", () => resolve());
      thread.postMessage("close");
    });
  }

  #copy(): void {
    this.#thread ??= this.#start();
    this.#isCopying = true;
    this.#rounds++;
    this.#pages = 0;
    this.#thread.postMessage("copy");
  }

  #copied(): void {
    this.#isCopying = false;
    if (this.#isClosed) return;
    if (this.#pages > finishPages && this.#rounds < mostRounds) {
      this.#copy();
      return;
    }
    this.#rounds = 0;
    this.#pages = 0;
    try {
      this.#database.pragma("wal_checkpoint(passive)");
    } catch {
      // As in the thread: the log keeps what it holds, and whoever writes next is told what is wrong.
    }
  }

  #start(): Worker {
    const { file, eval: isCode } = workerFile("checkpoint-worker");
    const thread = new Worker(file, {
      ...{ workerData: this.#path, name: "osbert sqlite checkpoints", eval: isCode },
      // It has next to nothing of its own.
      resourceLimits: { maxYoungGenerationSizeMb: 1 },
    });
    thread.unref();
    thread.on("message", () => this.#copied());
    const lose = () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#isCopying = false;
    };
    thread.on("error", lose);
    thread.on("exit", lose);
    return thread;
  }
}
