import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "@osbert/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { snippetsOf } from "../../../tools/snippets.js";
import { lintBundle } from "../src/author/lint-bundle.js";
import { actions } from "../src/formats/bundle-spec.js";
import { bundleFields, parseOsbertYaml, planFields } from "../src/formats/parse-osbert-yaml.js";
import { endOf, exitCodes, noOutput, readOutput } from "../src/runners/action-output.js";

// docs/reference/bundle-contract.md says what the code does, and its bundle keeps what the page asks of one.

const page = readFileSync(
  fileURLToPath(new URL("../../../docs/reference/bundle-contract.md", import.meta.url)),
  "utf8",
);
const snippets = snippetsOf(page);
const snippet = (mark: string, value = "") => snippets.find(({ marks }) => marks.get(mark) === value)?.code ?? "";

/** The first cells of the rows of a table, by the titles of its first columns. */
const firstCells = (title: string): readonly string[] => {
  const [, rows = ""] = new RegExp(`^\\| ${title} \\|.*\\n\\|-.*\\n((?:\\|.*\\n)*)`, "m").exec(page) ?? [];
  return rows
    .split("\n")
    .flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name));
};

test("the tables have every field of osbert.yaml", () => {
  expect([...firstCells("field \\| value")].sort()).toEqual([...bundleFields].sort());
  expect([...firstCells("field of a plan")].sort()).toEqual([...planFields].sort());
});

test("the page's osbert.yaml is one of which there is nothing to say", () => {
  expect(lintBundle(snippet("file", "osbert.yaml"), "osbert.yaml")).toEqual([]);
});

test("the table of the input has every field of the example, and those of an update", () => {
  const fields = [...Object.keys(JSON.parse(snippet("input"))), "previous", "maintenance"];
  expect([...firstCells("field \\| when")].sort()).toEqual(fields.sort());
});

test("the lines of output are read, and the table has each of them", () => {
  const lines = snippet("output").trimEnd().split("\n");
  const output = readOutput(noOutput, lines);
  expect(output.rubbish).toBeNull();
  expect(Object.entries(output).filter(([, said]) => said === null)).toEqual([["rubbish", null]]);
  expect(firstCells("line")).toEqual(lines.map((line) => Object.keys(JSON.parse(line))[0]));
});

test("the exit codes are those that the page names", () => {
  const [, rows = ""] = /^\| code \|.*\n\|-.*\n((?:\|.*\n)*)/m.exec(page) ?? [];
  const codes = [...rows.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(exitCodes));
});

describe("the page's bundle", () => {
  const folder = mkdtempSync(join(tmpdir(), "osbert-contract-"));
  const made = join(folder, "folders");
  const input = JSON.parse(snippet("input")) as JsonObject;
  const parsed = parseOsbertYaml(snippet("file", "osbert.yaml"));
  const [program = "", ...words] = (parsed.kind === "valid" && parsed.spec.command) || [];

  beforeAll(() =>
    writeFileSync(join(folder, "bundle.mjs"), snippet("file", "bundle.mjs").replace("/srv/folders", made)),
  );
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (action: string, more: JsonObject) => {
    const { stdout, status } = spawnSync(program === "node" ? process.execPath : program, [...words, action], {
      cwd: folder,
      input: JSON.stringify({ ...input, action, state: {}, ...more }),
      encoding: "utf8",
    });
    const output = readOutput(noOutput, stdout.split("\n"));
    return { output, end: endOf({ kind: "ended", exitCode: status ?? -1, cause: "exit" }, output) };
  };
  const done = { kind: "done" };

  test("lives, and every action may run twice", () => {
    const [first, second] = [run("provision", {}), run("provision", {})];
    expect([first.end, second.end]).toEqual([done, done]);
    expect(second.output.state).toEqual(first.output.state);
    const { state } = first.output;
    expect(readdirSync(made)).toHaveLength(1);

    expect([run("update", { state }).end, run("update", { state }).end]).toEqual([done, done]);

    const [bound, again] = [run("bind", { state }), run("bind", { state })];
    expect(bound.output.credentials).toEqual({
      folder: state.folder,
      password: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(again.output.credentials).toEqual(bound.output.credentials);
    const bindingState = bound.output.state;
    for (const _ of [1, 2]) expect(run("unbind", { state, bindingState }).end).toEqual(done);
    expect(readdirSync(String(state.folder))).toEqual([]);

    for (const _ of [1, 2]) expect(run("deprovision", { state }).end).toEqual(done);
    expect(readdirSync(made)).toEqual([]);
  });

  test("is undone after nothing was done", () => {
    expect(run("deprovision", {}).end).toEqual(done);
    expect(run("unbind", { bindingState: {} }).end).toEqual(done);
  });

  test("refuses with a reason, and says which action it does not have", () => {
    expect(run("provision", { parameters: { label: "root" } }).end).toEqual({
      kind: "refused",
      text: "the label root is taken; choose another",
    });
    expect(run("dance", {}).end).toEqual({ kind: "not known" });
    expect(parsed.kind === "valid" && parsed.spec.actions).toEqual(actions);
  });
});
