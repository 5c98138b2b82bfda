import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./server.js", import.meta.url));

/** A server to be measured, in a process of its own; see server.ts. */
export class ServerProcess {
  readonly #process: ChildProcess;
  readonly #lines: Interface;
  readonly #ended: Promise<never>;
  readonly #port: Promise<number>;

  constructor(...args: readonly string[]) {
    this.#process = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error("it says nothing");
    this.#lines = createInterface({ input: stdout });
    this.#ended = once(this.#process, "exit").then(() => {
      throw new Error("the server ended before it said anything");
    });
    this.#ended.catch(() => undefined);
    this.#port = this.#next().then(Number);
  }

  /** As soon as it answers. */
  get port(): Promise<number> {
    return this.#port;
  }

  /** Asks it something, in a line, and answers what it says. */
  async ask(line: string): Promise<string> {
    const said = this.#next();
    this.#process.stdin?.write(`${line}\n`);
    return said;
  }

  async end(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.stdin?.end();
    await ended;
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  async #next(): Promise<string> {
    const [line] = await Promise.race([once(this.#lines, "line"), this.#ended]);
    return String(line);
  }
}
