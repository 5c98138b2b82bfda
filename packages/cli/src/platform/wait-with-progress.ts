import { CommandError, exitStatuses } from "../client/exit-status.js";
import { plainText } from "../client/plain-text.js";
import { startProgress } from "../client/progress.js";
import { PlatformProblem } from "./platform-problem.js";
import type { PlatformSession } from "./platform-session.js";

/** One look at what is waited for: its end, or news for whoever waits. */
export type Look<End> =
  | { readonly kind: "ended"; readonly end: End }
  | { readonly kind: "open"; readonly news: string };

/** Why nobody waits any longer. */
export type WaitedEnough = "interrupted" | "timed out";

const pauseMs = 500;
/** As long as a platform may take to start again while a command waits. */
const longestAbsenceMs = 60_000;

/**
 * Looks again and again, with progress for people, until it has ended, the time is up, or Ctrl-C, which ends the waiting and nothing else. A
 * platform that is being started anew is waited for: to ask changes nothing. `timeout` is in seconds.
 */
export async function waitWithProgress<End>(
  session: PlatformSession,
  what: string,
  timeout: number | undefined,
  look: () => Promise<Look<End>>,
): Promise<{ readonly kind: "ended"; readonly end: End } | { readonly kind: WaitedEnough }> {
  const { surroundings } = session;
  const { now } = surroundings;
  const progress = startProgress(plainText(what), surroundings);
  const until = timeout === undefined ? Infinity : now() + timeout * 1_000;
  const interrupted = new AbortController();
  const endListening = surroundings.onInterrupt(() => interrupted.abort());
  let heardAt = now();
  try {
    for (;;) {
      try {
        const seen = await look();
        if (seen.kind === "ended") return seen;
        heardAt = now();
        progress.tell(seen.news);
      } catch (error) {
        if (!isAbsence(error) || now() - heardAt > longestAbsenceMs) throw error;
        progress.tell("the platform does not answer; asking again");
      }
      if (!interrupted.signal.aborted && now() < until) await pause(pauseMs, interrupted.signal);
      if (interrupted.signal.aborted) return { kind: "interrupted" };
      if (now() >= until) return { kind: "timed out" };
    }
  } finally {
    endListening();
    progress.stop();
  }
}

/** Resolves after a time, or as soon as the signal is heard. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Nobody answers, or somebody in front of it says that it is not there now. */
function isAbsence(error: unknown): boolean {
  if (error instanceof PlatformProblem) return [502, 503, 504].includes(error.httpStatus);
  return error instanceof CommandError && error.status === exitStatuses.unreachable.status;
}
