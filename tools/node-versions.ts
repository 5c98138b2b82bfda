import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "./server-process.js";
import type { LeftOut } from "./servers.js";

/**
 * The versions of Node.js that users have, each with the release that tests take from npm. Of 24 it is the last one before 24.19: with the
 * headers of later ones, better-sqlite3 12 compiles to a binary that aborts the process when a statement is collected while it is idle.
 */
export const nodeReleases = { 20: "20.20.2", 22: "22.23.3", 24: "24.18.1" } as const;

export type NodeMajor = keyof typeof nodeReleases;

/** A Node.js to run what users install. */
export interface NodeVersion {
  /** The program. */
  readonly node: string;
  /** The environment in which `node` and `npm` are of this version, and better-sqlite3 need not be compiled again. */
  readonly env: NodeJS.ProcessEnv;
}

/** Another Node.js is downloaded, and better-sqlite3 compiled for it, once; both stay beside the checkouts of this user. */
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "osbert-tests");
const run = promisify(execFile);

/** The Node.js that runs this. */
export async function provideThisNode(): Promise<NodeVersion> {
  return withSqlite(process.execPath, environment(process.execPath));
}

/** The Node.js that runs this, if it is of that version, else the release from npm. */
export async function provideNode(major: NodeMajor): Promise<NodeVersion | LeftOut> {
  if (process.versions.node.startsWith(`${major}.`)) return provideThisNode();
  if (process.platform !== "linux") return { leftOut: "only Linux gets other versions of Node.js from npm" };
  if (findProgram("npm") === undefined) return { leftOut: "no npm found" };
  const node = await installNode(nodeReleases[major]);
  return withSqlite(node, environment(node, { npm_config_nodedir: join(dirname(node), "..") }));
}

async function withSqlite(node: string, env: NodeJS.ProcessEnv): Promise<NodeVersion> {
  const prebuilds = await prebuildSqlite(node, env);
  return { node, env: { ...env, npm_config_better_sqlite3_local_prebuilds: prebuilds } };
}

async function installNode(release: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  const node = join(cache, `node-${release}`, "node_modules", name, "bin", "node");
  await once(join(cache, `node-${release}`), async (folder) => {
    writeFileSync(join(folder, "package.json"), "{}");
    await run("npm", ["install", "--no-save", `${name}@${release}`], {
      cwd: folder,
      env: environment(process.execPath),
    });
  });
  return node;
}

/** A folder with better-sqlite3 for this Node.js, as its installer looks for it: compiling it takes a minute, and tests install often. */
async function prebuildSqlite(node: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await run(node, ["-p", "JSON.stringify(process.versions)"]);
  const { node: release, modules: abi } = JSON.parse(stdout) as NodeJS.ProcessVersions;
  const { version } = createRequire(import.meta.url)("better-sqlite3/package.json") as { version: string };
  // Kept apart by release: the headers of one may compile to what another does not bear.
  const prebuilds = join(cache, `better-sqlite3-${version}-node-${release}`);
  await once(prebuilds, async (folder) => {
    const built = await buildSqlite(abi, version, env);
    const name = `better-sqlite3-v${version}-node-v${abi}-${process.platform}-${process.arch}.tar.gz`;
    await run("tar", ["-czf", join(folder, name), "-C", built.folder, "build/Release/better_sqlite3.node"]);
    built.remove();
  });
  return prebuilds;
}

async function buildSqlite(abi: string, version: string, env: NodeJS.ProcessEnv) {
  if (abi === process.versions.modules) {
    const folder = dirname(createRequire(import.meta.url).resolve("better-sqlite3/package.json"));
    return { folder, remove: () => undefined };
  }
  const project = mkdtempSync(join(tmpdir(), "osbert-sqlite-"));
  writeFileSync(join(project, "package.json"), "{}");
  await run("npm", ["install", "--no-save", `better-sqlite3@${version}`], { cwd: project, env });
  return {
    folder: join(project, "node_modules", "better-sqlite3"),
    remove: () => rmSync(project, { recursive: true, force: true }),
  };
}

/** Makes a folder unless it is there. It appears whole or not at all, because several test files may want it at once. */
async function once(folder: string, make: (folder: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(join(cache, "making-"));
  await make(made);
  try {
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true, force: true }); // Another one was faster.
  }
}

/** Without what an npm around this process has set: it speaks of this repository. */
function environment(node: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const isKept = (name: string) =>
    !/^npm_/i.test(name) || /^npm_config_(registry|userconfig|cache|cafile)$/i.test(name);
  const kept = Object.entries(process.env).filter(([name]) => isKept(name));
  return {
    ...Object.fromEntries(kept),
    PATH: [dirname(node), process.env.PATH].join(delimiter),
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    ...more,
  };
}
