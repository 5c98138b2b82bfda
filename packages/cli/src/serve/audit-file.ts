import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Audit } from "@osbert/broker/admin";
import { UserError } from "../user-error.js";

/**
 * The audit trail as a file of JSON Lines, one entry a line. When it resolves, the lines are on the disk. The file is opened for each
 * batch, so that it may be moved away at any time; the next batch begins a new one.
 *
 * The order of effects: a line end, if the last batch was cut short by a crash; the lines; then they are made durable, and the file's
 * name if it is new. Killed anywhere in between, the entries are still in the store and are written again.
 */
export async function auditFile(path: string): Promise<Audit> {
  // Now, and not when the first entries are due, which is weeks from now.
  await append(path, "").catch((cause: NodeJS.ErrnoException) => {
    throw new UserError(`audit.file ${path} cannot be written (${cause.code})`, { cause });
  });
  let last: Promise<void> = Promise.resolve();
  return (entries) => {
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
    // One after the other: the end of the file is looked at before it is written to.
    last = last.catch(() => undefined).then(() => append(path, lines));
    return last;
  };
}

async function append(path: string, lines: string): Promise<void> {
  const file = await open(path, "a+", 0o600);
  try {
    const { size } = await file.stat();
    const end = Buffer.alloc(1);
    if (size > 0) await file.read(end, 0, 1, size - 1);
    await file.appendFile(size > 0 && end.toString() !== "\n" ? `\n${lines}` : lines);
    await file.sync();
    if (size === 0) await syncFolder(dirname(path));
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
