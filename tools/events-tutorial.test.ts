import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { takePort } from "./cluster/ports.js";
import { provideProgram } from "./cluster/programs.js";
import { clusterTimeoutMs } from "./cluster/test-cluster.js";
import { followPage } from "./follow-page.js";
import { required } from "./required.js";
import type { LeftOut } from "./servers.js";
import { type Snippet, snippetsOf } from "./snippets.js";

// The tutorial of events, followed word by word, with a cluster that the page itself starts. The programs that a reader builds are those of this
// checkout; the two ports that the page names are others here, because somebody may have them.

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const snippets = snippetsOf(readFileSync(join(root, "docs/events-tutorial.md"), "utf8"));

test("the tutorial of events works, word by word", { timeout: clusterTimeoutMs }, async () => {
  if (required("the tutorial of events", await buildPrograms()) === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), "osbert-events-tutorial-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const checkout = join(folder, "osbert");
  mkdirSync(checkout);
  for (const name of ["node_modules", "package.json", "packages", "tools"])
    symlinkSync(join(root, name), join(checkout, name));
  const [port, receiverPort] = [await takePort(), await takePort()];
  const onPorts = (code: string) => code.replaceAll("8080", String(port)).replaceAll("8090", String(receiverPort));
  const page = snippets.map((snippet): Snippet => ({ ...snippet, code: onPorts(snippet.code) }));
  await followPage(page, {
    folder: checkout,
    env: { ...surroundings(), PORT: String(port), OSBERT_ADMIN_URL: `http://127.0.0.1:${port}`, NO_COLOR: "1" },
    // Before it has heard of applications, the broker has no catalog to tell.
    answers: "osbert catalog > /dev/null 2>&1",
  });
});

test("the tutorial of events has files, commands and what they print", () => {
  const count = (language: string) => snippets.filter((snippet) => snippet.language === language).length;
  expect([count("yaml"), count("sh"), count("text")].every((number) => number >= 5)).toBe(true);
  for (const { language, marks } of snippets) if (language === "yaml") expect(marks.get("file")).toBeDefined();
});

/** What the page has built before. */
async function buildPrograms(): Promise<{ readonly built: true } | LeftOut> {
  for (const name of ["kubernetes", "knative"] as const) {
    const folder = await provideProgram(name, console.log);
    if (typeof folder !== "string") return folder;
  }
  return { built: true };
}

/** Of a reader who has set nothing of Osbert's, and whose traffic to this machine goes through no proxy. */
function surroundings(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("OSBERT_") || name === "OSBERT_CACHE");
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  return { ...Object.fromEntries(others), PATH: path, no_proxy: "127.0.0.1", NO_PROXY: "127.0.0.1" };
}
