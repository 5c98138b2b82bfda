import { CommandError } from "../client/exit-status.js";
import { plainText } from "../client/plain-text.js";
import type { Surroundings } from "../client/surroundings.js";

/** Nobody types more than a name. */
const longestLine = 2_000;

/**
 * Asks before what cannot be undone. On a terminal the name has to be typed; where nobody can be asked, `--yes` must say that
 * whoever wrote the command meant it.
 */
export async function confirm(
  { stdin, stderr }: Surroundings,
  { what, name, yes }: { readonly what: string; readonly name: string; readonly yes: boolean },
): Promise<void> {
  if (yes) return;
  if (!stdin.isTTY) throw new CommandError("usage", `this ${what}. It cannot be undone; say --yes if it is meant`);
  stderr.write(`This ${what}. It cannot be undone.\nType ${plainText(name)} to go on: `);
  if ((await firstLine(stdin)).trim() !== name) throw new CommandError("usage", "not confirmed; nothing was changed");
}

async function firstLine(stdin: Surroundings["stdin"]): Promise<string> {
  let text = "";
  for await (const chunk of stdin) {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    if (/[\r\n]/.test(text) || text.length > longestLine) break;
  }
  return text.split(/[\r\n]/, 1)[0] ?? "";
}
