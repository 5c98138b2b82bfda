import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { required } from "../../../tools/required.js";
import { findProgram } from "../../../tools/server-process.js";
import { openProcessRunner, type ProcessRunnerOptions } from "../src/runners/process-runner.js";
import type { RunnerPlace } from "../src/testing/index.js";
import { runnerSuite } from "../src/testing/index.js";

/** Root's processes are not counted by the kernel: the limit bites for anyone else. */
const user = process.getuid?.() === 0 ? { user: { uid: 65_534, gid: 65_534 } } : {};

async function place(options: Partial<ProcessRunnerOptions>): Promise<RunnerPlace> {
  const home = await mkdtemp(join(tmpdir(), "osbert-process-runner-"));
  await chmod(home, 0o711);
  return {
    runner: () =>
      openProcessRunner({
        directory: join(home, "runner"),
        files: async ({ digest }) => join(home, digest.slice("sha256:".length)),
        graceMs: 500,
        ...user,
        ...options,
      }),
    bundle: async (program) => {
      const hash = createHash("sha256").update(program).digest("hex");
      await mkdir(join(home, hash), { recursive: true });
      await writeFile(join(home, hash, "run"), program);
      return { kind: "files", repository: "suite", digest: `sha256:${hash}` };
    },
    dispose: () => rm(home, { recursive: true, force: true }),
  };
}

const runner = { test, skip: (name: string, reason: string) => test(`${name} — not kept: ${reason}`, () => undefined) };

const bwrap = findProgram("bwrap");
if (required("bubblewrap", bwrap === undefined ? { leftOut: "apt-get install bubblewrap" } : { bwrap })) {
  runnerSuite(runner, { name: "process in bubblewrap", open: () => place({}) });
}

if (bwrap !== undefined && process.getuid?.() === 0) {
  runnerSuite(runner, {
    name: "process in bubblewrap, by root",
    // All of them are nobody: what one may have is what all may have together.
    open: () => place({ user: undefined, jobs: 1 }),
  });
}

runnerSuite(runner, {
  name: "process without a sandbox",
  open: () => place({ unsandboxed: true }),
  except: {
    "network: there is none unless it is allowed": "only a sandbox can take it away",
    "files: those of the bundle are there, and cannot be changed": "only a sandbox can hold them",
  },
});
