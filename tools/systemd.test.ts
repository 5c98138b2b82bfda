import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { required } from "./required.js";
import { findProgram } from "./server-process.js";
import type { LeftOut } from "./servers.js";

const unit = join(dirname(fileURLToPath(import.meta.url)), "..", "deploy", "systemd", "osbert.service");

test("systemd finds no fault with the unit, and little that it leaves open", () => {
  const analyze = required("the systemd unit", findAnalyze());
  if (analyze === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), "osbert-systemd-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // A program in the place of Node.js, wherever this machine has that; verify wants to see one.
  const node = join(folder, "node");
  writeFileSync(node, "#!/bin/sh\n");
  chmodSync(node, 0o755);
  const copy = join(folder, "osbert.service");
  writeFileSync(copy, readFileSync(unit, "utf8").replace("ExecStart=/usr/bin/node", `ExecStart=${node}`));

  const verified = spawnSync(analyze.program, ["verify", "--man=no", copy], { encoding: "utf8" });
  const faults = verified.stderr.split("\n").filter((line) => line.includes("osbert.service"));
  expect(faults).toEqual([]);
  expect(verified.status).toBe(0);

  const judged = spawnSync(analyze.program, ["security", "--offline=true", "--threshold=15", copy], {
    encoding: "utf8",
  });
  expect(judged.stdout).toMatch(/Overall exposure level for osbert\.service: 1\.[0-5]/);
  expect(judged.status).toBe(0);
});

function findAnalyze(): { readonly program: string } | LeftOut {
  const program = findProgram("systemd-analyze");
  return program === undefined ? { leftOut: "no systemd-analyze found; apt-get install systemd" } : { program };
}
