import { open } from "node:fs/promises";
import { CommandError } from "./exit-status.js";
import type { Surroundings } from "./surroundings.js";

/** Nothing that a command reads needs more. */
const mostBytes = 8 * 1024 * 1024;

/** The text of a file, or of the standard input for `-`. */
export async function readBounded(file: string, { stdin }: Pick<Surroundings, "stdin">): Promise<string> {
  const name = file === "-" ? "the standard input" : file;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    const source = file === "-" ? stdin : (await open(file)).createReadStream();
    for await (const chunk of source) {
      const part = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Uint8Array);
      bytes += part.byteLength;
      if (bytes > mostBytes) throw new CommandError("usage", `${name} has more than ${mostBytes} bytes`);
      chunks.push(part);
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code = "unreadable" } = error as NodeJS.ErrnoException;
    throw new CommandError("usage", `${name} cannot be read (${code})`, { cause: error });
  }
  return Buffer.concat(chunks).toString("utf8");
}
