import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { authorEntries, publicNames } from "./public-names.js";
import { type Snippet, shows, snippetsOf } from "./snippets.js";

// Every TypeScript snippet of the documentation, and every example in a doc comment, is a program: it is compiled as its reader would compile it. One that is marked with
// `run` is also run, and must print what the block of text after it shows. One with `file=name` is a file that later snippets of its
// page may import. The commands of the tutorial are run by tutorial.test.ts and events-tutorial.test.ts, those of the client's guide by the tests of the program.

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const scratch = join(root, "node_modules", ".osbert-docs");
/** By its path: the programs run in folders where the name leads nowhere. */
const tsx = createRequire(import.meta.url).resolve("tsx");

const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "examples/README.md",
  ...readdirSync(join(root, "packages")).map((name) => `packages/${name}/README.md`),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
].filter((page) => existsSync(join(root, page)));

/** Those that an editor shows with a name. */
const examples = authorEntries
  .flatMap(publicNames)
  .filter(({ doc }) => doc?.includes("@example"))
  .flatMap(({ name, doc }) => programsOf(name, (doc ?? "").replaceAll(/^\s*\* ?/gm, "")));

const programs = [...pages.flatMap((page) => programsOf(page, read(page))), ...examples];

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("every TypeScript snippet of the documentation compiles", () => {
  rmSync(scratch, { recursive: true, force: true });
  for (const program of programs) write(program);
  expect(programs.length).toBeGreaterThan(4);
  expect(examples.length).toBeGreaterThan(4);
  writeFileSync(
    join(scratch, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.base.json", compilerOptions, include: ["**/*.ts"] }),
  );
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const { stdout, status } = spawnSync(tsc, ["-p", scratch], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(status).toBe(0);
});

describe("a snippet that is marked to be run prints what the page shows", () => {
  test.each(programs.filter(({ snippet }) => snippet.marks.has("run")))(
    "$page, line $snippet.line",
    async (program) => {
      const file = write(program);
      const folder = mkdtempSync(join(tmpdir(), "osbert-docs-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", tsx, file], {
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      const [printed, complaints, [status]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "close") as Promise<[number | null]>,
      ]);
      expect(complaints).toBe("");
      expect(status).toBe(0);
      if (program.shown !== undefined) expect(shows(printed, program.shown), printed).toBe(true);
    },
  );
});

test("no snippet is hidden from these tests by its indentation", () => {
  expect(pages.filter((page) => /^[ \t]+```/m.test(read(page)))).toEqual([]);
});

test("the complete broker of the README has 40 lines or fewer", () => {
  const first = programs.find(({ page }) => page === "README.md");
  expect(first?.snippet.code.trimEnd().split("\n").length).toBeLessThanOrEqual(40);
});

test.each(pages)("every link of %s within the project leads somewhere", (page) => {
  const withoutCode = read(page).replaceAll(/^```[\s\S]*?^```$/gm, "");
  const links = [...withoutCode.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  for (const link of links.filter((candidate) => !/^[a-z]+:/.test(candidate))) {
    const [path = "", anchor] = link.split("#", 2);
    const target = path === "" ? page : relative(root, join(root, dirname(page), path));
    expect(existsSync(join(root, target)), link).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(read(target)), link).toContain(anchor);
  }
});

test("every page below docs/ can be reached from its index", () => {
  const reached = new Set(["docs/README.md"]);
  for (const page of reached) {
    for (const [, path = ""] of read(page).matchAll(/\]\(([^)\s#:]+\.md)[^)]*\)/g))
      reached.add(relative(root, join(root, dirname(page), path)));
  }
  expect(pages.filter((page) => page.startsWith("docs/") && !reached.has(page))).toEqual([]);
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

/** A snippet as a program: with the files of its page that it may import, and the output that the page shows. */
interface Program {
  readonly page: string;
  readonly snippet: Snippet;
  readonly beside: ReadonlyMap<string, string>;
  readonly shown: string | undefined;
}

function programsOf(page: string, markdown: string): readonly Program[] {
  const files = new Map<string, string>();
  const snippets = snippetsOf(markdown);
  return snippets.flatMap((snippet, at): Program[] => {
    if (snippet.language !== "ts") return [];
    const name = snippet.marks.get("file");
    if (name !== undefined) files.set(name, snippet.code);
    const next = snippets[at + 1];
    return [{ page, snippet, beside: new Map(files), shown: next?.language === "text" ? next.code : undefined }];
  });
}

/** Named for its place, so that an error leads there. */
function write({ page, snippet, beside }: Program): string {
  const place = `${page.replaceAll(/[^A-Za-z0-9]/g, "_")}_line_${snippet.line}`;
  const name = snippet.marks.get("file");
  const folder = name === undefined && beside.size === 0 ? scratch : join(scratch, place);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(scratch, "package.json"), JSON.stringify({ type: "module" }));
  for (const [file, code] of beside) writeFileSync(join(folder, file), code);
  const file = join(folder, name ?? `${place}.ts`);
  writeFileSync(file, `${snippet.code}\nexport {};\n`);
  return file;
}

function anchorsOf(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function read(page: string): string {
  return readFileSync(join(root, page), "utf8");
}
