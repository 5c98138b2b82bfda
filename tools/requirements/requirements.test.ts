import { expect, test } from "vitest";
import { citedIds, idsIn, testedIds } from "./cited-ids.js";
import { isOfPlatform, promises, type Requirement, requirements } from "./requirements.js";

/** Rows of MUST that no test of a broker framework can reach, each with its reason. */
const outOfReach: Readonly<Record<string, string>> = {
  "PROF-07":
    "granting a client read permission in CredHub is done by the author's bind, in a system that Osbert does not speak to; the framework hands it bind_resource.credential_client_id (PROF-08)",
};

const rows = requirements.flatMap((section) => section.rows);
const broker = rows.filter((row) => !isOfPlatform(row));
const platform = rows.filter(isOfPlatform);
const promised = promises.flatMap((section) => section.rows.map(({ id }) => id));
const known = new Set([...rows.map(({ id }) => id), ...promised]);
const tested = new Set(testedIds().map(({ id }) => id));

const ofLevel = (level: string): readonly Requirement[] => broker.filter((row) => row.level === level);
const untested = (level: string) => ofLevel(level).flatMap(({ id }) => (tested.has(id) ? [] : [id]));

test("every MUST and MUST NOT has a test, or a reason why it cannot have one", () => {
  const missing = [...untested("MUST"), ...untested("MUST NOT")];
  expect(missing.filter((id) => !(id in outOfReach))).toEqual([]);
  // A reason for a row that has a test, or that is no MUST, is none.
  expect(Object.keys(outOfReach).filter((id) => !missing.includes(id))).toEqual([]);
});

test("every promise has a test", () => {
  expect(promised.filter((id) => !tested.has(id))).toEqual([]);
});

test("every id that stands anywhere in the repository is one of the pages", () => {
  expect(citedIds().filter(({ id }) => !known.has(id))).toEqual([]);
});

test("what looks like an id is taken for one, and what only looks a little like it is not", () => {
  // Put together here, or the test above would find them.
  const none = [4, 21].map((number) => `E${number}`).concat(`NOPE-${1}`);
  expect(idsIn(`PROV-21, P-ORPH-03 to P-ORPH-18 (B6) and J10: ${none.join(", ")}; J10`)).toEqual([
    ...["PROV-21", "P-ORPH-03", "P-ORPH-18", "B6", "J10"],
    ...none,
  ]);
  expect(idsIn("UTF-8 SCRAM-SHA-256 %F0 \\\\B5 [A-Z0-9] V8 2026-11-16 B123 xB1 B1x B1-2")).toEqual([]);
});

test("the list of requirements is whole, and none is there twice", () => {
  expect(broker).toHaveLength(338);
  expect(platform).toHaveLength(115);
  expect(promised).toEqual([...numbered("J", 12), ...numbered("B", 15)]);
  expect(known.size).toBe(338 + 115 + 12 + 15);
  for (const row of rows)
    expect(
      Object.values(row).every((cell) => cell !== ""),
      row.id,
    ).toBe(true);
});

test("what is told of the rows that need no test", () => {
  const lines = ["SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "DERIVED", "HOUSE"].map((level) => {
    const all = ofLevel(level).length;
    const left = untested(level);
    return `${level}: ${all - left.length} of ${all}${left.length > 0 ? `, without a test: ${left.join(" ")}` : ""}`;
  });
  const carried = platform.filter(({ id }) => tested.has(id));
  console.log([...lines, `on a platform: ${carried.length} of ${platform.length}`].join("\n"));
});

function numbered(family: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${family}${index + 1}`);
}
