import { Worker } from "node:worker_threads";
import { JournalError } from "../../errors.js";
import { errorOf } from "./failure.js";
import type { FromWriter, ToWriter, WriterSettings } from "./protocol.js";
import { workerFile } from "./worker-file.js";

type Done = Extract<FromWriter, { kind: "done" }>;
type Batch = Extract<ToWriter, { kind: "batch" }>;

/** So many ends of the thread within so long, and it is not started anew before the oldest of them is that long ago. */
const mostEnds = 3;
const endsWithinMs = 10_000;
const youngMegabytes = 12;

/**
 * The writer thread, seen from the main thread. If it ends unasked, whoever waits for it is told that the outcome is
 * not known, and the next batch starts it anew.
 */
export class WriterThread {
  readonly #settings: WriterSettings;
  /** Batches are answered in their order. */
  readonly #waiting: { readonly resolve: (done: Done) => void; readonly reject: (reason: Error) => void }[] = [];
  #worker: Worker | undefined;
  #ends: number[] = [];

  constructor(settings: WriterSettings) {
    this.#settings = settings;
  }

  /**
   * Starts the thread and answers the newest time that the file knows of. If that fails, the thread has ended when it
   * is told.
   */
  async start(): Promise<number> {
    const worker = this.#startWorker();
    return new Promise((resolve, reject) => {
      let reason = this.#ended(undefined);
      worker.once("message", (message: FromWriter) => {
        if (message.kind === "ready") resolve(message.clockMark);
        else if (message.kind === "not ready") reason = errorOf(message.failure);
      });
      worker.once("error", (cause) => {
        reason = this.#ended(cause);
      });
      worker.once("exit", () => reject(reason));
    });
  }

  run(batch: Batch): Promise<Done> {
    return new Promise((resolve, reject) => {
      if (this.#worker === undefined && this.#endedTooOften()) {
        reject(
          new JournalError(
            "store-unavailable",
            `${this.#settings.path}: its writer thread keeps ending; it is tried again in some seconds`,
          ),
        );
        return;
      }
      const worker = this.#worker ?? this.#startWorker();
      worker.postMessage(batch satisfies ToWriter);
      this.#waiting.push({ resolve, reject });
      // The process stays alive for as long as a batch is under way, and no longer.
      worker.ref();
    });
  }

  /** Lets the thread put everything into the database file, and waits for its end. Nothing may be under way. */
  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#worker = undefined;
    worker.ref();
    await new Promise<void>((resolve) => {
      worker.once("exit", () => resolve());
      worker.postMessage({ kind: "close" } satisfies ToWriter);
    });
  }

  #startWorker(): Worker {
    const { file, eval: isCode } = workerFile("writer-worker");
    const worker = new Worker(file, {
      ...{ workerData: this.#settings, name: "osbert sqlite writer", eval: isCode },
      // What a batch is made of is garbage when it is answered. By itself V8 takes up to 48 MB in each thread for what is as young.
      resourceLimits: { maxYoungGenerationSizeMb: youngMegabytes },
    });
    this.#worker = worker;
    worker.on("message", (message: FromWriter) => this.#hear(worker, message));
    worker.on("error", (cause) => this.#lose(worker, this.#ended(cause)));
    worker.on("exit", () => this.#lose(worker, this.#ended(undefined)));
    return worker;
  }

  #hear(worker: Worker, message: FromWriter): void {
    if (this.#worker !== worker) return;
    switch (message.kind) {
      case "ready":
        break;
      case "not ready":
        this.#lose(worker, errorOf(message.failure));
        return;
      case "done":
        this.#waiting.shift()?.resolve(message);
        break;
    }
    if (this.#waiting.length === 0) worker.unref();
  }

  #lose(worker: Worker, reason: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#ends.push(performance.now());
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
  }

  #endedTooOften(): boolean {
    const since = performance.now() - endsWithinMs;
    this.#ends = this.#ends.filter((at) => at > since);
    return this.#ends.length >= mostEnds;
  }

  #ended(cause: unknown): JournalError {
    return new JournalError(
      "store-unavailable",
      `${this.#settings.path}: its writer thread ended; whether the changes that were under way are kept is not known`,
      { cause },
    );
  }
}
