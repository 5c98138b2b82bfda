import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { adminRoutes } from "@osbert/broker/admin";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { examplesOf } from "../../src/examples-of.js";
import { osbertProgram } from "../../src/main.js";
import { callsIn } from "../calls-in.js";
import { urlWithoutServer } from "../client/server-that.js";
import { adminCommand } from "./admin-run.js";

const guide = await readFile(fileURLToPath(new URL("../../../../docs/guides/admin.md", import.meta.url)), "utf8");
const admin = osbertProgram().commands.find((command) => command.name() === "admin") as Command;

test("every command of the guide and of the help is one that the program takes, and none is missing", async () => {
  const snippets = [...guide.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  const examples = admin.commands.flatMap((command) => examplesOf(command).map(({ command: line }) => line));
  const calls = [...snippets, ...examples].flatMap((script) => callsIn(script));
  expect(new Set(calls.map(([, verb]) => verb))).toEqual(new Set(admin.commands.map((command) => command.name())));
  const env = { OSBERT_ADMIN_URL: await urlWithoutServer(), OSBERT_ADMIN_LOGIN: "ops:password" };
  // A command line that is wrong ends with 2; these get as far as the broker, which is not there.
  for (const [first, ...args] of calls) {
    expect(first).toBe("admin");
    expect(await adminCommand(args, env), args.join(" ")).toMatchObject({ status: 4 });
  }
});

test("the guide names every endpoint", () => {
  const text = guide.replaceAll(/\{name or id\}/g, "{service}").replaceAll("{id}", "{instance}");
  for (const [method, path] of adminRoutes) {
    const shown = path.replaceAll(/:(\w+)/g, "{$1}");
    expect(text, `${method} ${shown}`).toMatch(new RegExp(`\`${method} ${shown.replaceAll(/[{}/]/g, "\\$&")}[\`?]`));
  }
});

test("every admin command has a description, examples, and an explanation of each argument and option", () => {
  for (const command of admin.commands) {
    expect(command.description(), command.name()).not.toBe("");
    expect(examplesOf(command).length, command.name()).toBeGreaterThan(0);
    for (const item of [...command.registeredArguments, ...command.options])
      expect(item.description, `${command.name()} ${item.name()}`).not.toBe("");
  }
});
