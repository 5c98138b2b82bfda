import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { rooms } from "./arrows.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

test("every file that ARCHITECTURE.md names is there", () => {
  const named = [...page.matchAll(/[\w-]+\/src\/[\w./-]+\.ts/g)].map(([path]) => path);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((path) => !existsSync(join(root, "packages", path)))).toEqual([]);
});

test.each(["broker", "bundles", "platform", "kubernetes"])(
  "the picture of %s has the layers of the table, those above before those that they import",
  (room) => {
    const [, picture = ""] = new RegExp(`## Inside ${room}\\n+\`\`\`\\n(.*?)\`\`\``, "s").exec(page) ?? [];
    const drawn = picture
      .split("\n")
      .flatMap((line) => (/^([a-z]+(?:[ ,]+[a-z]+)?) {2,}/.exec(line)?.[1] ?? "").match(/[a-z]+/g) ?? []);
    const { folders = {} } = rooms[room] ?? {};
    const beside = { broker: ["observe", "broker.ts"], platform: ["platform.ts"] }[room] ?? [];
    expect([...drawn].sort()).toEqual(
      Object.keys(folders)
        .filter((name) => !beside.includes(name))
        .sort(),
    );
    for (const [folder, imports] of Object.entries(folders).filter(([name]) => !beside.includes(name)))
      for (const below of imports.filter((name) => !beside.includes(name)))
        expect(drawn.indexOf(below), `${folder} imports ${below}`).toBeGreaterThan(drawn.indexOf(folder));
  },
);
