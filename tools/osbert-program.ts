import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const main = join(dirname(fileURLToPath(import.meta.url)), "..", "packages", "cli", "test", "run-main.ts");
const loader = import.meta.resolve("tsx");

/** The command line that runs `osbert` from its sources, in any folder. */
export const osbertProgram = [process.execPath, "--conditions=@osbert/source", "--import", loader, main] as const;

/** Starts `osbert serve` in a folder with its settings; resolves with its address once it answers. */
export async function startOsbert(
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const [node, ...args] = osbertProgram;
  const child = spawn(node, [...args, "serve"], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /answers at (\S+)/.exec(line) ?? [];
    if (url !== undefined) return { url, child };
  }
  throw new Error(`osbert ended before it answered: ${complaints}`);
}
