import { failureOf } from "../client/command-failure.js";
import type { ExitStatus } from "../client/exit-status.js";
import { plainJson } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import { type AdminOptions, type AdminSession, openAdminSession } from "./admin-session.js";

/** Opens the session, does the work and ends with its status; a failure becomes a text that a person can act on. */
export async function runAdminCommand(
  options: AdminOptions,
  surroundings: Surroundings,
  doing: string,
  work: (session: AdminSession) => Promise<ExitStatus>,
): Promise<void> {
  let session: AdminSession | undefined;
  try {
    session = await openAdminSession(options, surroundings);
    surroundings.endWith(await work(session));
  } catch (error) {
    const failure = failureOf(error, { doing, url: session?.url, login: undefined });
    if (options.json) surroundings.stdout.write(`${plainJson({ error: failure.data })}\n`);
    surroundings.stderr.write(failure.text.replaceAll("OSBERT_URL", "OSBERT_ADMIN_URL"));
    surroundings.endWith(failure.status);
  }
}
