import { type Answer, LiveText } from "@osbert/server";
import { PlatformError } from "../errors.js";
import type { Instances, JournalLine } from "../platform.js";
import type { InstanceRef } from "../records/keys.js";
import { bodyOf } from "./views.js";
import { writeJson } from "./write-json.js";

export interface EventStreamLimits {
  /** Followers at a time, of all callers. */
  readonly most: number;
  /** Of one caller: whoever takes all leaves none to others. Default 100. */
  readonly mostOfOne?: number;
  /** A line that says nothing, so that a connection that broke is noticed, and none is taken for dead. */
  readonly quietMs: number;
  /** Then the caller asks anew, from where it was: someone who may no longer look does not go on for ever. */
  readonly longestMs: number;
}

const usualOfOne = 100;

export const usualStreamLimits: EventStreamLimits = { most: 1_000, quietMs: 15_000, longestMs: 3_600_000 };

/** Journals as server-sent events. Each event has the number of its line as its id. */
export class EventStreams {
  readonly #limits: EventStreamLimits;
  readonly #closing = new AbortController();
  /** By who follows. */
  readonly #open = new Map<string, number>();

  constructor(limits: EventStreamLimits = usualStreamLimits) {
    this.#limits = limits;
  }

  /** Ends all of them, and every later one at once: a server that closes waits for what it is answering. */
  close(): void {
    this.#closing.abort();
  }

  follow(instances: Pick<Instances, "follow">, ref: InstanceRef, after: number, caller: string): Answer {
    const { most, mostOfOne = usualOfOne } = this.#limits;
    const all = [...this.#open.values()].reduce((sum, open) => sum + open, 0);
    if (all >= most || (this.#open.get(caller) ?? 0) >= mostOfOne)
      throw new PlatformError("unavailable", "too many follow journals at the moment; ask again later");
    const over = new AbortController();
    const pieces = (listening: AbortSignal) => {
      const leave = this.#enter(caller, over, listening);
      return this.#pieces(instances, ref, after, over, leave);
    };
    return {
      status: 200,
      body: new LiveText(pieces, over.signal),
      headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
    };
  }

  /** Counts a follower until it has ended, in whichever way: who goes before the first piece was made has not begun for what makes them. */
  #enter(caller: string, over: AbortController, listening: AbortSignal): () => void {
    this.#open.set(caller, (this.#open.get(caller) ?? 0) + 1);
    const end = () => over.abort();
    const timer = setTimeout(end, this.#limits.longestMs);
    let isIn = true;
    const leave = () => {
      if (!isIn) return;
      isIn = false;
      clearTimeout(timer);
      this.#closing.signal.removeEventListener("abort", end);
      end();
      const left = (this.#open.get(caller) ?? 1) - 1;
      if (left === 0) this.#open.delete(caller);
      else this.#open.set(caller, left);
    };
    listening.addEventListener("abort", leave, { once: true });
    this.#closing.signal.addEventListener("abort", end, { once: true });
    if (this.#closing.signal.aborted) end();
    return leave;
  }

  async *#pieces(
    instances: Pick<Instances, "follow">,
    ref: InstanceRef,
    after: number,
    over: AbortController,
    leave: () => void,
  ): AsyncGenerator<string> {
    const { quietMs } = this.#limits;
    const lines = instances.follow(ref, after, over.signal)[Symbol.asyncIterator]();
    try {
      // Sent at once: whoever listens knows that it is heard, also while nothing happens.
      yield ": following\n\n";
      let next = lines.next();
      while (!over.signal.aborted) {
        const line = await within(next, quietMs, over.signal);
        if (line === "ended") return;
        if (line === "quiet") {
          yield ": quiet\n\n";
          continue;
        }
        if (line.done === true) return;
        yield eventOf(line.value);
        next = lines.next();
      }
    } finally {
      leave();
      // Not waited for: it hears the signal, and nobody is interested in what it says then.
      void Promise.resolve(lines.return?.()).catch(() => undefined);
    }
  }
}

/** JSON has no line breaks of its own. */
function eventOf(line: JournalLine): string {
  return `id: ${line.seq}\ndata: ${writeJson(bodyOf.line(line))}\n\n`;
}

/** What comes first: the next line, so much time without one, or the end. */
async function within(
  next: Promise<IteratorResult<JournalLine>>,
  quietMs: number,
  over: AbortSignal,
): Promise<IteratorResult<JournalLine> | "quiet" | "ended"> {
  let timer: NodeJS.Timeout | undefined;
  let ended: (() => void) | undefined;
  const otherwise = new Promise<"quiet" | "ended">((resolve) => {
    timer = setTimeout(() => resolve("quiet"), quietMs);
    ended = () => resolve("ended");
    over.addEventListener("abort", ended, { once: true });
  });
  try {
    return await Promise.race([next, otherwise]);
  } catch (error) {
    // What follows a journal may say in this way that it was told to stop.
    if (over.aborted) return "ended";
    throw error;
  } finally {
    clearTimeout(timer);
    if (ended !== undefined) over.removeEventListener("abort", ended);
  }
}
