import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

// Every TypeScript snippet of the documentation is a program: it is compiled as its reader would compile it.

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const scratch = join(root, "node_modules", ".osbert-docs");

const pages = [
  "README.md",
  ...readdirSync(join(root, "packages")).map((name) => `packages/${name}/README.md`),
  ...markdownBelow(join(root, "docs")),
];

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("every TypeScript snippet of the documentation compiles", () => {
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  const files = pages.flatMap((page) => snippetsOf(page).map(({ line, code }) => write(page, line, code)));
  expect(files.length).toBeGreaterThan(4);
  writeFileSync(
    join(scratch, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.base.json", compilerOptions, include: ["*.ts"] }),
  );
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const { stdout, status } = spawnSync(tsc, ["-p", scratch], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(status).toBe(0);
});

test("the complete broker of the README has 40 lines or fewer", () => {
  const [first] = snippetsOf("README.md");
  expect(first?.code.trimEnd().split("\n").length).toBeLessThanOrEqual(40);
});

const compilerOptions = {
  noEmit: true,
  composite: false,
  declaration: false,
  declarationMap: false,
  incremental: false,
  lib: ["es2023", "dom"],
  noUnusedLocals: false,
};

function snippetsOf(page: string): { readonly line: number; readonly code: string }[] {
  const text = read(page);
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: text.slice(0, match.index).split("\n").length + 1,
    code: match[1] ?? "",
  }));
}

/** Named for its place, so that an error leads there. */
function write(page: string, line: number, code: string): string {
  const file = join(scratch, `${page.replaceAll(/[^A-Za-z0-9]/g, "_")}_line_${line}.ts`);
  writeFileSync(file, `${code}\nexport {};\n`);
  return file;
}

function read(page: string): string {
  try {
    return readFileSync(join(root, page), "utf8");
  } catch {
    return "";
  }
}

function markdownBelow(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => relative(root, join(folder, name)));
  } catch {
    return [];
  }
}
