import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { ChildCommand, ChildConfig } from "./child-config.js";

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The end of what it wrote to standard error. */
  readonly stderr: string;
}

/** One child, seen from its parent. */
export class Child {
  readonly exited: Promise<ChildExit>;
  readonly #process: ChildProcess;

  /** `heard` is called with each whole line that it wrote, in order, also with those that came out after its death. */
  constructor(config: ChildConfig, heard: (line: string) => void) {
    this.#process = spawn(process.execPath, [childProgram, JSON.stringify(config)], {
      stdio: ["pipe", "ignore", "pipe", "pipe"],
    });
    let stderr = "";
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-4_000);
    });
    // Told to a child that has just died: it is told to the next one.
    this.#process.stdin?.on("error", () => undefined);
    readLines(this.#process.stdio[3] as Readable, heard);
    this.exited = new Promise((resolve, reject) => {
      this.#process.once("error", reject);
      // "close" comes when the pipes are empty, too: nothing of what it witnessed is left out.
      this.#process.once("close", (code, signal) => resolve({ code, signal, stderr }));
    });
  }

  tell(command: ChildCommand): void {
    this.#process.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  freeze(): void {
    this.#process.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process.kill("SIGCONT");
  }
}

/** Children are plain Node and run what was built, also when this file runs from source. */
export function builtFile(name: string): string {
  const here = import.meta.url.endsWith(".ts") ? new URL("../../dist/crash/", import.meta.url) : import.meta.url;
  return new URL(name, here).href;
}

const childProgram = fileURLToPath(builtFile("child.js"));

function readLines(from: Readable, heard: (line: string) => void): void {
  let rest = "";
  from.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) heard(line);
  });
  from.on("error", () => undefined);
}
