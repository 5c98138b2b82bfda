import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { credentials } from "./requests.js";

/** A server in a process of its own. */
export interface Server {
  readonly process: ChildProcess;
  readonly lines: Interface;
  readonly port: number;
}

/** One of server.ts. */
export async function startServer(kind: string, folder: string, file: string): Promise<Server> {
  const { process: child, lines } = begin([here("server.js"), kind, folder, file], {});
  const [port] = (await once(lines, "line")) as [string];
  return { process: child, lines, port: Number(port) };
}

/** The program as operators run it: with metrics, and a log of warnings. */
export async function startOsbert(folder: string): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const program = fileURLToPath(new URL("../bin/osbert.js", import.meta.resolve("osbert")));
  const { process: child, lines } = begin([program, "serve"], {
    OSBERT_MODULE: here("services.js"),
    OSBERT_DATA: folder,
    OSBERT_CREDENTIALS: `${credentials.username}:${credentials.password}`,
    OSBERT_LOG_LEVEL: "warn",
    OSBERT_METRICS_ENABLED: "true",
    PORT: "0",
  });
  const [line] = (await once(lines, "line")) as [string];
  const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
  if (port === undefined) throw new Error(`osbert serve said: ${line}`);
  return { process: child, lines, port: Number(port) };
}

/** Says a line to a server, and answers the line that it says. */
export async function say({ process, lines }: Server, line: string): Promise<string> {
  process.stdin?.write(`${line}\n`);
  const [answer] = (await once(lines, "line")) as [string];
  return answer;
}

export async function end({ process }: Server): Promise<void> {
  process.stdin?.end();
  await once(process, "exit");
}

/** What a server has resident, in bytes; `null` where the system does not tell. */
export async function residentBytes({ process }: Server): Promise<number | null> {
  const status = await readFile(`/proc/${process.pid}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
}

function begin(args: readonly string[], environment: NodeJS.ProcessEnv): Omit<Server, "port"> {
  const child = spawn(process.execPath, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  return { process: child, lines: createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }) };
}

function here(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
