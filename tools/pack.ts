import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The condition under which this repository's own tests read sources. Tarballs have none. */
const sourceCondition = "@osbert/source";

/** Packages that no broker needs. They are packed into a folder of their own, so that `osbert-*.tgz` is what a broker needs. */
const forStoreAuthors = ["journal-suites"];

/**
 * Packs every package into the folder, as it is to be published, and answers the paths of the tarballs. What is packed is compiled anew,
 * without maps, because the sources that they lead to are not shipped, and without what a `dist` has kept of files that are gone. The
 * packages must have been built: one is compiled against the types of another.
 */
export function pack(folder: string): readonly string[] {
  mkdirSync(folder, { recursive: true });
  const packages = readdirSync(join(root, "packages")).filter((name) =>
    existsSync(join(root, "packages", name, "package.json")),
  );
  return packages.map((name) => {
    const stage = mkdtempSync(join(tmpdir(), "osbert-pack-"));
    try {
      prepare(join(root, "packages", name), stage);
      const to = forStoreAuthors.includes(name) ? join(folder, "for-store-authors") : folder;
      mkdirSync(to, { recursive: true });
      const packed = execFileSync("npm", ["pack", stage, "--pack-destination", to, "--silent"], { encoding: "utf8" });
      return join(to, packed.trim());
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
  });
}

function prepare(source: string, stage: string): void {
  const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"), (key, value) =>
    key === sourceCondition ? undefined : value,
  );
  const { devDependencies: _, ...published } = manifest;
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  cpSync(join(root, "LICENSE"), join(stage, "LICENSE"));
  cpSync(join(source, "README.md"), join(stage, "README.md"));
  for (const name of (published.files as readonly string[]).filter((file) => !/^(!|dist$)/.test(file)))
    cpSync(join(source, name), join(stage, name), { recursive: true });
  const plain = ["sourceMap", "declarationMap", "composite", "incremental"].flatMap((option) => [
    `--${option}`,
    "false",
  ]);
  const tsc = join(root, "node_modules", ".bin", "tsc");
  // What must not know Node.js is compiled apart from what does.
  for (const config of readdirSync(source).filter((name) => /^tsconfig.*\.json$/.test(name))) {
    const to = ["--outDir", join(stage, "dist"), "--tsBuildInfoFile", "null"];
    execFileSync(tsc, ["-p", join(source, config), ...to, ...plain], { stdio: ["ignore", "inherit", "inherit"] });
  }
}

// `npm run pack [-- FOLDER]`
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? join(root, "tarballs");
  rmSync(folder, { recursive: true, force: true });
  for (const tarball of pack(folder)) console.log(tarball);
}
