import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A row of the specification, in our own words. */
export interface Requirement {
  readonly id: string;
  /** MUST, SHOULD, MAY… as in the specification; DERIVED and HOUSE as the head of the file says. */
  readonly level: string;
  readonly request: string;
  readonly when: string;
  readonly must: string;
  readonly source: string;
}

/** A promise of Osbert's own. */
export interface Promised {
  readonly id: string;
  readonly name: string;
  readonly promise: string;
}

/** What Osbert does in a case of bundles and their registries, or of a platform and its brokers. */
export interface Case {
  readonly id: string;
  readonly when: string;
  readonly happens: string;
}

export interface Section<Row> {
  /** As it stands in the file: `## On a broker` opens a side, `### VER: API version header` a family of ids. */
  readonly heading: string;
  readonly rows: readonly Row[];
}

export const requirements: readonly Section<Requirement>[] = sectionsOf(
  "open-service-broker.md",
  ([id = "", level = "", request = "", when = "", must = "", source = ""]) => ({
    id,
    level,
    request,
    when,
    must,
    source,
  }),
);

export const promises: readonly Section<Promised>[] = sectionsOf(
  "promises.md",
  ([id = "", name = "", promise = ""]) => ({ id, name, promise }),
);

const toCase = ([id = "", when = "", happens = ""]: readonly string[]): Case => ({ id, when, happens });

export const bundleCases: readonly Section<Case>[] = sectionsOf("bundle-cases.md", toCase);

export const platformCases: readonly Section<Case>[] = sectionsOf("platform-cases.md", toCase);

/** True of a requirement on a platform. All others are on a broker. */
export function isOfPlatform({ id }: Requirement): boolean {
  return id.startsWith("P-");
}

/** What a file says before its first heading of a section. */
export function introductionOf(file: string): string {
  return textOf(file).split(/^## /m, 1)[0]?.trim() ?? "";
}

function sectionsOf<Row>(file: string, toRow: (cells: readonly string[]) => Row): readonly Section<Row>[] {
  const [, ...sections] = textOf(file).split(/^(?=##)/m);
  return sections.map((section) => {
    const [heading = "", ...lines] = section.split("\n");
    const cells = lines
      .filter((line) => /^\| [A-Z][A-Z0-9-]* \|/.test(line))
      .map((line) =>
        line
          .split("|")
          .map((cell) => cell.trim())
          .slice(1, -1),
      );
    return { heading, rows: cells.map(toRow) };
  });
}

function textOf(file: string): string {
  return readFileSync(fileURLToPath(new URL(file, import.meta.url)), "utf8");
}
