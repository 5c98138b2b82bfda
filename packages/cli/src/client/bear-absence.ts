import { setTimeout as pause } from "node:timers/promises";
import { BrokerAnswerError } from "@osbert/protocol/client";
import { errorCodeOf } from "./error-code.js";
import { noAnswer } from "./progress.js";
import type { Session } from "./session.js";

/** As long as a broker may take to start again while a command waits for it. */
const longestAbsenceMs = 30_000;
const pauseMs = 500;

/**
 * Asks again while the broker is not there: it is being restarted, or what stands in front of it says so. Only for what changes nothing.
 * Who waits for an operation waits for the broker, too.
 */
export async function bearAbsence<T>(session: Session, ask: () => Promise<T>): Promise<T> {
  const { stderr, now } = session.surroundings;
  const giveUpAt = now() + longestAbsenceMs;
  for (let asked = 1; ; asked++) {
    try {
      return await ask();
    } catch (error) {
      const leftMs = giveUpAt - now();
      if (!isAbsence(error) || leftMs <= 0) throw error;
      if (asked === 1) stderr.write(`${noAnswer} for ${longestAbsenceMs / 1_000} s\n`);
      await pause(Math.min(Math.max(pauseMs, error.retryAfterMs ?? 0), leftMs));
    }
  }
}

function isAbsence(error: unknown): error is BrokerAnswerError {
  if (!(error instanceof BrokerAnswerError)) return false;
  if (error.status !== null) return [502, 503, 504].includes(error.status);
  return ["ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(errorCodeOf(error.cause));
}
