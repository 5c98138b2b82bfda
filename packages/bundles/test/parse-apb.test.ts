import { buildCatalog } from "@osbert/broker";
import { compileSchema } from "@osbert/server/schemas";
import { describe, expect, test } from "vitest";
import type { BundleSpec, SpecProblem } from "../src/formats/bundle-spec.js";
import { parseApb } from "../src/formats/parse-apb.js";
import { toService } from "../src/formats/to-service.js";

const whole = `---
version: '1.0'
name: cache-apb
description: A cache in memory
bindable: true
async: required
bundleVersion: 1.4.0
tags: [cache, memory]
metadata:
  displayName: Cache
  console.openshift.io/iconClass: icon-cache
alpha: { dashboard_redirect: true }
plans:
  - name: dev
    description: Forgets everything
    free: true
    parameters:
      - name: password
        title: Password
        type: string
        display_type: password
        required: true
        min_length: 8
        maxlength: 20
        max_length: 40
        pattern: "^[a-z0-9]+$"
      - { name: version, type: enum, enum: [4, 5.10, '6'], default: 6, updatable: true, required: true }
      - { name: memory, type: int, default: '64', minimum: 16, exclusive_minimum: true, maximum: 512, multiple_of: 16 }
      - { name: ratio, type: number, exclusive_maximum: 1.5, display_group: Tuning }
      - { name: tls, type: bool, default: 'False', display_group: Tuning, display_type: checkbox }
      - { name: labels, type: object }
      - { name: hosts, type: array }
      - { name: nothing, type: nil }
    bind_parameters:
      - { name: user, type: string, required: true }
    updates_to: [prod]
  - name: prod
    description: Remembers
    free: false
    bindable: false
    metadata: { cost: $5.00 }
`;

const specOf = (text: string, runtime: number | null = null): BundleSpec => {
  const parsed = parseApb(text, runtime);
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.problems, null, 1));
  return parsed.spec;
};

const problemsOf = (text: string, runtime: number | null = null): readonly SpecProblem[] => {
  const parsed = parseApb(text, runtime);
  return parsed.kind === "invalid" ? parsed.problems : [];
};

const linesOf = (problems: readonly SpecProblem[]) =>
  problems.map(({ path, message, line }) => `${line} ${path} ${message}`);

/** One plan with these parameters, on lines 6 and following. */
const withParameters = (...parameters: readonly string[]) =>
  ["version: 1.0", "name: x", "description: d", "plans:", "- name: p", "  description: d", "  parameters:"]
    .concat(parameters.map((parameter) => `  - { ${parameter} }`))
    .join("\n");

test("all fields of an apb.yml", () => {
  const { plans, ...spec } = specOf(whole, 2);
  expect(spec).toEqual({
    format: "apb",
    runtime: 2,
    name: "cache-apb",
    id: null,
    description: "A cache in memory",
    tags: ["cache", "memory"],
    bindable: true,
    metadata: { displayName: "Cache", "console.openshift.io/iconClass": "icon-cache" },
    bundleVersion: "1.4.0",
    async: "required",
    actions: ["provision", "update", "deprovision", "bind", "unbind"],
    command: null,
    network: true,
    timeoutMs: null,
  });
  expect(plans.map(({ schemas: _, metadata: __, ...plan }) => plan)).toEqual([
    {
      ...{ name: "dev", id: null, previousNames: [], description: "Forgets everything" },
      ...{ free: true, bindable: true, updatesTo: ["prod"] },
    },
    {
      ...{ name: "prod", id: null, previousNames: [], description: "Remembers" },
      ...{ free: false, bindable: false, updatesTo: [] },
    },
  ]);
  expect(plans[0]?.schemas.provision).toEqual({
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      password: { type: "string", title: "Password", minLength: 8, maxLength: 40, pattern: "^[a-z0-9]+$" },
      version: { type: "string", enum: ["4", "5.10", "6"], default: "6" },
      memory: { type: "integer", exclusiveMinimum: 16, maximum: 512, multipleOf: 16, default: 64 },
      ratio: { type: "number", exclusiveMaximum: 1.5 },
      tls: { type: "boolean", default: false },
      labels: { type: "object" },
      hosts: { type: "array" },
      nothing: { type: "null" },
    },
    required: ["password", "version"],
    additionalProperties: false,
  });
  expect(plans[0]?.schemas.update).toEqual({
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { version: { type: "string", enum: ["4", "5.10", "6"], default: "6" } },
    additionalProperties: false,
  });
  expect(Object.keys(plans[0]?.schemas.bind?.properties ?? {})).toEqual(["user"]);
  expect(plans[1]?.schemas.bind).toBeNull();
});

