import { buildCatalog } from "@osbert/broker";
import { canonicalJson, type Json } from "@osbert/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import type { ParsedBundle } from "../src/formats/bundle-spec.js";
import { parseBundle } from "../src/formats/parse-bundle.js";
import { toService } from "../src/formats/to-service.js";

const formats = ["apb", "osbert"] as const;

/** Keys and values that mean something to one of the formats, in places where they may not belong. */
const word = fc.constantFrom(
  ...["osbert", "name", "version", "description", "plans", "parameters", "bind_parameters", "type", "enum", "default"],
  ...[
    "dependencies",
    "key",
    "value",
    "pattern",
    "provision",
    "update",
    "bind",
    "metadata",
    "costs",
    "updatesTo",
    "command",
  ],
  ...[
    "updates_to",
    "required",
    "properties",
    "actions",
    "tags",
    "string",
    "int",
    "1.0",
    "1.0.0",
    "__proto__",
    "constructor",
  ],
  ...["$ref", "$id", "$schema", "#", "(?=", "a{1000}", "\0", "\ud800", "e\u0301", "", "10m", "true"],
);
const leaf = fc.oneof(word, fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { maxLength: 5 }),
    fc.array(fc.tuple(word, tie("tree")), { maxLength: 6 }).map((pairs) => new Map(pairs)),
  ),
}));

/** Mostly right, so that what stands deeper is reached. */
const nearly = fc
  .record({
    plan: fc.array(fc.tuple(word, tree), { maxLength: 6 }),
    rest: fc.array(fc.tuple(word, tree), { maxLength: 4 }),
  })
  .map(
    ({ plan, rest }) =>
      new Map<string, unknown>([
        ...([
          ["osbert", 1],
          ["version", "1.0"],
          ["name", "x"],
          ["description", "d"],
        ] as const),
        ...rest,
        ["plans", [new Map<string, unknown>([["name", "p"], ["description", "d"], ...plan])]],
      ]),
  );

test("whatever is written, nothing is thrown, and what is valid can be offered", () => {
  let valid = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        tree.map((value) => stringify(value)),
        nearly.map((value) => stringify(value)),
      ),
      fc.constantFrom(...formats),
      fc.constantFrom(null, 1, 2),
      (text, format, runtime) => {
        const parsed = parseBundle({ format, text, runtime });
        expectSound(parsed);
        if (parsed.kind === "valid") valid++;
      },
    ),
    { numRuns: 3_000 },
  );
  expect(valid).toBeGreaterThan(50);
});

function expectSound(parsed: ParsedBundle): void {
  if (parsed.kind === "invalid") {
    expect(parsed.problems.length).toBeGreaterThan(0);
    expect(parsed.problems.length).toBeLessThanOrEqual(120);
    for (const { message, advice } of parsed.problems) expect([message !== "", advice]).toEqual([true, false]);
    return;
  }
  const { spec } = parsed;
  // It is kept as JSON, and comes back as it was.
  expect(canonicalJson(JSON.parse(JSON.stringify(spec)) as Json)).toBe(canonicalJson(spec as unknown as Json));
  const plans = spec.plans.map(({ name }, index) => ({ id: `p${index}`, name }));
  const facts = toService(spec, { id: "s", name: spec.name, plans, revision: "r", version: "0.0.0" });
  const { services } = buildCatalog([{ ...facts, update: async () => undefined, bind: async () => ({}) }]);
  expect(services.get("s")?.plans.size).toBe(spec.plans.length);
}

test("no message holds what may be a secret", () => {
  const secret = "hunter2";
  const apb = `version: 1.0\nname: x\ndescription: d\nplans: [{ name: p, parameters: [{ name: a, type: int, default: ${secret} }, { name: b, type: int, default: [${secret}] }] }]`;
  const own = `osbert: 1\nname: x\ndescription: d\nplans: { a: { description: d, provision: { properties: { a: { type: strin, default: ${secret} } } } } }`;
  for (const [format, text] of [
    ["apb", apb],
    ["osbert", own],
    ["osbert", `${own}: ${secret}`],
  ] as const) {
    const parsed = parseBundle({ format, text, runtime: null });
    const told = parsed.kind === "valid" ? parsed.advice : parsed.problems;
    expect(told.length).toBeGreaterThan(0);
    expect(JSON.stringify(told)).not.toContain(secret);
  }
});
