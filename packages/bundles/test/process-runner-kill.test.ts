import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openProcessRunner } from "../src/runners/process-runner.js";
import type { Job } from "../src/runners/runner.js";
import { bundleSpec, limits } from "./bundle-jobs.js";

const { signal } = new AbortController();
const program = fileURLToPath(new URL("runner-user.mjs", import.meta.url));
const rounds = Number(process.env.OSBERT_KILL_ROUNDS ?? 40);
const atOnce = 4;

let home = "";
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "osbert-runner-kill-"));
  await chmod(home, 0o711);
  await mkdir(join(home, "bundle"));
  // One line for each run, whole or not at all.
  await writeFile(
    join(home, "bundle", "run"),
    `printf '%s\\n' "$(grep -o 'key-[-0-9a-f]*' "$OSBERT_INPUT")" >>${home}/witness\n`,
  );
});
afterAll(() => rm(home, { recursive: true, force: true }));

test("a job whose starter is killed at any instant, and that others start at the same time, runs once", {
  timeout: 300_000,
}, async () => {
  const options = { directory: join(home, "runner"), unsandboxed: true };
  const runner = await openProcessRunner({ ...options, files: async () => join(home, "bundle") });
  let killedBefore = 0;
  const round = async (at: number) => {
    const id = randomUUID();
    const job: Job = {
      id,
      action: "provision",
      spec: bundleSpec({ command: ["sh", "./run"] }),
      artifact: { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` },
      input: { parameters: { key: `key-${id}` } },
      limits,
      operation: null,
    };
    const children = Array.from({ length: 1 + (at % 2) }, () => user({ folder: join(home, "bundle"), job, options }));
    await Promise.all(children.map((child) => once(child, "message")));
    const started = Promise.all(children.map((child) => ended(child)));
    for (const child of children) child.send("start");
    await sleep(Math.random() * 80);
    for (const child of children) child.kill("SIGKILL");
    await started;
    if ((await runner.look(id, { waitMs: 0, signal })).kind === "unknown") killedBefore++;
    await runner.start(job, signal);
    expect(await runner.look(id, { waitMs: 30_000, signal })).toEqual({ kind: "ended", exitCode: 0, cause: "exit" });
    return id;
  };
  const ids: string[] = [];
  for (let at = 0; at < rounds; at += atOnce) {
    ids.push(...(await Promise.all(Array.from({ length: atOnce }, (_, index) => round(at + index)))));
  }
  const ran = (await readFile(join(home, "witness"), "utf8")).trim().split("\n").sort();
  expect(ran).toEqual(ids.map((id) => `key-${id}`).sort());
  console.log(
    `${rounds} jobs: ${killedBefore} starters were killed before their job ran, ${rounds - killedBefore} after`,
  );
});

function user(what: object): ChildProcess {
  return fork(program, [JSON.stringify(what)], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

async function ended(child: ChildProcess): Promise<void> {
  await once(child, "exit");
}
