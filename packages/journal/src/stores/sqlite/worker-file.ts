import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** What `new Worker` takes: a file, or code to evaluate. */
export type WorkerFile = { readonly file: URL; readonly eval: false } | { readonly file: string; readonly eval: true };

/**
 * Where the code of a thread is. Compiled, it lies beside this file.
 *
 * Run from source (vitest, tsx) there is only TypeScript here, which a thread of Node 20 cannot load by itself. Then
 * the compiled file of the last build serves, if nothing was edited since; or else tsx loads the source inside the
 * thread. Both do the same, the first opens a store four times as fast. An older build is never used: tests would
 * test something else.
 */
export function workerFile(name: "writer-worker" | "checkpoint-worker"): WorkerFile {
  if (import.meta.url.endsWith(".js")) return { file: new URL(`./${name}.js`, import.meta.url), eval: false };
  const built = new URL(`../../../dist/stores/sqlite/${name}.js`, import.meta.url);
  if (isBuilt()) return { file: built, eval: false };
  return { file: loadWithTsx(new URL(`./${name}.ts`, import.meta.url)), eval: true };
}

/** Not `--import tsx`: in a thread of Node 20 that does not reach the thread's own file. */
function loadWithTsx(source: URL): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx/package.json"));
  const api = new URL("./dist/esm/api/index.mjs", tsx);
  return `import(${JSON.stringify(api)}).then(({ register }) => { register(); return import(${JSON.stringify(source)}); });`;
}

/** Each file by itself: a build that failed may have written some of them. */
function isBuilt(): boolean {
  // What a thread is made of lies in this folder and at the top of the package.
  return ["./", "../../"].every((folder) => {
    const sources = fileURLToPath(new URL(folder, import.meta.url));
    const built = fileURLToPath(new URL(`../../../dist/stores/sqlite/${folder}`, import.meta.url));
    const names = readdirSync(sources).filter((name) => name.endsWith(".ts"));
    return names.every((name) => isNewer(join(built, name.replace(/\.ts$/, ".js")), join(sources, name)));
  });
}

function isNewer(built: string, source: string): boolean {
  const builtAt = statSync(built, { throwIfNoEntry: false })?.mtimeMs;
  return builtAt !== undefined && builtAt > statSync(source).mtimeMs;
}
