import { type ExitStatus, exitStatuses } from "../client/exit-status.js";
import type { PlatformClient, PlatformSession } from "./platform-session.js";

/** Asks once and prints the answer: with --json as it came, else as a person reads it, who may need its text for numbers beyond 2^53. */
export async function showAnswer<Answer>(
  session: PlatformSession,
  asked: (ask: PlatformClient) => Promise<Answer>,
  human: (answer: Answer, text: string) => string,
): Promise<ExitStatus> {
  const { ask, text } = session.askWith({});
  const answer = await asked(ask);
  session.surroundings.stdout.write(session.json ? `${text()}\n` : human(answer, text()));
  return exitStatuses.succeeded.status;
}
