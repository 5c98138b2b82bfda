import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { listened } from "@osbert/journal/testing";
import { errorFacts } from "@osbert/server/observe";
import type { BrokerEvent } from "../observe/event.js";

/** What an operation that does not run waits for. */
interface Wait {
  readonly instance: string;
  readonly verb: string;
  readonly until: number;
  readonly error: string | null;
}

/** What the watch looks at. */
export interface ClockWatchOptions {
  /** Operations that run now. */
  readonly running: () => number;
  /** The clock that the operations wait for. */
  readonly now: () => number;
}

/** So often in a row nothing may move before a request counts as stuck, and so long between two looks. */
const looks = 10;
const betweenLooksMs = 20;
/** Turns of the event loop in which all that waits for nothing but its turn has had it. */
const turns = 20;

/**
 * Notices a request that a test awaits and that only the clock could answer: the test, which alone moves it, would hang without a
 * word. A step that is busy outside is waited for, however long it takes.
 */
export class ClockWatch {
  readonly #options: ClockWatchOptions;
  readonly #waits = new Map<string, Wait>();
  #advancing = 0;
  #ended = false;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /** Learns what waits. */
  observe(event: BrokerEvent): void {
    if (event.kind === "waiting" || event.kind === "retrying") {
      const { operation, instance, operationKind: verb, until } = event;
      const { type, message } = event.kind === "retrying" ? errorFacts(event.error) : { type: null, message: "" };
      this.#waits.set(operation, { instance, verb, until, error: type === null ? null : `${type}: ${message}` });
    } else if (event.kind === "attempt started" || event.kind === "settled") this.#waits.delete(event.operation);
  }

  /** While `work` moves the clock, nobody is stuck. */
  async advancing(work: () => Promise<void>): Promise<void> {
    this.#advancing += 1;
    await work().finally(() => {
      this.#advancing -= 1;
    });
  }

  /** The answer to a request on an instance; rejects if it is awaited and cannot come. */
  answered<T>(instance: string, answer: Promise<T>): Promise<T> {
    let isAnswered = false;
    const answeredOrStuck = new Promise<T>((resolve, reject) => {
      answer.then(resolve, reject).finally(() => {
        isAnswered = true;
      });
      const isOver = () => isAnswered || this.#ended;
      const wait = () => (asked.isListenedTo ? this.#waitOf(instance) : undefined);
      setImmediate(() => void this.#stuck(wait, isOver).then((error) => error && reject(error)));
    });
    const asked = listened(answeredOrStuck);
    return asked;
  }

  /** Nobody waits for anything any more. */
  end(): void {
    this.#ended = true;
  }

  async #stuck(waitNow: () => Wait | undefined, isOver: () => boolean): Promise<Error | undefined> {
    for (let count = 0; count < turns && !isOver(); count++) await turn();
    let wait = waitNow();
    for (let look = 0; look < looks; look = wait === undefined ? 0 : look + 1) {
      if (isOver()) return undefined;
      // What moves by itself keeps the process alive by itself; who is stuck has to be told before it ends.
      await pause(betweenLooksMs, undefined, { ref: wait !== undefined });
      wait = waitNow();
    }
    return isOver() || wait === undefined ? undefined : new Error(sentence(wait, this.#options.now()));
  }

  #waitOf(instance: string): Wait | undefined {
    if (this.#advancing > 0 || this.#options.running() > 0) return undefined;
    return [...this.#waits.values()].find((wait) => wait.instance === instance);
  }
}

function sentence({ instance, verb, until, error }: Wait, now: number): string {
  const ms = Math.max(0, until - now);
  const why = error === null ? `goes on in ${ms} ms` : `failed with "${error}" and is tried again in ${ms} ms`;
  return (
    `would wait for the clock: use advance. The ${verb} of ${instance} ${why}, and the clock of a test stands still; ` +
    `ask without await, advance(${ms}), then await the answer`
  );
}
