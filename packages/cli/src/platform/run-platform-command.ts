import { CommandError, type ExitStatus, exitStatuses } from "../client/exit-status.js";
import { plainJson, plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";
import type { PlatformOptions } from "./platform-options.js";
import { PlatformProblem } from "./platform-problem.js";
import { openPlatformSession, type PlatformSession } from "./platform-session.js";

/** Opens the session, does the work and ends with its status; a failure becomes a text that a person can act on. `doing` completes "could not …". */
export async function runPlatformCommand(
  options: PlatformOptions,
  surroundings: Surroundings,
  doing: string,
  work: (session: PlatformSession) => Promise<ExitStatus>,
): Promise<void> {
  try {
    surroundings.endWith(await work(await openPlatformSession(options, surroundings)));
  } catch (error) {
    reportFailure(error, options.json ?? false, surroundings, doing);
  }
}

/** Tells a failure to a person, and with `--json` to a machine. */
export function reportFailure(error: unknown, json: boolean, surroundings: Surroundings, doing: string): void {
  const { stdout, stderr } = surroundings;
  // What is no CommandError is an answer that nothing can be made of, such as one that is nested too deeply to be printed.
  const known =
    error instanceof CommandError
      ? error
      : new CommandError("unreachable", `unexpected: ${error instanceof Error ? error.name : typeof error}`);
  if (json) stdout.write(`${plainJson({ error: dataOf(known) })}\n`);
  const isProblem = known instanceof PlatformProblem;
  stderr.write(isProblem ? `error: could not ${plainText(doing)}: ${known.message}\n` : `error: ${known.message}\n`);
  surroundings.endWith(known.status);
}

function dataOf(error: CommandError): object {
  if (error instanceof PlatformProblem)
    return {
      kind: "answer",
      status: error.httpStatus,
      code: error.code,
      message: error.message,
      details: error.details,
    };
  const kind = error.status === exitStatuses.usage.status ? "usage" : "unreachable";
  return { kind, message: error.message };
}
