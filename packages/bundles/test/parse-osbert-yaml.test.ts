import { describe, expect, test } from "vitest";
import type { BundleSpec, SpecProblem } from "../src/formats/bundle-spec.js";
import { parseOsbertYaml } from "../src/formats/parse-osbert-yaml.js";

const whole = `osbert: 1
name: postgres-database
id: 5B1E7A0C-8D54-4A5E-9A0E-0D6E2A6A4F10
version: 1.10.0
description: One PostgreSQL database per instance
tags: [postgresql]
metadata: { displayName: PostgreSQL }
async: required
network: true
timeout: 10m
command: [node, bundle.js]
actions: [unbind, bind, provision, deprovision, update]
plans:
  shared:
    description: On a shared host
    provision:
      type: object
      properties: { size: { type: integer, maximum: 10 } }
    updatesTo: [own]
  own:
    id: 5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f11
    previousNames: [dedicated]
    description: A host of its own
    free: false
    bindable: false
    metadata: { bullets: [fast] }
`;

const small = "osbert: 1\nname: x\nversion: 1.0.0\ndescription: d\nplans:\n  a:\n    description: d\n";

const specOf = (text: string): BundleSpec => {
  const parsed = parseOsbertYaml(text);
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.problems, null, 1));
  return parsed.spec;
};

const linesOf = (problems: readonly SpecProblem[]) =>
  problems.map(({ path, message, line }) => `${line} ${path} ${message}`);

const problemsOf = (text: string): readonly string[] => {
  const parsed = parseOsbertYaml(text);
  return parsed.kind === "invalid" ? linesOf(parsed.problems) : [];
};

test("all fields of an osbert.yaml", () => {
  expect(specOf(whole)).toEqual({
    format: "osbert",
    runtime: null,
    name: "postgres-database",
    id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10",
    description: "One PostgreSQL database per instance",
    tags: ["postgresql"],
    bindable: true,
    metadata: { displayName: "PostgreSQL" },
    bundleVersion: "1.10.0",
    async: "required",
    actions: ["provision", "update", "deprovision", "bind", "unbind"],
    command: ["node", "bundle.js"],
    network: true,
    timeoutMs: 600_000,
    plans: [
      {
        ...{ name: "shared", id: null, previousNames: [], description: "On a shared host", free: true, bindable: true },
        ...{ metadata: {}, updatesTo: ["own"] },
        schemas: {
          provision: { type: "object", properties: { size: { type: "integer", maximum: 10 } } },
          update: null,
          bind: null,
        },
      },
      {
        ...{ name: "own", id: "5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f11", previousNames: ["dedicated"] },
        ...{ description: "A host of its own", free: false, bindable: false },
        ...{ metadata: { bullets: ["fast"] }, updatesTo: [] },
        schemas: { provision: null, update: null, bind: null },
      },
    ],
  });
});

test("the least that a bundle has to say, and what that means", () => {
  expect(specOf("osbert: 1\nname: x\ndescription: d\nplans: { a: { description: d } }")).toMatchObject({
    ...{
      id: null,
      bundleVersion: null,
      bindable: true,
      async: "optional",
      network: false,
      timeoutMs: null,
      command: null,
    },
    actions: ["provision", "update", "deprovision", "bind", "unbind"],
    plans: [{ free: true, bindable: true }],
  });
  expect(specOf(`${small}actions: [provision, deprovision]`)).toMatchObject({
    bindable: false,
    plans: [{ bindable: false }],
  });
  expect(specOf(`${small}command: ./run`)).toMatchObject({ command: ["./run"] });
});

test("plans as a list are the same as plans by name", () => {
  const list = whole.replace("  shared:\n", "  - name: shared\n").replace("  own:\n", "  - name: own\n");
  expect(specOf(list)).toEqual(specOf(whole));
});

test("the same meaning in another order is the same spec", () => {
  const [format = "", ...lines] = small.trimEnd().split("\n");
  const [plans = []] = [lines.splice(-3)];
  expect(specOf([...plans, ...lines.reverse(), format].join("\n"))).toEqual(specOf(small));
});

