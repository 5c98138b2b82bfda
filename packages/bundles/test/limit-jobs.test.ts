import { join } from "node:path";
import { expect, test } from "vitest";
import { limitJobs } from "../src/runners/limit-jobs.js";
import { openProcessRunner } from "../src/runners/process-runner.js";
import type { Job } from "../src/runners/runner.js";
import { bundleSpec, limits } from "./bundle-jobs.js";
import { bundleFolder } from "./folder-services.js";

const { signal } = new AbortController();

function job(id: string): Job {
  return {
    ...{
      id,
      action: "provision",
      spec: bundleSpec({ command: ["sh", "-c", "sleep 60"] }),
      input: {},
      limits,
      operation: null,
    },
    artifact: { kind: "files", repository: "x", digest: `sha256:${"0".repeat(64)}` },
  };
}

test("a start that is given up leaves the queue at once, wherever it stands, and the others keep their places", async () => {
  const folder = await bundleFolder();
  const options = { directory: join(folder, "jobs"), files: async () => folder, unsandboxed: true, graceMs: 100 };
  const runner = limitJobs(await openProcessRunner(options), 1);
  await runner.start(job("a"), signal);
  const second = runner.start(job("b"), signal);
  const unwanted = new AbortController();
  const third = runner.start(job("c"), unwanted.signal);
  const fourth = runner.start(job("d"), signal);
  const already = new AbortController();
  already.abort(new Error("cancelled before"));
  await expect(runner.start(job("e"), already.signal)).rejects.toThrow("cancelled before");
  unwanted.abort(new Error("cancelled"));
  await expect(third).rejects.toThrow("cancelled");
  await runner.stop("a");
  await second;
  await runner.stop("b");
  await fourth;
  expect(await runner.look("c", { waitMs: 0, signal })).toEqual({ kind: "unknown" });
  await runner.stop("d");
});
