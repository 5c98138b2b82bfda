import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** An id of a requirement, a promise or a case, and the file that it stands in. */
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
    return [...source.matchAll(namesBegin)].flatMap(([, ids = ""]) => idsIn(ids).map((id) => ({ id, file })));
  });
}

const namesBegin =
  /["'`]((?:(?:(?:P-)?[A-Z]+-[0-9]+|[BGJ][0-9]+|(?:F[0-9]|E[0-9]{1,2})(?:-[0-9]+[a-z]?(?:(?:, | to )[0-9]+)*)?)(?:, )?)+):/g;

/** Written alike, and none of ours. */
const standards = /^(?:UTF|SHA|AES|ISO|RFC|CVE|HS|RS|ES|PS|TLS|HTTP)-/;

/**
 * Words that look like an id of a family: `PROV-21`, `P-ORPH-03`, `B6`, `J10`, and cases of bundles: `F2`, `F5-17`, a part of one (`F5-17a`),
 * several (`F5-4, 46`) and a range (`F5-30 to 33`); those of a platform (`E10-17`) alike. What belongs to a longer word (`SCRAM-SHA-256`), to an escape (`%F0`) or to a set of
 * characters (`A-Z0-9`) does not.
 */
export function idsIn(text: string): readonly string[] {
  const found = text.matchAll(
    /(?<![\w%\\-])(?:(?:P-)?[A-Z]{2,6}-[0-9]{1,3}|(?:F5-|E10-)[0-9]{1,3}[a-z]?(?:(?:, | to )[0-9]{1,3}(?![\w-]))*|[BDEFGJ][0-9]{1,2})(?![\w-])/g,
  );
  const ids = [...found].flatMap(([one]) => (/^(?:F5-|E10-)/.test(one) ? casesIn(one) : [one]));
  return [...new Set(ids)].filter((id) => !standards.test(id));
}

/** `F5-30 to 33, 40`: each of them. */
function casesIn(cases: string): readonly string[] {
  const family = cases.slice(0, cases.indexOf("-") + 1);
  return cases
    .slice(family.length)
    .split(", ")
    .flatMap((range) => {
      const [first = 0, last = first] = range.split(" to ").map((number) => Number.parseInt(number, 10));
      return Array.from({ length: Math.max(1, last - first + 1) }, (_, index) => `${family}${first + index}`);
    });
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
