import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { required } from "../../../tools/required.js";
import { openContainerRunner } from "../src/runners/container-runner.js";
import { type RunnerPlace, runnerSuite } from "../src/testing/index.js";
import { type EngineName, openTestEngine, testEngineLeftOut } from "./test-engine.js";

async function place(name: EngineName): Promise<RunnerPlace> {
  const engine = await openTestEngine(name);
  const baseImage = await engine.image("localhost/base:1", null);
  return {
    runner: () =>
      openContainerRunner({
        engine: engine.program,
        engineArguments: engine.engineArguments,
        runArguments: engine.runArguments,
        environment: engine.environment,
        directory: join(engine.home, "runner"),
        files: async ({ digest }) => join(engine.home, digest.slice("sha256:".length)),
        baseImage,
        network: "host",
        graceMs: 500,
      }),
    bundle: async (program) => {
      const hash = createHash("sha256").update(program).digest("hex");
      await mkdir(join(engine.home, hash), { recursive: true });
      await writeFile(join(engine.home, hash, "run"), program);
      return { kind: "files", repository: "suite", digest: `sha256:${hash}` };
    },
    dispose: () => engine.remove(),
  };
}

for (const name of ["podman", "docker"] as const) {
  if (required(name, testEngineLeftOut(name))) {
    runnerSuite(
      { test, skip: (title, reason) => test(`${title} — not kept: ${reason}`, () => undefined) },
      { name, open: () => place(name) },
    );
  }
}
