import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { CollectionOptions, Rules } from "../src/index.js";
import { artifact, type Content } from "./registry-lab.js";

const program = fileURLToPath(new URL("registry-broker.fixture.mjs", import.meta.url));

export interface RegistryBrokerOptions {
  readonly registry: string;
  /** A folder for its files, and for its store unless that is a PostgreSQL. */
  readonly data: string;
  readonly postgres?: { readonly url: string; readonly schema: string };
  readonly journal?: { readonly leaseMs?: number };
  readonly intervalMs: number;
  readonly missing: Rules["missing"];
  readonly guard?: Partial<Rules["guard"]>;
  readonly collection?: CollectionOptions;
}

/** A broker of the bundles of a registry, in a process of its own. */
export class RegistryBroker {
  readonly process: ChildProcess;
  readonly ended: Promise<unknown>;
  /** What it has said. */
  readonly lines: string[] = [];
  #told: (() => void)[] = [];

  constructor(options: RegistryBrokerOptions) {
    this.process = spawn(process.execPath, [program, JSON.stringify(options)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.ended = once(this.process, "exit").then(() => this.#tell());
    onTestFinished(() => this.kill());
    const { stdout } = this.process;
    if (stdout === null) throw new Error("it says nothing");
    createInterface({ input: stdout }).on("line", (line) => {
      this.lines.push(line);
      this.#tell();
    });
  }

  /** The first line, of those after the first `from`, that begins so. Rejects if the process has ended without it. */
  async says(words: string, from = 0): Promise<string> {
    for (;;) {
      const line = this.lines.slice(from).find((each) => each.startsWith(words));
      if (line !== undefined) return line;
      if (this.process.exitCode !== null || this.process.signalCode !== null)
        throw new Error(`the broker ended before it said ${words}`);
      await new Promise<void>((resolve) => this.#told.push(resolve));
    }
  }

  async ask(method: string, path: string, body?: object) {
    const url = (await this.says("url ")).slice("url ".length);
    const headers = { "content-type": "application/json", "x-broker-api-version": "2.17" };
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: answer.status, etag: answer.headers.get("etag"), body: JSON.parse((await answer.text()) || "{}") };
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  #tell(): void {
    for (const told of this.#told.splice(0)) told();
  }
}

export async function brokerFolder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "osbert-registry-broker-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A bundle at a version. Its script is in a layer; without one there is nothing to run. */
export function bundleContent(name: string, version: string, layers: readonly Uint8Array[] = []): Content {
  const lines = ["osbert: 1", `name: ${name}`, `version: ${version}`, "description: A test", "bindable: true"];
  const rest = ["command: [sh, ./run.sh]", "plans:", "  small:", "    description: A small one", ""];
  return artifact([...lines, ...rest].join("\n"), layers);
}
