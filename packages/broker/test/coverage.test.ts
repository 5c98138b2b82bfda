import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { platformRequirements, requirements } from "./requirements.js";

/** Rows of MUST that no test of a broker framework can reach, each with its reason. */
const outOfReach: Readonly<Record<string, string>> = {
  "PROF-07":
    "granting a client read permission in CredHub is done by the author's bind, in a system that Osbert does not speak to; the framework hands it bind_resource.credential_client_id (PROF-08)",
};

/** Promises of the design. */
const promises = Array.from({ length: 15 }, (_, index) => `B${index + 1}`);

const broker = new Set(Object.values(requirements).flat());
const platform = new Set(Object.values(platformRequirements).flat());

/** The names of tests, as they stand in the sources: texts that begin with ids and a colon. Skipped tests do not count. */
function namedTests(): readonly { readonly file: string; readonly ids: readonly string[] }[] {
  const packages = fileURLToPath(new URL("../../", import.meta.url));
  return ["broker", "protocol"].flatMap((name) => {
    const folder = join(packages, name, "test");
    const files = readdirSync(folder).filter((file) => file.endsWith(".test.ts") && file !== "coverage.test.ts");
    return files.flatMap((file) => {
      const source = readFileSync(join(folder, file), "utf8").replaceAll(/\.(?:skip|todo|fails)\(\s*["'`][^"'`]*/g, "");
      return [...source.matchAll(/["'`]((?:(?:(?:P-)?[A-Z]+-[0-9]+|B[0-9]+)(?:, )?)+):/g)].map(([, ids = ""]) => ({
        file: `${name}/test/${file}`,
        ids: ids.split(", "),
      }));
    });
  });
}

const named = namedTests();
const tested = new Set(named.flatMap(({ ids }) => ids));
const untested = (level: string) => (requirements[level] ?? []).filter((id) => !tested.has(id));

test("every MUST and MUST NOT has a test, or a reason why it cannot have one", () => {
  const missing = [...untested("MUST"), ...untested("MUST NOT")];
  expect(missing.filter((id) => !(id in outOfReach))).toEqual([]);
  // A reason for a row that has a test, or that is no MUST, is none.
  expect(Object.keys(outOfReach).filter((id) => !missing.includes(id))).toEqual([]);
});

test("every promise of the design has a test", () => {
  expect(promises.filter((promise) => !tested.has(promise))).toEqual([]);
});

test("every id in the name of a test is one of a requirement", () => {
  const known = new Set([...broker, ...platform, ...promises]);
  const unknown = named.flatMap(({ file, ids }) => ids.filter((id) => !known.has(id)).map((id) => `${file}: ${id}`));
  expect(unknown).toEqual([]);
});

test("the list of requirements is whole", () => {
  expect(broker.size).toBe(338);
  expect(platform.size).toBe(115);
});

test("what is told of the rows that need no test", () => {
  const lines = ["SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "DERIVED", "HOUSE"].map((level) => {
    const rows = requirements[level] ?? [];
    const left = untested(level);
    return `${level}: ${rows.length - left.length} of ${rows.length}${left.length > 0 ? `, without a test: ${left.join(" ")}` : ""}`;
  });
  const carried = [...platform].filter((id) => tested.has(id));
  console.log([...lines, `on a platform: ${carried.length} of ${platform.size}`].join("\n"));
});
