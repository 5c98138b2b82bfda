import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { expect, onTestFinished, test } from "vitest";
import { examplesOf } from "../../src/examples-of.js";
import { registerPlatformCommands } from "../../src/platform/register-platform-commands.js";
import { commandOf } from "../admin/admin-run.js";
import { callsIn } from "../calls-in.js";
import { urlWithoutServer } from "../client/server-that.js";

const guides = ["many-instances", "what-happens-when"];

/** The commands that have no others below them. */
function leaves(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

test("every example of the platform's commands, and every command of its guides, is one that the program takes", async () => {
  const program = new Command("osbert");
  registerPlatformCommands(program);
  const commands = leaves(program).filter(({ parent }) => parent?.name() !== "target");
  const withoutExample = commands
    .filter((command) => examplesOf(command).length === 0)
    .map((command) => command.name());
  expect(withoutExample).toEqual([]);
  const texts = await Promise.all(
    guides.map((name) => readFile(new URL(`../../../../docs/guides/${name}.md`, import.meta.url), "utf8")),
  );
  const snippets = texts.flatMap((text) =>
    [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code),
  );
  const examples = commands.flatMap((command) => examplesOf(command).map(({ command: line }) => line));
  const calls = [...snippets, ...examples].flatMap((script) => callsIn(script));
  expect(calls.length).toBeGreaterThan(commands.length);

  const folder = await mkdtemp(join(tmpdir(), "osbert-examples-"));
  const before = process.cwd();
  process.chdir(folder);
  onTestFinished(async () => {
    process.chdir(before);
    await rm(folder, { recursive: true });
  });
  await writeFile("broker-login.txt", "platform:password");
  const env = { OSBERT_PLATFORM_URL: await urlWithoutServer(), OSBERT_PLATFORM_LOGIN: "anna:password" };
  // A command line that is wrong ends with 2; these get as far as the platform, which is not there.
  for (const args of calls)
    expect(await commandOf(registerPlatformCommands, args, env), args.join(" ")).toMatchObject({ status: 4 });
});
