import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFailed, onTestFinished } from "vitest";
import { type Snippet, shows } from "./snippets.js";

export interface Reader {
  /** Where the reader begins. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** A command that succeeds once what a block `starts` answers. */
  readonly answers: string;
}

/**
 * Follows a page word by word: its files are written and its commands are run, in their order, in one shell. The words after a block's language say
 * how: `once` is what the test has done already, after `starts` one waits until the broker answers, `status=3` is how the last command of
 * the block ends. A block of text is what its reader sees.
 */
export async function followPage(page: readonly Snippet[], { folder, env, answers }: Reader): Promise<void> {
  writeFileSync(join(folder, "page.sh"), scriptOf(page, answers));
  const shell = spawn("bash", ["page.sh"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that what runs in the background goes with the shell.
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
  let printed = "";
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding("utf8").on("data", (part: string) => {
      printed += part;
    });
  let isFollowed = false;
  // What waits in vain is told, too.
  onTestFailed(() => {
    if (!isFollowed) console.log(printed);
  });
  // What runs in the background holds the pipes until it is ended.
  await Promise.all([once(shell, "close"), once(shell, "exit").finally(endAll)]);
  isFollowed = true;

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

function isRun({ language, marks }: Snippet): boolean {
  return language === "sh" && !marks.has("once");
}

/** One script of all blocks. What fails is told; nothing stops it, so that the report is about all of the page. */
function scriptOf(all: readonly Snippet[], answers: string): string {
  const lines = all.flatMap((snippet) => {
    const { marks, line, code } = snippet;
    const file = marks.get("file");
    if (file !== undefined) return [`cat > ${file} <<'END OF FILE'`, `${code}END OF FILE`];
    if (!isRun(snippet)) return [];
    return [
      `echo "@@ line ${line}"`,
      "failed=",
      `${code}last=$?`,
      'printf "%s" "$failed"',
      'echo "%% status $last"',
      ...(marks.has("starts") ? [`until ${answers}; do :; done`] : []),
    ];
  });
  return ["exec 2>&1", `trap 'failed="$failed%% failed: $BASH_COMMAND\n"' ERR`, ...lines, ""].join("\n");
}
