import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { followPage } from "./follow-page.js";
import { provideThisNode } from "./node-versions.js";
import { pack } from "./pack.js";
import { required } from "./required.js";
import { type Snippet, snippetsOf } from "./snippets.js";

// The tutorial, followed word by word, with the packages that users install.

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pageOf = (name: string) => snippetsOf(readFileSync(join(root, "docs", name), "utf8"));
const snippets = pageOf("tutorial.md");

test("the tutorial works, word by word", { timeout: 600_000 }, () => follow(snippets, () => ({})));

test("bundles in a folder work, word by word", { timeout: 600_000 }, async () => {
  const sandbox = spawnSync("bwrap", ["--unshare-user", "--ro-bind", "/", "/", "true"]).status === 0;
  const isComplete = sandbox && ["/usr/bin/node", "/usr/local/bin/node"].some((path) => existsSync(path));
  const leftOut = { leftOut: "they need bubblewrap, PostgreSQL, and Node.js in /usr" };
  const postgresUrl = inject("postgresUrl");
  const found = isComplete && postgresUrl !== null ? { server: new URL(postgresUrl) } : leftOut;
  const complete = required<{ readonly server: URL }>("bundles in a folder", found);
  if (complete === undefined) return;
  const { hostname, port, username, password } = complete.server;
  await follow(pageOf("guides/bundles-in-a-folder.md"), (checkout) => {
    cpSync(join(root, "examples/postgres-bundle"), join(checkout, "examples/postgres-bundle"), { recursive: true });
    mkdirSync(join(checkout, "../my-bundles"));
    const file = join(checkout, "../my-bundles/server-password");
    writeFileSync(file, `${decodeURIComponent(password)}\n`, { mode: 0o600 });
    return { DATABASE_HOST: hostname, DATABASE_PORT: port, DATABASE_USER: username };
  });
});

/** `prepare` does what a reader has done before, of the blocks that are marked `once`; it answers with what is in the environment then. */
async function follow(
  page: readonly Snippet[],
  prepare: (checkout: string) => Readonly<Record<string, string>>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "osbert-tutorial-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const checkout = join(folder, "osbert");
  pack(join(checkout, "tarballs"));
  const { env } = await provideThisNode();
  const url = `http://127.0.0.1:${await freePort()}`;
  const answers = `fetch("${url}/healthz").then(() => process.exit(0), () => process.exit(1))`;
  await followPage(page, {
    folder: checkout,
    env: { ...env, ...prepare(checkout), PORT: new URL(url).port, OSBERT_URL: url, NO_COLOR: "1" },
    answers: `node -e '${answers}'`,
  });
}

test("the tutorial has files, commands and what they print", () => {
  const count = (language: string) => snippets.filter((snippet) => snippet.language === language).length;
  expect([count("ts"), count("sh"), count("text")].every((number) => number >= 4)).toBe(true);
  for (const { language, marks } of snippets) if (language === "ts") expect(marks.get("file")).toBeDefined();
});

/** It was free a moment ago: the tutorial's broker and client have to be told one number before either runs. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
