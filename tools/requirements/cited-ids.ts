import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** An id of a requirement or promise, and the file that it stands in. */
export interface Citation {
  readonly id: string;
  /** From the root of the repository. */
  readonly file: string;
}

/** Every id that stands in the repository, also those that do not exist. */
export function citedIds(): readonly Citation[] {
  return filesOf(/\.(?:ts|md)$/).flatMap((file) => idsIn(read(file)).map((id) => ({ id, file })));
}

/**
 * The ids that names of tests begin with: texts with ids and a colon. Skipped tests do not count. Those of the suites for stores are in
 * the sources, because the suites are a product.
 */
export function testedIds(): readonly Citation[] {
  const files = filesOf(/\.ts$/).filter((file) =>
    /^packages\/(?:[^/]+\/test|journal-suites\/src)\/|^examples\/test\//.test(file),
  );
  return files.flatMap((file) => {
    const source = read(file).replaceAll(/\.(?:skip|todo|fails)\(\s*["'`][^"'`]*/g, "");
    return [...source.matchAll(/["'`]((?:(?:(?:P-)?[A-Z]+-[0-9]+|[BJ][0-9]+)(?:, )?)+):/g)].flatMap(([, ids = ""]) =>
      ids.split(", ").map((id) => ({ id, file })),
    );
  });
}

/** Written alike, and none of ours. */
const standards = /^(?:UTF|SHA|AES|ISO|RFC|CVE|HS|RS|ES|PS|TLS|HTTP)-/;

/**
 * Words that look like an id of a family: `PROV-21`, `P-ORPH-03`, `B6`, `J10`. What belongs to a longer word (`SCRAM-SHA-256`), to an
 * escape (`%F0`) or to a set of characters (`A-Z0-9`) does not.
 */
export function idsIn(text: string): readonly string[] {
  const found = text.matchAll(/(?<![\w%\\-])(?:(?:P-)?[A-Z]{2,6}-[0-9]{1,3}|[BDEFGJ][0-9]{1,2})(?![\w-])/g);
  return [...new Set([...found].map(([id]) => id))].filter((id) => !standards.test(id));
}

function filesOf(name: RegExp): readonly string[] {
  const folders = ["packages", "tools", "docs", "examples", "deploy"].filter((folder) =>
    existsSync(join(root, folder)),
  );
  const below = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
  );
  const files = [...readdirSync(root), ...below].filter((file) => name.test(file));
  return files.filter((file) => !/(?:^|\/)(?:node_modules|dist|tarballs)\//.test(file)).sort();
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}
