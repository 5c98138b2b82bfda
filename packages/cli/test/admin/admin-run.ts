import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Command, CommanderError } from "commander";
import { registerAdminCommands } from "../../src/admin/register-admin-commands.js";
import type { Surroundings } from "../../src/client/surroundings.js";

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const entry = fileURLToPath(new URL("../run-main.ts", import.meta.url));

/** The real program as a process, with nothing on its standard input. */
export function program(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> {
  const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", "tsx", entry, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, stdout, stderr })));
}

/** An admin command in this process. `typed`: someone sits at a terminal and types this. */
export function adminCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  typed?: string,
): Promise<Ran> {
  return commandOf(registerAdminCommands, ["admin", ...args], env, typed);
}

/** A command of a program that has only these. */
export async function commandOf(
  register: (program: Command, surroundings: Surroundings) => void,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  typed?: string,
): Promise<Ran> {
  let status: number = 0;
  let stdout = "";
  let stderr = "";
  const write = (text: string): void => {
    stderr += text;
  };
  const stdin = (async function* () {
    yield typed ?? "";
  })();
  const surroundings: Surroundings = {
    env,
    stdin: typed === undefined ? stdin : Object.assign(stdin, { isTTY: true }),
    stdout: {
      write: (text) => {
        stdout += text;
      },
    },
    stderr: { write },
    now: Date.now,
    onInterrupt: () => () => undefined,
    endWith(end) {
      status = end;
    },
  };
  const root = new Command("osbert").exitOverride().configureOutput({ writeOut: write, writeErr: write });
  register(root, surroundings);
  try {
    await root.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    status = error.exitCode === 0 ? 0 : 2;
  }
  return { status, stdout, stderr };
}
