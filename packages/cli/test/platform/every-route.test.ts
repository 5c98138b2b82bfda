import { readdir, readFile } from "node:fs/promises";
import { apiRoutes } from "@osbert/platform/api";
import { expect, test } from "vitest";

/** What no command needs: the document is for programs, and these are parts of what show and bindings tell. */
const forPrograms = new Set(["openApi", "binding"]);

test("everything that the API can do has a command that asks for it", async () => {
  const folder = new URL("../../src/platform/", import.meta.url);
  const files = (await readdir(folder)).filter((name) => name.endsWith(".ts"));
  const sources = (await Promise.all(files.map((name) => readFile(new URL(name, folder), "utf8")))).join("\n");
  const missing = apiRoutes
    .map(([, , name]) => name)
    .filter((name) => !forPrograms.has(name) && !sources.includes(`"${name}"`));
  expect(missing).toEqual([]);
});
