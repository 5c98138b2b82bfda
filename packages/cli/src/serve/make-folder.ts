import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a folder with those above it that are missing, for this user alone. Not with `recursive`: where a folder cannot have any in it
 * and says that it is not there (as under /proc), Node tries again for ever, at full speed.
 */
export async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  let folder = path;
  while ((await kindOf(folder)) === "nothing") {
    missing.unshift(folder);
    folder = dirname(folder);
  }
  if ((await kindOf(folder)) === "other") throw Object.assign(new Error(`${folder} is no folder`), { code: "ENOTDIR" });
  for (const each of missing) {
    await mkdir(each, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      // Another process was faster.
      if (error.code !== "EEXIST") throw error;
    });
  }
}

async function kindOf(path: string): Promise<"folder" | "other" | "nothing"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "other";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return "nothing";
    throw error;
  }
}
