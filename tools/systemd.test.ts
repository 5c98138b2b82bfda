import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { required } from "./required.js";
import { findProgram } from "./server-process.js";
import type { LeftOut } from "./servers.js";

const deploy = join(dirname(fileURLToPath(import.meta.url)), "..", "deploy", "systemd");

test("systemd finds no fault with the unit, and little that it leaves open", () => {
  const analyze = required("the systemd unit", findAnalyze());
  if (analyze === undefined) return;
  const { faults, exposure } = judge(analyze.program, null);
  expect(faults).toEqual([]);
  expect(exposure).toBeLessThanOrEqual(1.5);
});

test("systemd finds no fault with what a broker that runs bundles needs beyond, and that is no more than bubblewrap takes", () => {
  const analyze = required("the systemd unit", findAnalyze());
  if (analyze === undefined) return;
  const bundles = readFileSync(join(deploy, "osbert-bundles.conf"), "utf8");
  const { faults, exposure } = judge(analyze.program, bundles);
  expect(faults).toEqual([]);
  expect(exposure).toBeLessThanOrEqual(2.8);
  expect(exposure, "the unit alone lets no namespaces be made").toBeGreaterThan(judge(analyze.program, null).exposure);
  expect(bundles).toMatch(/^KillMode=process$/m);
  // A fault in it would be seen.
  expect(judge(analyze.program, `${bundles}KillMode=proces\n`).faults).not.toEqual([]);
});

/** What systemd says of the unit, with a drop-in or without. */
function judge(
  analyze: string,
  dropIn: string | null,
): { readonly faults: readonly string[]; readonly exposure: number } {
  const folder = mkdtempSync(join(tmpdir(), "osbert-systemd-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // A program in the place of Node.js, wherever this machine has that; verify wants to see one.
  const node = join(folder, "node");
  writeFileSync(node, "#!/bin/sh\n");
  chmodSync(node, 0o755);
  const unit = join(folder, "osbert.service");
  const text = readFileSync(join(deploy, "osbert.service"), "utf8");
  writeFileSync(unit, text.replace("ExecStart=/usr/bin/node", `ExecStart=${node}`));
  if (dropIn !== null) {
    mkdirSync(`${unit}.d`);
    writeFileSync(join(`${unit}.d`, "osbert-bundles.conf"), dropIn);
  }
  const verified = spawnSync(analyze, ["verify", "--man=no", unit], { encoding: "utf8" });
  const faults = verified.stderr.split("\n").filter((line) => line.includes("osbert.service"));
  expect(verified.status).toBe(0);
  const judged = spawnSync(analyze, ["security", "--offline=true", unit], { encoding: "utf8" });
  const [, exposure = ""] = /Overall exposure level for osbert\.service: ([0-9.]+)/.exec(judged.stdout) ?? [];
  expect(exposure, judged.stderr).not.toBe("");
  return { faults, exposure: Number(exposure) };
}

function findAnalyze(): { readonly program: string } | LeftOut {
  const program = findProgram("systemd-analyze");
  return program === undefined ? { leftOut: "no systemd-analyze found; apt-get install systemd" } : { program };
}
