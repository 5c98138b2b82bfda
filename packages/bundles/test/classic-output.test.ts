import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { endOf, noOutput, readOutput } from "../src/runners/action-output.js";
import { classicOutput, stateFiles } from "../src/runners/jobs/classic-output.js";
import { bundleFolder } from "./folder-services.js";

const ended = (exitCode: number) => ({ kind: "ended", exitCode, cause: "exit" }) as const;

async function job(): Promise<string> {
  const folder = await bundleFolder();
  mkdirSync(join(folder, "state"));
  return folder;
}

async function said(folder: string) {
  return readOutput(noOutput, (await classicOutput(folder, 0)).lines);
}

test("what a classic bundle leaves in its folder is its state, and is given to the next action as it was", async () => {
  const folder = await job();
  writeFileSync(join(folder, "state", "made"), "yes\n");
  writeFileSync(join(folder, "state", "config.json"), '{"a":1}');
  const { state } = await said(folder);
  expect(state).toEqual({ made: "yes\n", "config.json": '{"a":1}' });
  expect(stateFiles(state)).toEqual({ "state/made": "yes\n", "state/config.json": '{"a":1}' });
  expect((await classicOutput(folder, 2)).lines).toEqual([]);
});

test("a state never becomes a file outside of its folder", () => {
  expect(stateFiles({ "../up": "x", "a/b": "x", ".": "x", "..": "x", "": "x", "...": "x", fine: 3 })).toEqual({
    "state/fine": "3",
  });
});

test("links, pipes and folders that a bundle leaves are not read", async () => {
  const folder = await job();
  writeFileSync(join(folder, "secret"), "of the machine");
  symlinkSync(join(folder, "secret"), join(folder, "state", "link"));
  execFileSync("mkfifo", [join(folder, "state", "pipe")]);
  mkdirSync(join(folder, "state", "folder"));
  symlinkSync(join(folder, "secret"), join(folder, "termination"));
  expect(JSON.stringify(await said(folder))).not.toContain("of the machine");
  expect((await said(folder)).state).toEqual({});
});

test("more state than may be kept fails the action, and says so", async () => {
  const [large, many] = [await job(), await job()];
  writeFileSync(join(large, "state", "large"), "x".repeat(300_000));
  expect(endOf(ended(0), await said(large))).toEqual({
    kind: "failed",
    reason: expect.stringContaining("larger than"),
  });
  for (let at = 0; at < 1_001; at++) writeFileSync(join(many, "state", `f${at}`), "");
  expect(endOf(ended(0), await said(many))).toEqual({ kind: "failed", reason: expect.stringContaining('"state"') });
});

test("the last words of a container are the reason of its failure, bounded, and say nothing of a success", async () => {
  const folder = await job();
  writeFileSync(join(folder, "termination"), `no room left ${"x".repeat(10_000)}`);
  const output = await said(folder);
  expect(endOf(ended(2), output)).toEqual({
    kind: "failed",
    reason: expect.stringMatching(/^the bundle ended with exit code 2: no room left x{900,1000}$/),
  });
  expect(endOf(ended(0), output)).toEqual({ kind: "done" });
  expect(endOf(ended(8), output)).toEqual({ kind: "not known" });
});