test("forms of the OpenShift console: types, and boxes of neighbours with one group", () => {
  const [plan] = specOf(whole).plans;
  expect(plan?.metadata.schemas).toEqual({
    service_instance: {
      create: {
        openshift_form_definition: [
          { key: "password", type: "password" },
          ...["version", "memory"],
          { type: "fieldset", title: "Tuning", items: ["ratio", { key: "tls", type: "checkbox" }] },
          ...["labels", "hosts", "nothing"],
        ],
      },
      update: { openshift_form_definition: ["version"] },
    },
    service_binding: { create: { openshift_form_definition: ["user"] } },
  });
});

describe("dependencies", () => {
  const text = withParameters(
    "name: kind, type: enum, enum: [a, b, c]",
    "name: size, type: int",
    "name: first, type: string, required: true, dependencies: [{ key: kind, value: a }, { key: kind, value: b }, { key: size, value: 3 }]",
    "name: second, type: string, required: true, dependencies: [{ key: size }]",
  );
  const check = compileSchema(specOf(text).plans[0]?.schemas.provision ?? {}, "parameters");

  test.each([
    [{}, null],
    [{ kind: "a" }, null],
    [{ size: 3, second: "x" }, null],
    [{ kind: "a", size: 3, second: "x" }, "parameters must have required property 'first'"],
    [{ kind: "b", size: 3, second: "x" }, "parameters must have required property 'first'"],
    [{ kind: "c", size: 3, second: "x" }, null],
    [{ kind: "a", size: 4, second: "x" }, null],
    [{ size: 1 }, "parameters must have required property 'second'"],
    [{ kind: "a", size: 3, first: "x", second: "x" }, null],
  ])("all of them count, not only the first: %j", (parameters, problem) => {
    expect(check(parameters)).toBe(problem);
  });

  test("a parameter that is asked for only sometimes is checked whenever it is sent", () => {
    expect(check({ first: 1 })).toBe("parameters.first must be string");
  });
});

test("what is not a parameter cannot be sent: extra variables win over all others in Ansible", () => {
  const [plan] = specOf(whole).plans;
  for (const schema of [plan?.schemas.provision, plan?.schemas.update, plan?.schemas.bind])
    expect(
      compileSchema(schema ?? {}, "it")({ password: "abcdefgh", version: "4", user: "u", ansible_user: "root" }),
    ).toMatch(/must NOT have additional properties/);
});

