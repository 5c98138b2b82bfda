import { Command, CommanderError } from "commander";
import { registerClientCommands } from "../../src/client/register-client-commands.js";
import type { Surroundings } from "../../src/client/surroundings.js";

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The standard error is a terminal of so many columns. */
  readonly terminal?: number;
  /** The clock, where time has to pass faster than it does. */
  readonly now?: () => number;
  /** Called with everything written to the standard error so far; `interrupt` is what Ctrl-C does. */
  readonly watch?: (stderr: string, interrupt: () => void) => void;
}

/** Runs a client command in this process, with streams and an environment of its own. */
export async function osbert(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  let status = 0;
  let stdout = "";
  let stderr = "";
  const interrupts = new Set<() => void>();
  const writeError = (text: string): void => {
    stderr += text;
    options.watch?.(stderr, () => {
      for (const listener of interrupts) listener();
    });
  };
  const surroundings: Surroundings = {
    env: options.env ?? {},
    stdin: (async function* () {
      yield options.stdin ?? "";
    })(),
    stdout: {
      write: (text) => {
        stdout += text;
      },
    },
    stderr: {
      write: writeError,
      ...(options.terminal !== undefined && { isTTY: true, columns: options.terminal }),
    },
    now: options.now ?? Date.now,
    onInterrupt(listener) {
      interrupts.add(listener);
      return () => void interrupts.delete(listener);
    },
    endWith(end) {
      status = end;
    },
  };
  const program = new Command("osbert").exitOverride().configureOutput({
    writeOut: (text) => {
      stdout += text;
    },
    writeErr: writeError,
  });
  registerClientCommands(program, surroundings);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    status = error.exitCode === 0 ? 0 : 2;
  }
  return { status, stdout, stderr };
}
