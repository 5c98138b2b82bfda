import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const packageFolder = join(dirname(fileURLToPath(import.meta.url)), "..");
const template = join(packageFolder, "template");

/** What a project depends on. What those need is named only where it comes from files. */
const used = ["@osbert/broker", "osbert"];
/** All packages of Osbert that `used` need, themselves among them. */
export const packed = [
  "@osbert/broker",
  "@osbert/bundles",
  "@osbert/journal",
  "@osbert/kubernetes",
  "@osbert/platform",
  "@osbert/protocol",
  "@osbert/server",
  "osbert",
];

/** Why there is no project, for the one who asked. Nothing was written. */
export class CannotCreate extends Error {}

/**
 * Writes a project into a new folder: the files of the template, with the folder's name and ids of its own. With `tarballs`, the folder
 * that `npm run pack` fills, Osbert's packages are copied into the project, for as long as no registry has them.
 */
export function createProject(folder: string, { tarballs }: { readonly tarballs?: string } = {}): void {
  const name = basename(resolve(folder));
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(name))
    throw new CannotCreate(`${name} cannot be the project's name: it takes lower-case letters, digits and dashes`);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CannotCreate(`${folder} is there already, and is not empty`);
  const { version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as { version: string };
  const copied = tarballs === undefined ? new Map<string, string>() : tarballsIn(tarballs, version);

  const ids = new Map<string, string>();
  for (const file of readdirSync(template, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const from = join(file.parentPath, file.name);
    // npm leaves files with these names out of a package, or reads them: they travel without their dot.
    const to = join(folder, file.parentPath.slice(template.length), file.name.replace(/^dot-/, "."));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, fill(readFileSync(from, "utf8"), name, ids));
  }
  for (const [tarball, path] of copied) {
    mkdirSync(join(folder, "vendor"), { recursive: true });
    copyFileSync(path, join(folder, "vendor", tarball));
  }
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const dependencies =
    tarballs === undefined
      ? used.map((each) => [each, `^${version}`])
      : packed.map((each) => [each, `file:vendor/${tarballOf(each, version)}`]);
  manifest.dependencies = Object.fromEntries(dependencies);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The template is a project that works, called my-broker. Platforms know a service by its ids, so every project gets others. */
function fill(text: string, name: string, ids: Map<string, string>): string {
  return text.replaceAll("my-broker", name).replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, (id) => {
    const own = ids.get(id) ?? randomUUID();
    ids.set(id, own);
    return own;
  });
}

function tarballsIn(folder: string, version: string): ReadonlyMap<string, string> {
  return new Map(
    packed.map((name) => {
      const tarball = tarballOf(name, version);
      if (!existsSync(join(folder, tarball)))
        throw new CannotCreate(`${folder} has no ${tarball}; make it with npm run pack, in Osbert's repository`);
      return [tarball, join(folder, tarball)];
    }),
  );
}

/** As `npm pack` names it. */
function tarballOf(name: string, version: string): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}