describe("F5-10: what is wrong has its field and its line", () => {
  test.each([
    [
      "name: a, type: sting",
      "8 plans[0].parameters[0].type must be string, enum, int, integer, number, bool, boolean, object, array, nil, null; did you mean string?",
    ],
    ["name: a", "8 plans[0].parameters[0].type is missing; write e.g. type: string"],
    ["type: string", "8 plans[0].parameters[0].name is missing; write e.g. name: database_name"],
    ["name: 'a b', type: string", "8 plans[0].parameters[0].name must have no blanks and no control characters in it"],
    [
      "name: __proto__, type: string",
      "8 plans[0].parameters[0].name must have no blanks and no control characters in it",
    ],
    [
      "name: a, type: string, pattern: '(?=x)'",
      "8 plans[0].parameters[0].pattern cannot be matched in linear time (RE2): invalid or unsupported Perl syntax: `(?=`",
    ],
    [
      "name: a, type: string, pattern: 'a['",
      "8 plans[0].parameters[0].pattern cannot be matched in linear time (RE2): missing closing ]: `[`",
    ],
    ["name: a, type: string, max_length: many", "8 plans[0].parameters[0].max_length must be a number"],
    ["name: a, type: string, min_length: -1", "8 plans[0].parameters[0].min_length must be a whole number, at least 0"],
    ["name: a, type: int, multiple_of: 0", "8 plans[0].parameters[0].multiple_of must be more than 0"],
    ["name: a, type: enum", "8 plans[0].parameters[0].enum is missing; list the values that are allowed"],
    ["name: a, type: int, enum: [1, x]", "8 plans[0].parameters[0].enum[1] must be a value of type integer"],
    ["name: a, type: string, required: maybe", "8 plans[0].parameters[0].required must be true or false"],
    [
      "name: a, type: string, dependencies: [{ key: b }]",
      "8 plans[0].parameters[0].dependencies[0].key is none of the plan's other parameters",
    ],
    [
      "name: a, type: string, dependencies: [{ key: a }]",
      "8 plans[0].parameters[0].dependencies[0].key is none of the plan's other parameters",
    ],
  ])("{ %s }", (parameter, line) => {
    expect(linesOf(problemsOf(withParameters(parameter)))).toEqual([line]);
  });

  test.each([
    [
      "version: 2.0\nname: x\ndescription: d\nplans: [{ name: p, description: d }]",
      "1 version is a version of the format that is not supported; it must be 1.0",
    ],
    [
      "name: x\ndescription: d\nplans: [{ name: p, description: d }]",
      "1 version is missing; write e.g. version: '1.0'",
    ],
    [
      "version: 1.0\ndescription: d\nplans: [{ name: p, description: d }]",
      "1 name is missing; write e.g. name: postgresql-apb",
    ],
    ["version: 1.0\nname: x\ndescription: d\nplans: []", "4 plans must have at least one plan"],
    ["version: 1.0\nname: x\ndescription: d", "1 plans must have at least one plan"],
    [
      "version: 1.0\nname: x\ndescription: d\nplans:\n- { name: p, description: d }\n- { name: p, description: d }",
      "6 plans[1].name is there twice; give one of them another name",
    ],
    [
      "version: 1.0\nname: x\ndescription: d\nbundleVersion: 1.2\nplans: [{ name: p, description: d }]",
      "4 bundleVersion must be a semantic version; write e.g. bundleVersion: 1.2.0",
    ],
    [
      "version: 1.0\nname: x\ndescription: d\nasync: sometimes\nplans: [{ name: p, description: d }]",
      "4 async must be optional or required or unsupported",
    ],
    [
      "version: 1.0\nname: x\ndescription: d\nplans: [{ name: p, description: d, metadata: { costs: [{ amount: { eur: free } }] } }]",
      /^4 plans\[0\].metadata.costs\[0\].amount.eur must be a number/,
    ],
    ["- a list", "1  must be lines of key: value"],
    ["", "null  is empty"],
    ["a: [", "1  this [ is not closed: its ] is missing, or is not indented deeper than the line that opens it"],
  ])("%j", (text, line) => {
    const [first = ""] = linesOf(problemsOf(text));
    if (typeof line === "string") expect(first).toBe(line);
    else expect(first).toMatch(line);
  });

  test("F5-36: a runtime that this broker does not know", () => {
    expect(linesOf(problemsOf(whole, 3))).toEqual([
      "2 runtime the runtime of the image's label is not supported; it must be 1 or 2",
    ]);
    expect(specOf(whole).runtime).toBe(1);
  });

  test("F5-44: the last plan is gone", () => {
    expect(problemsOf("version: 1.0\nname: x\ndescription: d\nplans: []")).not.toEqual([]);
  });
});

describe("what authors were used to write is taken as it was meant", () => {
  const text = `version: 1.0
name: hello
bindable: "False"
unknown: 1
plans:
  - name: default
    free: "True"
    bindabel: true
    metadata: { longDescription: Says hello }
    parameters:
    - { name: port, type: int, default: none }
    updates_to: [defalt]
`;

  test("with advice", () => {
    const parsed = parseApb(text, 1);
    expect(parsed.kind === "valid" && parsed.spec).toMatchObject({ bindable: false, description: "hello" });
    expect(parsed.kind === "valid" && parsed.spec.plans[0]).toMatchObject({ free: true, description: "Says hello" });
    expect(linesOf(parsed.kind === "valid" ? parsed.advice : [])).toEqual([
      expect.stringMatching(/^4 unknown is not known here; possible: /),
      "8 plans[0].bindabel is not known here; did you mean bindable?",
      "11 plans[0].parameters[0].default is not of type integer; it is left out",
      "12 plans[0].updates_to[0] is none of the plans; it is left out; did you mean default?",
      "6 plans[0].description is missing; say in a sentence what users get",
      "1 description is missing; say in a sentence what users get",
    ]);
  });
});

