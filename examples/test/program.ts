import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** A program of the examples that runs as a process of its own, as a reader would start it. */
export interface Program {
  readonly child: ChildProcess;
  /** Everything that it has printed so far. */
  readonly printed: () => string;
  /** Resolves when it has printed what matches; throws if it ends before that. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** Starts `src/<file>` from source, in a folder, on a free port. It does not outlive the test. */
export function startProgram(
  file: string,
  folder: string,
  { args = [], env = {} }: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Program {
  const program = fileURLToPath(new URL(`../src/${file}`, import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", tsx, program, ...args], {
    cwd: folder,
    env: { ...process.env, PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  const hear = () => child.emit("printed");
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      hear();
    });
  }
  let isOver = false;
  const ended = once(child, "close").then(([code, signal]: unknown[]) => {
    isOver = true;
    hear();
    return (code ?? signal) as number | NodeJS.Signals;
  });
  return {
    child,
    printed: () => text,
    ended,
    async until(pattern) {
      for (;;) {
        const match = pattern.exec(text);
        if (match !== null) return match;
        if (isOver) throw new Error(`${file} ended without printing ${pattern}:\n${text}`);
        await once(child, "printed");
      }
    },
  };
}

/** A new empty folder that goes with the test. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-example-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** By its path: the programs run in folders where the name leads nowhere. */
export const tsx = createRequire(import.meta.url).resolve("tsx");
