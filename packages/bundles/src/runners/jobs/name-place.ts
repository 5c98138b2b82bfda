import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The name of a directory as a place where jobs are found. Made once, by whoever is first, and kept in the directory: that may be moved, and
 * the machine may get another name.
 */
export async function namePlace(directory: string): Promise<string> {
  const [file, made] = [join(directory, "place"), join(directory, `.${randomUUID()}`)];
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(made, randomUUID(), { mode: 0o600 });
  try {
    await link(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(made, { force: true });
  }
  return readFile(file, "utf8");
}