describe("what is wrong has its place and says what to do", () => {
  test.each([
    [`${small}comand: ./run`, "8 comand is not known here; did you mean command?"],
    [`${small}    provison: {}`, "8 plans.a.provison is not known here; did you mean provision?"],
    [
      "module: services.ts\nlisten: { port: 1 }",
      "1 osbert is missing: this looks like settings of the program; a bundle's file begins with osbert: 1",
    ],
    ["name: x", "1 osbert is missing; begin with osbert: 1"],
    ["osbert: 2\nname: x", "1 osbert is a version of the format that is not supported; it must be 1"],
    [small.replace("1.0.0", "1.10"), "3 version must be a semantic version; write e.g. version: 1.2.0"],
    [`${small}id: mine`, "8 id must be a UUID, such as 5b1e7a0c-8d54-4a5e-9a0e-0d6e2a6a4f10"],
    [`${small}timeout: 10`, "8 timeout must be a number with a unit: ms, s, m, h or d, at most 7d"],
    [`${small}timeout: 8d`, "8 timeout must be a number with a unit: ms, s, m, h or d, at most 7d"],
    [
      `${small}command: node bundle.js`,
      "8 command must be a list if it has arguments; write e.g. command: [node, bundle.js]",
    ],
    [`${small}command: []`, "8 command must name a program"],
    [
      `${small}actions: [provision, bin]`,
      "8 actions[1] is no action: provision, update, deprovision, bind, unbind; did you mean bind?",
    ],
    [`${small}    updatesTo: [b]`, "8 plans.a.updatesTo[0] is none of the plans; did you mean a?"],
    [
      `${small}    updatesTo: [a]\nactions: [provision]`,
      "8 plans.a.updatesTo needs the action update, which is not among actions",
    ],
    [
      `${small}    update: {}\nactions: [provision]`,
      "8 plans.a.update needs the action update, which is not among actions",
    ],
    [`${small}    previousNames: [a]`, "8 plans.a.previousNames[0] is a name of plan a"],
    [
      `${small}  b: { description: d, previousNames: [o] }\n  c: { description: d, previousNames: [o] }`,
      "9 plans.c.previousNames[0] is a name of plan b",
    ],
    [
      `${small}    provision: { type: string }`,
      "8 plans.a.provision must be a schema of an object; write type: object",
    ],
    [`${small}    provision: []`, "8 plans.a.provision must be lines of key: value"],
    [
      small.replace("    description: d\n", "    free: true\n"),
      "6 plans.a.description is missing; write e.g. description: A database on a shared host",
    ],
    [
      small.replace("\ndescription: d", ""),
      "1 description is missing; write e.g. description: One PostgreSQL database per instance",
    ],
    ["osbert: 1\nname: x\ndescription: d\nplans: {}", "4 plans must have at least one plan"],
    ["osbert: 1\nname: x\ndescription: d", "1 plans must have at least one plan"],
    [small.replace("  a:", "  'a b':"), "6 plans.a b as a name it must have no blanks and no control characters in it"],
    [`${small}metadata: { a: .inf }`, "8 metadata.a must be a finite number"],
    [`${small}metadata: { a: "\\0" }`, "8 metadata.a must not hold NUL or half of a surrogate pair"],
    [`${small}metadata: { __proto__: 1 }`, "8 metadata.__proto__ is not a name that can be used here"],
  ])("%j", (text, line) => {
    expect(problemsOf(text)).toEqual([line]);
  });
});

describe("F5-82: a schema that cannot be checked is refused when it is read, and never when it is served", () => {
  test.each([
    ["provision: { properties: { a: { type: strin } } }", /^8 plans\.a\.provision parameters is not a valid schema/],
    [
      "update: { properties: { a: { pattern: '(?=x)' } } }",
      /^8 plans\.a\.update parameters is not a valid schema: .*unsupported Perl syntax/,
    ],
    ["bind: { $schema: 'http://example.org/mine' }", /^8 plans\.a\.bind parameters: \$schema .* is none of drafts/],
    ["provision: { $ref: 'http://example.org/x' }", /^8 plans\.a\.provision/],
    [
      "provision: { $ref: '#/definitions/nowhere' }",
      /^8 plans\.a\.provision parameters is not a valid schema: can't resolve/,
    ],
    [
      "provision: { definitions: { a: { $ref: '#/definitions/b' }, b: { $ref: '#/definitions/a' } }, $ref: '#/definitions/a' }",
      /^8 plans\.a\.provision/,
    ],
    ["provision: { $id: 'http://json-schema.org/draft-07/schema#' }", /^8 plans\.a\.provision/],
    [`provision: { description: ${"x".repeat(70_000)} }`, /^8 plans\.a\.provision must have at most 65536 bytes/],
    [
      `provision: { properties: { a: { type: string, pattern: '${"(abcdefghij){1000}".repeat(40)}' } } }`,
      /^5 plans have patterns that are too long/,
    ],
  ])("%.80s", (schema, line) => {
    expect(problemsOf(`${small}    ${schema}\n`)[0]).toMatch(line);
    // And nothing of it stays behind.
    expect(problemsOf(`${small}    provision: { type: object }\n`)).toEqual([]);
  });

  test("what platforms will not see of a schema is said to the author", () => {
    const parsed = parseOsbertYaml(`${small}    provision: { propertyNames: { maxLength: 3 } }\n`);
    expect(parsed.kind === "valid" && linesOf(parsed.advice)[0]).toMatch(/^8 plans\.a\.provision /);
  });
});
