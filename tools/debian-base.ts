import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { NodeVersion } from "./node-versions.js";

const run = promisify(execFile);

/**
 * Makes the root file system of a base image, for machines that reach no registry of images: Debian by debootstrap, with this Node.js and
 * this machine's npm. It stands for `node:22-bookworm` and its slim sister. It has better-sqlite3's binary in the place of a compiler.
 */
export async function makeDebianBase(folder: string, { node, env }: NodeVersion): Promise<void> {
  await run("debootstrap", ["--variant=minbase", "bookworm", folder], { maxBuffer: 2 ** 24 });
  cpSync(node, join(folder, "usr/local/bin/node"));
  const { stdout } = await run("npm", ["root", "--global"], { env: { ...process.env } });
  mkdirSync(join(folder, "usr/local/lib/node_modules"), { recursive: true });
  cpSync(join(stdout.trim(), "npm"), join(folder, "usr/local/lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(folder, "usr/local/bin/npm"));
  const prebuilds = env.npm_config_better_sqlite3_local_prebuilds ?? "";
  mkdirSync(join(folder, prebuiltFolder));
  for (const name of readdirSync(prebuilds)) cpSync(join(prebuilds, name), join(folder, prebuiltFolder, name));
}

/** What the image's environment has to say. */
export const debianBaseEnv = {
  PATH: ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":"),
  npm_config_better_sqlite3_local_prebuilds: "/prebuilds",
};
const prebuiltFolder = debianBaseEnv.npm_config_better_sqlite3_local_prebuilds.slice(1);
