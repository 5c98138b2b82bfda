import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pushImage } from "./image.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Puts an image of the program as it was built into a registry, with this machine's Node.js: it stands for that of deploy/image, which takes minutes.
 * Answers the name to run it by.
 */
export async function pushProgram(registry: string): Promise<string> {
  const image = mkdtempSync(join(tmpdir(), "osbert-program-"));
  try {
    await copyNode(image);
    await copyPackages(join(image, "app", "node_modules"));
    for (const folder of ["tmp", "data", "etc"]) mkdirSync(join(image, folder), { recursive: true });
    const entrypoint = ["node", "/app/node_modules/osbert/bin/osbert.js"];
    return await pushImage(registry, "osbert/program", "1", {
      ...{ root: image, entrypoint, command: ["serve"], env: { PATH: "/usr/bin:/bin", NODE_ENV: "production" } },
    });
  } finally {
    rmSync(image, { recursive: true });
  }
}

/** With the libraries that it is linked to, where it looks for them. */
async function copyNode(image: string): Promise<void> {
  const { stdout } = await run("ldd", [process.execPath]);
  const libraries = stdout.match(/\/\S+(?= \()/g) ?? [];
  for (const [from, to] of [[process.execPath, "/usr/bin/node"], ...libraries.map((path) => [path, path])] as const) {
    mkdirSync(join(image, dirname(to)), { recursive: true });
    cpSync(realpathSync(from), join(image, to));
  }
}

/** The program's packages and what they need, without what only compiles them. */
async function copyPackages(modules: string): Promise<void> {
  const args = ["ls", "--workspace", "packages/cli", "--omit=dev", "--all", "--parseable"];
  // It complains of packages that others of the workspace brought along, and lists all the same.
  const { stdout } = await run("npm", args, { cwd: root, maxBuffer: 2 ** 24 }).catch((error) => error);
  const folders = new Set<string>(
    String(stdout)
      .trim()
      .split("\n")
      .map((folder) => realpathSync(folder)),
  );
  const isWanted = (path: string) =>
    !/\.(map|d\.ts|tsbuildinfo)$/.test(path) && !/better-sqlite3\/(deps|src|build\/Release\/obj)/.test(path);
  for (const folder of folders) {
    const path = relative(root, folder);
    if (path.startsWith("node_modules/")) {
      // What lies inside of another one comes with that.
      if (path.split("node_modules/").length > 2) continue;
      const to = join(modules, path.slice("node_modules/".length));
      cpSync(folder, to, { recursive: true, dereference: true, filter: isWanted });
    } else if (path.startsWith("packages/")) {
      const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      const isShipped = (file: string) =>
        isWanted(file) && !["src", "test", "bench", "node_modules"].includes(basename(file));
      cpSync(folder, join(modules, name), { recursive: true, filter: isShipped });
    }
  }
}
