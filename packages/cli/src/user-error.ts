import { SettingsError } from "./settings/settings-error.js";

/** Something that went wrong and that its message tells whole: a person gets this sentence, and no stack. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** What was written wrongly, in a file or at the command line. */
const misuse = 2;
const failure = 1;

/**
 * Runs a command. What goes wrong is told on standard error, in sentences where it is a person's mistake, and makes the status: 2 if
 * the settings must be changed, else 1.
 */
export async function reportErrors(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    process.stderr.write(`${wordsFor(error)}\n`);
    process.exitCode = error instanceof SettingsError ? misuse : failure;
  }
}

function wordsFor(error: unknown): string {
  if (error instanceof SettingsError || error instanceof UserError) return error.message;
  // Nobody's mistake but ours: the stack helps to mend it.
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
