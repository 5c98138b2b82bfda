import type { System } from "../src/settings/system.js";

/** A world of a few files and variables, in the folder /place. */
export function systemWith(
  files: Readonly<Record<string, string | Buffer>>,
  environment: Readonly<Record<string, string>> = {},
): System {
  return {
    environment,
    folder: "/place",
    readFile(path, mostBytes) {
      const content = Object.hasOwn(files, path) ? files[path] : undefined;
      if (content === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
      const bytes = Buffer.from(content);
      if (bytes.length > mostBytes) throw new Error(`has more than ${mostBytes} bytes`);
      return bytes;
    },
  };
}
