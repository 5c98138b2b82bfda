import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { provideThisNode } from "./node-versions.js";
import { pack } from "./pack.js";
import { required } from "./required.js";
import { type Snippet, shows, snippetsOf } from "./snippets.js";

// The tutorial, followed word by word: its files are written and its commands are run, in their order, in one shell. The words after a
// block's language say how: `once` is what this test has done already, after `starts` one waits until the broker answers,
// `status=3` is how the last command of the block ends. A block of text is what its reader sees. The packages are those that users install.

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
  writeFileSync(join(checkout, "tutorial.sh"), scriptOf(page, url));

  const shell = spawn("bash", ["tutorial.sh"], {
    cwd: checkout,
    env: { ...env, ...prepare(checkout), PORT: new URL(url).port, OSBERT_URL: url, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that a broker in the background goes with the shell.
    detached: true,
  });
  const endAll = () => {
    try {
      if (shell.pid !== undefined) process.kill(-shell.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  };
  onTestFinished(endAll);
  const [printed] = await Promise.all([text(shell.stdout), once(shell, "exit").finally(endAll)]);

  const parts = printed.split(/^@@ /m).slice(1);
  for (const [at, snippet] of page.entries()) {
    const part = parts.find((candidate) => candidate.startsWith(`line ${snippet.line}\n`));
    if (!isRun(snippet)) continue;
    const said = `line ${snippet.line} of the page said:\n${printed}`;
    expect(part, said).toBeDefined();
    const [, output = "", failures = "", status] =
      /^line \d+\n([\s\S]*?)((?:%% failed: [^\n]*\n)*)%% status (\d+)\n/.exec(part ?? "") ?? [];
    const wanted = snippet.marks.get("status") ?? "0";
    expect(status, said).toBe(wanted);
    expect(failures.split("\n").length - 1, said).toBe(wanted === "0" ? 0 : 1);
    const next = page[at + 1];
    if (next?.language === "text") expect(shows(output, next.code), `${said}\ninstead of\n${next.code}`).toBe(true);
  }
}

test("the tutorial has files, commands and what they print", () => {
  const count = (language: string) => snippets.filter((snippet) => snippet.language === language).length;
  expect([count("ts"), count("sh"), count("text")].every((number) => number >= 4)).toBe(true);
  for (const { language, marks } of snippets) if (language === "ts") expect(marks.get("file")).toBeDefined();
});

function isRun({ language, marks }: Snippet): boolean {
  return language === "sh" && !marks.has("once");
}

/** One script of all blocks. What fails is told; nothing stops it, so that the report is about all of the page. */
function scriptOf(all: readonly Snippet[], url: string): string {
  const answers = `fetch("${url}/healthz").then(() => process.exit(0), () => process.exit(1))`;
  const lines = all.flatMap(({ language, marks, line, code }) => {
    const file = marks.get("file");
    if (file !== undefined) return [`cat > ${file} <<'END OF FILE'`, `${code}END OF FILE`];
    if (language !== "sh" || marks.has("once")) return [];
    return [
      `echo "@@ line ${line}"`,
      "failed=",
      `${code}last=$?`,
      'printf "%s" "$failed"',
      'echo "%% status $last"',
      ...(marks.has("starts") ? [`until node -e '${answers}'; do :; done`] : []),
    ];
  });
  return ["exec 2>&1", `trap 'failed="$failed%% failed: $BASH_COMMAND\n"' ERR`, ...lines, ""].join("\n");
}

/** It was free a moment ago: the tutorial's broker and client have to be told one number before either runs. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
