import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("parse-memory.fixture.mjs", import.meta.url));

test("what a description was checked with is gone soon after: of 15,000 it took hundreds of megabytes", async () => {
  // A heap that is not looked through as a whole meanwhile: what is in old space then was put there.
  const flags = ["--expose-gc", "--heap-growing-percent=1000"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program]);
  expect(Number(stdout)).toBeLessThan(50_000);
});