test("F5-63: names in two forms of one letter are one name", () => {
  const text = "version: 1.0\nname: 'cafe\u0301'\ndescription: d\nplans:\n- { name: 'e\u0301', description: d }\n";
  expect(specOf(text)).toMatchObject({ name: "caf\u00e9", plans: [{ name: "\u00e9" }] });
  expect(problemsOf(`${text}- { name: '\u00e9', description: d }\n`)[0]?.path).toBe("plans[1].name");
});

test("F5-81: free and bindable are written out, also where they are false", () => {
  const plans = [
    { id: "1", name: "dev" },
    { id: "2", name: "prod" },
  ];
  const facts = toService(specOf(whole), { id: "s", name: "dh-cache-apb", plans, revision: "r", version: "1.4.0" });
  const { body } = buildCatalog([{ ...facts, update: async () => undefined, bind: async () => ({}) }]);
  const [service] = JSON.parse(body).services;
  expect(service).toMatchObject({ id: "s", name: "dh-cache-apb", bindable: true, plan_updateable: true });
  expect(service.plans).toMatchObject([
    { name: "dev", free: true, bindable: true, plan_updateable: true, maintenance_info: { version: "1.4.0" } },
    { name: "prod", free: false, bindable: false, plan_updateable: false },
  ]);
});

test("limits: plans, depth, aliases, bytes, patterns and schemas together", () => {
  const plans = (count: number) =>
    Array.from({ length: count }, (_, at) => `- { name: p${at}, description: d }`).join("\n");
  const head = "version: 1.0\nname: x\ndescription: d\n";
  expect(specOf(`${head}plans:\n${plans(200)}`).plans).toHaveLength(200);
  const first = (text: string) => linesOf(problemsOf(text))[0];
  expect(first(`${head}plans:\n${plans(201)}`)).toBe("4 plans must have at most 200 plans");
  expect(first(`${head}metadata: ${"[".repeat(30)}${"]".repeat(30)}`)).toMatch(/nested deeper than 20 levels/);
  expect(first(`${head}metadata:\n  a: &a x\n  b: [${"*a,".repeat(101)}]`)).toMatch(/more than the 100th alias/);
  expect(first(`${head}metadata: { a: ${"x".repeat(1_100_000)} }`)).toMatch(/larger than 1048576 bytes/);
  const slow = Array.from({ length: 100 }, (_, at) => `name: p${at}, type: string, pattern: '(abcdefgh${at}){1000}'`);
  expect(first(withParameters(...slow))).toBe(
    "4 plans have patterns that are too long, or repeat too often; write smaller counts in {}",
  );
  // As it is compiled: once, however often it stands there.
  const same = Array.from({ length: 100 }, (_, at) => `name: p${at}, type: string, pattern: '(abcdefghij){1000}'`);
  expect(specOf(withParameters(...same)).plans).toHaveLength(1);
  const many = Array.from({ length: 150 }, (_, at) => `name: p${at}, type: string, description: '${"d".repeat(300)}'`);
  expect(first(withParameters(...many, ...many.map((parameter) => parameter.replace("p", "q"))))).toMatch(
    /^7 plans\[0\]\.parameters must have at most 65536 bytes, not \d+$/,
  );
  const plan = withParameters(...many).split("- name: p\n")[1] ?? "";
  const three = ["a", "b", "c"].map((name) => `- name: ${name}\n${plan}`).join("\n");
  expect(first(`${head}plans:\n${three}`)).toMatch(/^4 plans must have schemas of at most 131072 bytes together, not/);
  const classes = Array.from(
    { length: 600 },
    (_, at) => `name: p${at}, type: string, pattern: '^${"\\pL".repeat(3)}${at}$'`,
  );
  expect(first(withParameters(...classes))).toMatch(/^4 plans have patterns that are too long/);
});
