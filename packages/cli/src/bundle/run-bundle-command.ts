import { RunnerError, SourceError } from "@osbert/bundles";
import { AuthorError } from "@osbert/bundles/author";
import { CommandError } from "../client/exit-status.js";
import { plainText } from "../client/plain-text.js";
import { UserError } from "../user-error.js";

/** What a command is given to end by. */
export interface BundleCommand {
  /** Ends with Ctrl-C and TERM, so that a bundle that runs is stopped before the program ends. */
  readonly signal: AbortSignal;
}

/**
 * Runs a command for authors of bundles. It returns whether all is well; if not, the status is 1. What stands in its way is told in one
 * sentence.
 */
export async function runBundleCommand(command: (context: BundleCommand) => Promise<boolean>): Promise<void> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new UserError("stopped"));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    if (!(await command({ signal: stopping.signal }))) process.exitCode = 1;
  } catch (error) {
    process.stderr.write(`${wordsFor(error, stopping.signal)}\n`);
    process.exitCode = error instanceof CommandError ? error.status : 1;
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

function wordsFor(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "stopped";
  if (error instanceof RunnerError && error.failure === "no sandbox")
    return "bubblewrap is not here, or does not work; install it, or add --unsandboxed for a bundle that you trust";
  const isForPeople = [AuthorError, CommandError, RunnerError, SourceError, UserError].some(
    (type) => error instanceof type,
  );
  if (error instanceof Error && isForPeople) return plainText(error.message);
  if (error instanceof Error && "code" in error && "syscall" in error) return plainText(error.message);
  // Nobody's mistake but ours: the stack helps to mend it.
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
