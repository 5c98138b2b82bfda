import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The cells of the table's rows, by the title of their column. */
function rowsOf(page: string): readonly Readonly<Record<string, string>>[] {
  let titles: readonly string[] = [];
  return page.split("\n").flatMap((line, index, lines) => {
    if (!line.startsWith("| ")) return [];
    const cells = line
      .split("|")
      .map((cell) => cell.trim())
      .slice(1, -1);
    if (lines[index + 1]?.startsWith("|---")) {
      titles = cells;
      return [];
    }
    return [Object.fromEntries(cells.map((cell, column) => [titles[column] ?? "", cell]))];
  });
}

function sources(): string {
  const packages = join(root, "packages");
  const files = readdirSync(packages, { recursive: true, encoding: "utf8" });
  const own = files.filter((file) => /^[^/]+\/src\/.*\.ts$/.test(file));
  return own.map((file) => readFileSync(join(packages, file), "utf8")).join("\n");
}

const rows = rowsOf(readFileSync(join(root, "docs", "glossary.md"), "utf8"));

test("every name that the glossary says is in the code is in the code", () => {
  const names = rows.flatMap((row) => [...(row["in code"] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
  expect(names.length).toBeGreaterThan(40);
  const words = new Set(sources().match(/\w+/g));
  expect(names.filter((name) => !words.has(name))).toEqual([]);
});

test("no word is explained twice", () => {
  const words = rows.flatMap((row) => (row.word ?? "").split(", ")).filter((word) => word !== "");
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
});
