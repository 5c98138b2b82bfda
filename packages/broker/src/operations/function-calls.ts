import { setTimeout as after } from "node:timers/promises";
import { type Look, limits, type PollOptions, RetryLater, type ReturnsJson } from "@osbert/journal";
import type { ForcedResult, PassedOver } from "../records/forced-result.js";
import type { DeprovisionOperationInput } from "../records/instance-resource.js";
import type { Work } from "../service/service.js";

/** How the functions of an author are called while an instance is deprovisioned. */
export interface FunctionCalls {
  /** The service is not offered here: goes on without its functions, or throws. */
  withoutService(error: unknown): undefined;
  /** `bend` makes of the author's work what this way of calling needs. */
  call(name: string, run: (bend: (work: Work) => Work) => Promise<unknown>): Promise<void>;
  result(): ForcedResult | null;
}

/** An error ends the attempt, as everywhere. */
const plain: FunctionCalls = {
  withoutService(error) {
    throw error;
  },
  async call(_name, run) {
    await run((work) => work);
  },
  result: () => null,
};

const mostPassedOver = 100;
const longestError = 500;

/**
 * By force every function is called once, and whatever comes of it is noted and passed over: the instance goes in any case. A wait of
 * the author's is waited for here, within the time for all of them; a process that dies in the meantime begins again with the first
 * function that has not been called to its end.
 */
export function functionCalls(operation: {
  readonly input: DeprovisionOperationInput | null;
  readonly signal: AbortSignal;
}): FunctionCalls {
  const force = operation.input?.force;
  if (force === undefined) return plain;
  const passedOver: PassedOver[] = [];
  const note = (call: string, error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    if (passedOver.length < mostPassedOver) passedOver.push({ call, error: message.slice(0, longestError) });
  };
  const late = new AbortController();
  const signal = AbortSignal.any([operation.signal, late.signal]);
  const endsAt = performance.now() + force.withinMs;
  const bend = (work: Work): Work => ({
    ...work,
    signal,
    sleep: (_name, ms) => after(ms, undefined, { signal }),
    poll: <T>(
      name: string,
      look: ((look: Look) => Promise<T | undefined> | T | undefined) & ReturnsJson<T>,
      options: PollOptions,
    ) => {
      const lookHere = () => pollHere(look, options, signal);
      return work.step<T>(name, lookHere as typeof lookHere & ReturnsJson<T>);
    },
  });
  return {
    withoutService(error) {
      if (!(error instanceof RetryLater)) throw error;
      note("the functions of the service", `were not called: ${error.message}`);
      return undefined;
    },
    async call(name, run) {
      const leftMs = endsAt - performance.now();
      if (leftMs <= 0) return note(name, new Error("was not called: the time for all functions was over"));
      const timer = new AbortController();
      const called = run(bend);
      // It may go on after it was passed over; what it throws then is nobody's business.
      called.catch(() => undefined);
      try {
        const over = after(leftMs, "over" as const, { signal: timer.signal });
        if ((await Promise.race([called.then(() => "done" as const), over])) === "over")
          note(name, new Error(`had not ended after ${Math.round(force.withinMs / 1_000)} seconds`));
      } catch (error) {
        // Cancelled, or the lease is lost: the journal ends this attempt, whatever is returned.
        note(name, error);
      } finally {
        timer.abort();
        if (performance.now() >= endsAt) late.abort(new Error("the time for a forced deletion is over"));
      }
    },
    result: () => ({ forced: passedOver }),
  };
}

/** A poll that stays in this process: as a step that ends when there is something to see. */
async function pollHere<T>(
  look: (look: Look) => Promise<T | undefined> | T | undefined,
  { everyMs }: PollOptions,
  signal: AbortSignal,
): Promise<T> {
  const began = performance.now();
  for (let looks = 0; ; looks++) {
    let pauseMs: number | undefined;
    try {
      const seen = await look({ looks, elapsedMs: performance.now() - began, signal });
      if (seen !== undefined) return seen;
    } catch (error) {
      if (!(error instanceof RetryLater)) throw error;
      pauseMs = error.afterMs;
    }
    pauseMs ??= typeof everyMs === "function" ? everyMs(looks + 1) : everyMs;
    await after(Math.max(limits.shortestPauseMs, pauseMs), undefined, { signal });
  }
}
