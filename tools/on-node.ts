import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type NodeMajor, nodeReleases, provideNode } from "./node-versions.js";

/**
 * `tsx tools/on-node.ts 24 COMMAND …` runs a command with another Node.js, in a copy of this checkout as it is built, because a binary of
 * better-sqlite3 is for one Node.js alone.
 */
const [major = "", ...command] = process.argv.slice(2);
if (!(major in nodeReleases) || command.length === 0)
  throw new Error(`usage: tsx tools/on-node.ts ${Object.keys(nodeReleases).join("|")} COMMAND [ARGUMENT …]`);
const version = await provideNode(Number(major) as NodeMajor);
if ("leftOut" in version) throw new Error(version.leftOut);

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const copy = mkdtempSync(join(tmpdir(), "osbert-on-node-"));
try {
  copyBut([".git", "node_modules", "tarballs"], root, copy);
  copyBut([".cache"], join(root, "node_modules"), join(copy, "node_modules"));
  const driver = join(copy, "node_modules", "better-sqlite3");
  rmSync(join(driver, "build"), { recursive: true, force: true });
  const prebuilds = version.env.npm_config_better_sqlite3_local_prebuilds ?? "";
  for (const name of readdirSync(prebuilds)) execFileSync("tar", ["-xzf", join(prebuilds, name), "-C", driver]);
  const [program = "", ...args] = command;
  const { status } = spawnSync(program, args, { cwd: copy, env: version.env, stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function copyBut(names: readonly string[], from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  const copied = readdirSync(from).filter((name) => !names.includes(name));
  execFileSync("cp", ["--archive", "--reflink=auto", ...copied.map((name) => join(from, name)), to]);
}
