import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { findProgram } from "../../../tools/server-process.js";
import { startRegistry } from "../../../tools/servers.js";
import { shows, snippetsOf } from "../../../tools/snippets.js";
import { folderWith } from "./program.js";

// docs/guides/writing-a-bundle.md, followed word by word in one folder. `status=1` is how a block ends; a block of text after it is what its reader
// sees. `registry`: the block is left out where there is none.

const page = fileURLToPath(new URL("../../../docs/guides/writing-a-bundle.md", import.meta.url));
const program = fileURLToPath(new URL("run-main.ts", import.meta.url));
const loader = import.meta.resolve("tsx");

test("the guide for authors of bundles works, word by word", { timeout: 300_000 }, async () => {
  const bwrap = findProgram("bwrap");
  if (!required("the guide for authors", bwrap === undefined ? { leftOut: "apt-get install bubblewrap" } : { bwrap }))
    return;
  const registry = required("the push of the guide", await startRegistry({ kind: "none" }));
  if (registry !== undefined) onTestFinished(() => registry.stop());
  const cwd = folderWith({});
  writeFileSync(
    join(cwd, "osbert"),
    `#!/bin/sh\nexec '${process.execPath}' --conditions=@osbert/source --import '${loader}' '${program}' "$@"\n`,
    { mode: 0o755 },
  );
  const env = {
    PATH: `${cwd}:${process.env.PATH ?? ""}`,
    HOME: cwd,
    REGISTRY: registry === undefined ? "" : new URL(registry.url).host,
  };
  const snippets = snippetsOf(readFileSync(page, "utf8"));
  let runs = 0;
  let folder = cwd;
  for (const [at, { language, marks, line, code }] of snippets.entries()) {
    if (language !== "sh" || (marks.has("registry") && registry === undefined)) continue;
    const script = `cd '${folder}'\n{ ${code}\n} 2>&1; status=$?; pwd > '${join(cwd, ".place")}'; exit $status`;
    const { status, printed } = await bash(script, env);
    expect(`line ${line}: ${status}\n${status === Number(marks.get("status") ?? 0) ? "" : printed}`).toBe(
      `line ${line}: ${marks.get("status") ?? 0}\n`,
    );
    folder = readFileSync(join(cwd, ".place"), "utf8").trim();
    const next = snippets[at + 1];
    if (next?.language === "text") expect(shows(printed, next.code), `line ${line} printed\n${printed}`).toBe(true);
    runs++;
  }
  expect(runs).toBeGreaterThan(6);
});

function bash(script: string, env: Readonly<Record<string, string>>): Promise<{ status: number; printed: string }> {
  return new Promise((resolve) => {
    execFile("bash", ["-c", script], { env }, (error, stdout) => {
      resolve({ status: error === null ? 0 : Number(error.code), printed: stdout });
    });
  });
}
