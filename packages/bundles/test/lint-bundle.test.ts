import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lintBundle } from "../src/author/lint-bundle.js";

const linesOf = (text: string, file: string) =>
  lintBundle(text, file).map(({ path, message, line, advice }) => `${line} ${advice ? "" : "! "}${path} ${message}`);

const good = `osbert: 1
name: cache
version: 1.0.0
description: A cache
command: ./run
plans:
  small:
    description: Little
    provision:
      type: object
      additionalProperties: false
      properties:
        name: { type: string, pattern: '^[a-z]+$' }
`;

test("of a good bundle there is nothing to say", () => {
  expect(lintBundle(good, "osbert.yaml")).toEqual([]);
});

test("what is wrong keeps the bundle from being used, and nothing else is said then", () => {
  expect(linesOf(good.replace("command", "comand"), "osbert.yaml")).toEqual([
    "5 ! comand is not known here; did you mean command?",
  ]);
});

describe("advice on an osbert.yaml", () => {
  test.each([
    [good.replace("version: 1.0.0\n", ""), /^1 version is missing; with one, platforms can offer upgrades/],
    [good.replace("name: cache", "name: My_Cache"), /^2 name should have only letters, digits, dots and dashes/],
    [good.replace("A cache", "x".repeat(300)), /^4 description is longer than 255 characters/],
    [good.replace("command: ./run\n", ""), /^1 command is missing; only an image/],
    [
      `${good}bindable: true\nactions: [provision, update, deprovision]`,
      /^14 bindable is true, but bind is not among actions/,
    ],
    [`${good}actions: [provision, update, deprovision, bind]`, /^14 actions has bind without unbind/],
    [`${good}actions: [provision, update]`, /^14 actions has provision without deprovision/],
    [`${good}actions: [provision, deprovision]`, /^14 actions has no update: parameters and plans of instances stay/],
    [`${good}  large: { description: Much }`, /^14 plans.large has no schema for provision/],
    [good.replace("      additionalProperties: false\n", ""), /^9 plans.small.provision lets parameters pass/],
    [good.replace("^[a-z]+$", "[a-z]+"), /^13 plans.small.provision.properties.name.pattern matches a part/],
    [
      good.replace("name: { type: string, pattern: '^[a-z]+$' }", "adminPassword: { type: string, default: admin }"),
      /^13 plans.small.provision.properties.adminPassword.default is a secret/,
    ],
    [
      good.replace("pattern: '^[a-z]+$'", "format: password, default: x"),
      /^13 plans.small.provision.properties.name.default is a secret/,
    ],
    [
      good.replace("  small:\n", "  - name: small\n").replace("^[a-z]+$", "x"),
      /^13 plans\[0\].provision.properties.name.pattern matches a part/,
    ],
  ])("%#", (text, line) => {
    const [first, ...others] = linesOf(text, "bundle/osbert.yaml");
    expect(first).toMatch(line);
    expect(others).toEqual([]);
  });
});

test("advice on an apb.yml", () => {
  const text = `version: 1.0
name: cache-apb
description: A cache
plans:
- name: dev
  parameters:
  - { name: size, type: string, pattern: '[0-9]+' }
  - { name: db_password, type: string, default: admin }
`;
  expect(linesOf(text, "apb.yml")).toEqual([
    "1 bundleVersion is missing; with one, platforms can offer upgrades: write e.g. bundleVersion: 1.0.0",
    "5 plans[0].description is missing; say in a sentence what users get",
    "7 plans[0].parameters[0].pattern matches a part of the text, too; write ^ before and $ after it if all of it is meant",
    "8 plans[0].parameters[1].default is a secret that everyone who sees the catalog knows; leave it out, and make one in the bundle",
  ]);
});

test("whatever is written, nothing is thrown", () => {
  const line = fc.constantFrom(
    ...good.split("\n"),
    "plans:",
    "- name: x",
    "  a:",
    "    provision: { properties: [1] }",
  );
  fc.assert(
    fc.property(
      fc.array(line).map((lines) => lines.join("\n")),
      fc.constantFrom("apb.yml", "osbert.yaml"),
      (text, file) => {
        lintBundle(text, file);
      },
    ),
    { numRuns: 500 },
  );
});
