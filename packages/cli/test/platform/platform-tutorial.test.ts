import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { shows, snippetsOf } from "../../../../tools/snippets.js";
import { callsIn } from "../calls-in.js";
import { type PlatformLab, platformLab } from "./platform-lab.js";

const page = await readFile(fileURLToPath(new URL("../../../../docs/platform-tutorial.md", import.meta.url)), "utf8");

// The page, followed word by word. The two programs that it starts run in this process, at addresses and with passwords of their own; all else
// is run by a shell, which tells what it would call osbert with.

function ofLab({ url, broker }: PlatformLab, code: string): string {
  return code
    .replaceAll("http://127.0.0.1:8081", url)
    .replaceAll("http://127.0.0.1:8790", broker.url)
    .replaceAll("osbert:platform-password", "root:secret-of-root")
    .replaceAll("platform:broker-password", "platform:secret-of-the-broker");
}

test("the tutorial of the platform works, word by word", async () => {
  const lab = await platformLab();
  const before = process.cwd();
  process.chdir(lab.folder);
  onTestFinished(() => process.chdir(before));
  const snippets = snippetsOf(page);
  let commands = 0;
  for (const [at, { language, marks, code, line }] of snippets.entries()) {
    if (language !== "sh" || marks.has("once")) continue;
    let printed = "";
    let status: number | null = 0;
    for (const [group, ...args] of callsIn(ofLab(lab, code), lab.folder)) {
      expect(group).toBe("platform");
      // Only the last command of a block may fail.
      expect(status, printed).toBe(0);
      const ran = await lab.run(args, {});
      printed += ran.stdout + ran.stderr;
      ({ status } = ran);
      commands++;
    }
    expect(status, `line ${line}:\n${printed}`).toBe(Number(marks.get("status") ?? 0));
    const next = snippets[at + 1];
    if (next?.language === "text")
      expect(shows(printed, next.code), `line ${line}:\n${printed}\n${next.code}`).toBe(true);
  }
  expect(commands).toBeGreaterThan(15);
  expect(lab.broker.state().instances).toEqual([]);
});
