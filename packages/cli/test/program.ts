import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, onTestFailed } from "vitest";

const program = fileURLToPath(new URL("run-main.ts", import.meta.url));
/** Resolved here: the program is started in other folders. */
const loader = import.meta.resolve("tsx");

/** The module that the tests' brokers serve. */
export const servicesModule = fileURLToPath(new URL("fixtures/services.ts", import.meta.url));

const folders: string[] = [];
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A folder of its own, with these files in it. */
export function folderWith(files: Readonly<Record<string, string | Buffer>>): string {
  const folder = mkdtempSync(join(tmpdir(), "osbert-cli-"));
  folders.push(folder);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

export interface Started {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until this was printed, to either; throws with all that was if it ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  /** The status, or the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/** Starts the real program, with nothing of this environment in its own. */
export function start(
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Started {
  const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", loader, program, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? "", TMPDIR: tmpdir(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let [stdout, stderr] = ["", ""];
  const listeners = new Set<() => void>();
  const heard = () => {
    for (const listener of listeners) listener();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    heard();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    heard();
  });
  const ended = once(child, "close").then(([code, signal]: (number | string)[]) => {
    running.delete(child);
    heard();
    return code ?? signal ?? "";
  });
  onTestFailed(() => console.log(`${args.join(" ")}\n${stdout}${stderr}`));
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    ended,
    signal: (signal) => child.kill(signal),
    says(pattern) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(`${stdout}\n${stderr}`);
          if (found === null && running.has(child)) return;
          listeners.delete(look);
          if (found === null) reject(new Error(`ended without saying ${pattern}:\n${stdout}${stderr}`));
          else resolve(found);
        };
        listeners.add(look);
        look();
      });
    },
  };
}

/** Runs the program to its end. */
export async function run(
  args: readonly string[],
  options: Parameters<typeof start>[1],
): Promise<{ readonly status: number | string; readonly stdout: string; readonly stderr: string }> {
  const started = start(args, options);
  const status = await started.ended;
  return { status, stdout: started.stdout(), stderr: started.stderr() };
}

/** Where a broker answers, once it does. */
export async function answersAt(broker: Started): Promise<string> {
  return (await broker.says(/osbert answers at (\S+)/))[1] ?? "";
}

export interface Asked {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A request of a platform. */
export async function ask(
  url: string,
  method: string,
  path: string,
  { credential = "a:b", body }: { readonly credential?: string; readonly body?: unknown } = {},
): Promise<Asked> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(credential).toString("base64")}`,
      "x-broker-api-version": "2.17",
      "content-type": "application/json",
      connection: "close",
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Asked["body"] };
}

/** The descriptions of services in the catalog, by name. */
export async function descriptions(url: string): Promise<Readonly<Record<string, string>>> {
  const { body } = await ask(url, "GET", "/v2/catalog");
  const services = body.services as readonly { readonly name: string; readonly description: string }[];
  return Object.fromEntries(services.map(({ name, description }) => [name, description]));
}
