import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { exitStatuses } from "../../src/client/exit-status.js";
import { examplesOf } from "../../src/examples-of.js";
import { osbertProgram } from "../../src/main.js";
import { callsIn } from "../calls-in.js";
import { osbert } from "./osbert-run.js";
import { urlWithoutServer } from "./server-that.js";

const guide = await readFile(fileURLToPath(new URL("../../../../docs/guides/client.md", import.meta.url)), "utf8");

test("every command of the guide and of the help is one that the program takes", async () => {
  const snippets = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  const forAnyBroker = osbertProgram().commands.filter((command) => command.helpGroup() === "Commands for any broker:");
  const examples = forAnyBroker.flatMap((command) => examplesOf(command).map(({ command: line }) => line));
  const calls = [...snippets, ...examples].flatMap((script) => callsIn(script));
  expect(calls.length).toBeGreaterThan(20);
  expect(new Set(calls.map(([verb]) => verb)).size).toBe(8);

  const folder = await mkdtemp(join(tmpdir(), "osbert-examples-"));
  const before = process.cwd();
  process.chdir(folder);
  onTestFinished(async () => {
    process.chdir(before);
    await rm(folder, { recursive: true });
  });
  await writeFile("parameters.json", "{}");
  const env = { OSBERT_URL: await urlWithoutServer() };
  // A command line that is wrong ends with 2; these get as far as the broker, which is not there.
  let now = 0;
  const impatient = () => {
    now += 60_000;
    return now;
  };
  for (const args of calls)
    expect(await osbert(args, { env, stdin: "{}", now: impatient }), args.join(" ")).toMatchObject({ status: 4 });
});

test("the guide says of the exit status what the program says", () => {
  const text = guide.replaceAll("`", "");
  for (const { status, meaning } of Object.values(exitStatuses)) expect(text).toContain(`| ${status} | ${meaning} |`);
});
