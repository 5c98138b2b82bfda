import { failureOf } from "./command-failure.js";
import type { ExitStatus } from "./exit-status.js";
import type { ParameterSource } from "./parameters.js";
import { plainJson } from "./plain-text.js";
import { type BrokerOptions, openSession, type Session } from "./session.js";
import type { Surroundings } from "./surroundings.js";

/**
 * Opens the session, does the work and ends with its status. Every failure becomes a text that a person can act on, and with `--json` a
 * document with `error` too. `doing` completes "could not …".
 */
export async function runCommand(
  options: BrokerOptions & { readonly parameters?: readonly ParameterSource[] },
  surroundings: Surroundings,
  doing: string,
  work: (session: Session) => Promise<ExitStatus>,
): Promise<void> {
  let session: Session | undefined;
  try {
    session = await openSession(options, surroundings);
    surroundings.endWith(await work(session));
  } catch (error) {
    const { url, login } = session ?? {};
    const failure = failureOf(error, { doing, url, login, parameters: options.parameters });
    if (options.json) surroundings.stdout.write(`${plainJson({ error: failure.data })}\n`);
    surroundings.stderr.write(failure.text);
    surroundings.endWith(failure.status);
  }
}
