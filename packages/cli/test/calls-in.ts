import { spawnSync } from "node:child_process";
import { expect } from "vitest";

/** The arguments of every call of osbert in a script, as a real shell reads them. */
export function callsIn(script: string, cwd = process.cwd()): string[][] {
  const record = `osbert() { printf '%s\\0' "$@" >&3; printf '\\n\\0' >&3; }; pass() { :; }; jq() { :; }; kubectl() { :; }\n${script}`;
  const { output, stderr } = spawnSync("sh", ["-c", record], {
    cwd,
    encoding: "utf8",
    env: {},
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  expect(stderr).toBe("");
  return String(output[3])
    .split("\n\0")
    .slice(0, -1)
    .map((call) => call.split("\0").slice(0, -1));
}
