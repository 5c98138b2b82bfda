import { faultLine, parseYaml, parseYamlDocuments, type ValueNode } from "@osbert/server/yaml";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const module = "module: services.ts\n";

/** What is wrong with a text. */
function faults(yaml: string): readonly string[] {
  return parseYaml(yaml, "osbert.yaml").faults.map(faultLine);
}

describe("YAML", () => {
  test.each([
    ["a key twice", "log: { level: info }\nlog: { level: info }", "3:1 this key is there twice; leave one of them out"],
    ["a custom tag", "listen: { host: !evil x }", /2:17 has a tag/],
    ["a binary", "listen: { host: !!binary aGk= }", /2:\d+ has a tag/],
    ["a tab", "listen:\n\tport: 1", /3:1 is indented with a tab; use spaces/],
    ["an open quote", "listen: { host: 'x }", /2:17 this ' is not closed; write another ' where the text ends$/],
    ["an open double quote", 'store: "hunter2\nlog: { level: info }', /2:8 this " is not closed; write another "/],
    ["an open brace", "log: { level: info\nreload: {}", /2:6 this { is not closed: its } is missing/],
    ["an open bracket", "platforms: [a, b\nreload: {}", /2:12 this \[ is not closed: its \] is missing/],
    ["what is open in what is open", "log: { level: [info }", /2:15 this \[ is not closed/],
    ["two documents", "---\nlog: {}", /second document/],
    ["an anchor that is not there", "listen: { host: *nobody }", /refers to an anchor that is not there/],
    ["deep nesting", `catalog: ${"[".repeat(200)}${"]".repeat(200)}`, /nested deeper than 50 levels/],
  ])("%s is refused with its place", (_what, yaml, line) => {
    const [first] = faults(`${module}${yaml}\n`);
    expect(first).toMatch(line);
    expect(first).toMatch(/^osbert.yaml:\d+:\d+ /);
  });

  test("aliases that multiply are refused before they cost anything", () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const items = level === 0 ? "x, x" : Array.from({ length: 9 }, () => `*a${level - 1}`).join(", ");
      return `a${level}: &a${level} [${items}]`;
    });
    expect(faults(`${module}${levels.join("\n")}\n`)[0]).toMatch(/has more than 50000 values, aliases included/);
  });

  test("an alias of itself is refused", () => {
    expect(faults(`${module}platforms: &a [*a]\n`)[0]).toMatch(/^osbert.yaml:2:\d+ /);
  });

  test("no error of the parser quotes the line: a secret may be in it", () => {
    for (const broken of [
      'password: "hunter2',
      "password: hunter2: hunter2",
      "password: [hunter2",
      "- hunter2\nhunter2",
    ]) {
      const lines = faults(`${module}${broken}\n`).join("\n");
      expect(lines).not.toBe("");
      expect(lines).not.toContain("hunter2");
    }
  });

  test("a limit of one's own for the depth", () => {
    expect(parseYaml("a: [[x]]", "f", { deepest: 2 }).faults.map(faultLine)).toEqual([
      "f:1:6 is nested deeper than 2 levels",
    ]);
    expect(parseYaml("a: [[x]]", "f", { deepest: 3 }).faults).toEqual([]);
  });

  test("everything has its place, and a scalar is also there as it was typed", () => {
    const { written } = parseYaml("version: 2.10\nlist:\n  - true\n", "f.yaml");
    const at = (line: number, column: number) => ({ kind: "file", file: "f.yaml", line, column });
    expect(written).toEqual<ValueNode>({
      kind: "map",
      place: at(1, 1) as never,
      entries: new Map([
        ["version", { place: at(1, 1), written: { kind: "scalar", value: 2.1, text: "2.10", place: at(1, 10) } }],
        [
          "list",
          {
            place: at(2, 1),
            written: {
              kind: "list",
              place: at(3, 3),
              items: [{ kind: "scalar", value: true, text: "true", place: at(3, 5) }],
            },
          },
        ],
      ]) as never,
    });
  });

  test("49,000 keys are read: the parser's own search for those that are there twice took minutes", () => {
    expect(faults(Array.from({ length: 49_000 }, (_, at) => `k${at}: 1`).join("\n"))).toEqual([]);
  });

  test.each([
    ["keys", Array.from({ length: 80_000 }, (_, at) => `k${at}: 1`).join("\n"), /has more than 50000 values/],
    ["brackets", "[".repeat(1_000_000), /has more than 50000 values/],
    ["dashes", "- ".repeat(500_000), /has more than 50000 values/],
    ["anchors", "&a ".repeat(300_000), /has more than 50000 values/],
    ["bytes", "é".repeat(600_000), /is larger than 1048576 bytes/],
  ])("a megabyte of %s is refused before it costs anything", (_what, text, line) => {
    const [first] = faults(text);
    expect(first).toMatch(line);
  });

  test("whatever is written, nothing is thrown, and what is wrong has a place in the text", () => {
    const sign = fc.constantFrom(
      ..."-?:,[]{}#&*!|>'\"%@` \n\t<=~.ab1é\u2028\0".split(""),
      "---",
      "...",
      "<<: ",
      "!!",
      "\r\n",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(sign, { maxLength: 60 }).map((signs) => signs.join("")),
        ),
        (text) => {
          const lines = text.split("\n").length;
          for (const { faults: found } of [parseYaml(text, "f"), parseYamlDocuments(text, "f")])
            for (const { place } of found) expect(place.kind === "file" && place.line <= lines).toBe(true);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
