import { expect, test } from "vitest";
import { citedIds, idsIn, testedIds } from "./cited-ids.js";
import { bundleCases, isOfPlatform, platformCases, promises, type Requirement, requirements } from "./requirements.js";

/** Rows of MUST that no test of a broker framework can reach, each with its reason. */
const outOfReach: Readonly<Record<string, string>> = {
  "PROF-07":
    "granting a client read permission in CredHub is done by the author's bind, in a system that Osbert does not speak to; the framework hands it bind_resource.credential_client_id (PROF-08)",
};

/** Rows of MUST that are about what this platform does not do. */
const ofOtherPlatforms: Readonly<Record<string, string>> = {
  "P-ID-05": "a call is made for one author; changes of several are never put together",
  "P-ID-09": "Cloud Foundry's identities; the platform sends its own",
  "P-ID-10": "Kubernetes' identities; they come with the edge to Kubernetes",
  "P-BIND-04": "route services need a router, which belongs to the platform that applications run on",
  "P-BIND-05": "streaming logs and proxying requests belong to the platform that applications run on",
  "P-PROF-02": "Cloud Foundry's context; the platform sends its own",
  "P-PROF-03": "Kubernetes' context; it comes with the edge to Kubernetes",
  "P-PROF-04": "the platform sends no annotations",
  "P-UPD-02": "there is no change of the context alone: an instance keeps its name and its space",
  "P-PROF-05": "Cloud Foundry's bind_resource; the platform sends app_guid alone",
};

const rows = requirements.flatMap((section) => section.rows);
const broker = rows.filter((row) => !isOfPlatform(row));
const platform = rows.filter(isOfPlatform);
const promised = promises.flatMap((section) => section.rows.map(({ id }) => id));
const cases = [...bundleCases, ...platformCases].flatMap((section) => section.rows);
const known = new Set([...rows.map(({ id }) => id), ...promised, ...cases.map(({ id }) => id)]);
const tested = new Set(testedIds().map(({ id }) => id));

type Rows = readonly Requirement[];
const ofLevel = (side: Rows, level: string): Rows => side.filter((row) => row.level === level);
const untested = (side: Rows, level: string) => ofLevel(side, level).flatMap(({ id }) => (tested.has(id) ? [] : [id]));

test("every MUST and MUST NOT has a test, or a reason why it cannot have one", () => {
  const missing = [broker, platform].flatMap((side) => [...untested(side, "MUST"), ...untested(side, "MUST NOT")]);
  const excused = [...Object.keys(outOfReach), ...Object.keys(ofOtherPlatforms)];
  expect(missing.filter((id) => !excused.includes(id))).toEqual([]);
  // A reason for a row that has a test, or that is no MUST, is none.
  expect(excused.filter((id) => !missing.includes(id))).toEqual([]);
});

test("every promise has a test", () => {
  expect(promised.filter((id) => !tested.has(id))).toEqual([]);
});

test("every id that stands anywhere in the repository is one of the pages", () => {
  expect(citedIds().filter(({ id }) => !known.has(id))).toEqual([]);
});

test("what looks like an id is taken for one, and what only looks a little like it is not", () => {
  // Put together here, or the test above would find them.
  const none = [40, 21].map((number) => `E${number}`).concat(`NOPE-${1}`);
  expect(idsIn(`PROV-21, P-ORPH-03 to P-ORPH-18 (B6) and J10: ${none.join(", ")}; J10`)).toEqual([
    ...["PROV-21", "P-ORPH-03", "P-ORPH-18", "B6", "J10"],
    ...none,
  ]);
  expect(idsIn("UTF-8 SCRAM-SHA-256 %F0 \\\\B5 [A-Z0-9] V8 2026-11-16 B123 xB1 B1x B1-2")).toEqual([]);
});

test("cases of bundles are cited alone, in part, several at once, and as a range", () => {
  const none = `F5-${12 * 10}`;
  expect(idsIn(`(F2) F5-17a: F5-4, 46 and F5-30 to 33, F5-64; ${none}, 2026-11-16`)).toEqual([
    ...["F2", "F5-17", "F5-4", "F5-46", "F5-30", "F5-31", "F5-32", "F5-33", "F5-64"],
    none,
  ]);
});

test("cases of a platform are cited in the same way", () => {
  const none = `E10-${65}`;
  expect(idsIn(`(E3) E10-17a: E10-4, 46 and E10-30 to 32; ${none}`)).toEqual([
    ...["E3", "E10-17", "E10-4", "E10-46", "E10-30", "E10-31", "E10-32"],
    none,
  ]);
});

test("the list of requirements is whole, and none is there twice", () => {
  expect(broker).toHaveLength(338);
  expect(platform).toHaveLength(115);
  expect(promised).toEqual([...numbered("J", 12), ...numbered("B", 15)]);
  expect(cases.map(({ id }) => id)).toEqual([
    ...["F0", "F1", "F2", "F3", "F4", "F6"],
    ...numbered("F5-", 86),
    ...numbered("E", 8),
    ...numbered("E10-", 64),
    ...numbered("G", 9),
    ...["G11", "G15", "G16"],
  ]);
  expect(known.size).toBe(338 + 115 + 12 + 15 + 92 + 72 + 12);
  for (const row of [...rows, ...cases])
    expect(
      Object.values(row).every((cell) => cell !== ""),
      row.id,
    ).toBe(true);
});

test("what is told of the rows that need no test", () => {
  const lines = ["SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "DERIVED", "HOUSE"].map((level) => {
    const told = Object.entries({ broker, platform }).map(([side, rows]) => {
      const all = ofLevel(rows, level).length;
      const left = untested(rows, level);
      return `on a ${side} ${all - left.length} of ${all}${left.length > 0 ? `, without a test: ${left.join(" ")}` : ""}`;
    });
    return `${level}: ${told.join("; ")}`;
  });
  console.log(lines.join("\n"));
});

function numbered(family: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${family}${index + 1}`);
}
