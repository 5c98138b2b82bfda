import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { credentialsAsEnv, prefixOf } from "../../src/client/credentials-as-env.js";
import { columnsOf, fitting, plainJson, plainText } from "../../src/client/plain-text.js";
import { schemaParameters } from "../../src/client/schema-parameters.js";
import { shellQuote } from "../../src/client/shell-quote.js";
import { table } from "../../src/client/table.js";

describe("what a broker says, on a terminal", () => {
  test.each([
    ["\u001b[31mred\u001b[0m", "red"],
    ["\u001b]0;new title\u0007after", "after"],
    ["\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\", "link"],
    ["\u009b2Jcleared", "cleared"],
    ["a\r\nb\tc\u0000d\u007fe", "a b c d e"],
    ["safe\u202Eexe.txt", "safeexe.txt"],
    ["unended \u001b]0;title", "unended"],
    ["unended \u001b[", "unended"],
    ["Zoë 数据库 👍", "Zoë 数据库 👍"],
  ])("%j is shown as %j", (text, shown) => {
    expect(plainText(text)).toBe(shown);
  });

  test("it is not endless", () => {
    expect(plainText("x".repeat(10_000_000), 100)).toHaveLength(100);
  });

  test("JSON for machines is the same value, and harmless to look at", () => {
    const value = { a: "\u001b[2J\u009b2J\u202e\u2028", b: [1, "ü"] };
    const text = plainJson(value);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).not.toMatch(/(?!\n)\p{Cc}|[\u202e\u2028]/u);
    expect(text).toContain("ü");
  });

  test("wide characters count twice, marks not at all, and a cut line fits", () => {
    expect(columnsOf("abc")).toBe(3);
    expect(columnsOf("数据")).toBe(4);
    expect(columnsOf("e\u0301")).toBe(1);
    expect(columnsOf(fitting("数据库数据库", 6))).toBeLessThanOrEqual(6);
    expect(fitting("short", 5)).toBe("short");
  });

  test("a table keeps its columns whatever stands in a cell", () => {
    expect(
      table(
        ["A", "B"],
        [
          ["one\ntwo", "x"],
          ["数", "\u001b[31my"],
        ],
      ),
    ).toBe("A        B\none two  x\n数       y");
    expect(table(["A", "B"], [["a", "long description"]], 10)).toBe("A  B\na  long d…");
  });
});

describe("credentials as variables of a shell", () => {
  const hostile = [
    "plain",
    "",
    "it's",
    '$(touch /tmp/x) `id` $HOME \\ " ; & | > \n second line',
    "-----BEGIN-----\nabc\n-----END-----\n",
    "'; exit 1; '",
    "ü 数 👍",
    "tab\there",
  ];

  test.each(["sh", "bash"])("%s reads every value back as it was", (shell) => {
    const script = hostile.map((value) => `printf '%s\\0' ${shellQuote(value)}\n`).join("");
    const { stdout, status } = spawnSync(shell, ["-c", script], { encoding: "utf8" });
    expect(status).toBe(0);
    expect(stdout.split("\0").slice(0, -1)).toEqual(hostile);
  });

  test("values that a terminal would obey are written out, and bash reads them back", () => {
    const values = ["\u001b]0;title\u0007 it's \\ here", "\u009b2J", "\u202eevil", "a\rb"];
    const words = values.map(shellQuote);
    for (const word of words) expect(word).not.toMatch(/(?![\n\t])\p{Cc}|\u202e/u);
    const { stdout } = spawnSync("bash", ["-c", `printf '%s\\0' ${words.join(" ")}`], { encoding: "utf8" });
    expect(stdout.split("\0").slice(0, -1)).toEqual(values);
  });

  test("names come from the way to the value", () => {
    const text = credentialsAsEnv(
      {
        uri: "db://x",
        db: { userName: "jo", "pass-word": "it's" },
        hosts: ["a", "b"],
        port: 5432,
        tls: true,
        none: null,
        "1st": "x",
      },
      "MY_DB_",
    );
    expect(text.split("\n")).toEqual([
      "export MY_DB_URI='db://x'",
      "export MY_DB_DB_USER_NAME='jo'",
      "export MY_DB_DB_PASS_WORD='it'\\''s'",
      "export MY_DB_HOSTS_0='a'",
      "export MY_DB_HOSTS_1='b'",
      "export MY_DB_PORT='5432'",
      "export MY_DB_TLS='true'",
      "export MY_DB_NONE=''",
      "export MY_DB_1ST='x'",
      "",
    ]);
    expect(prefixOf("my-db")).toBe("MY_DB_");
    expect(credentialsAsEnv({ "1st": "x" }, "")).toBe("export _1ST='x'\n");
  });

  test("a name cannot carry a command", () => {
    expect(credentialsAsEnv({ "x=1; touch /tmp/x; y": "v", "a\nb": "w" }, "")).toBe(
      "export X_1_TOUCH_TMP_X_Y='v'\nexport A_B='w'\n",
    );
  });

  test("two values of one name are an error, not one value", () => {
    expect(() => credentialsAsEnv({ "user-name": "a", user_name: "b" }, "")).toThrow(/both be called USER_NAME/);
  });

  test("too many and too deep ones are refused", () => {
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, "v"]));
    expect(() => credentialsAsEnv(many, "")).toThrow(/too many/);
    expect(() => credentialsAsEnv(JSON.parse(`${'{"a":'.repeat(50)}1${"}".repeat(50)}`), "")).toThrow(/too deep/);
  });
});

test("a schema's parameters are listed with type, need and meaning", () => {
  const schema = {
    type: "object",
    required: ["region", "backup"],
    properties: {
      region: { enum: ["eu", "us"], description: "where" },
      size: { type: ["integer", "null"], default: 3 },
      backup: {
        type: "object",
        required: ["hour"],
        properties: { hour: { type: "integer", minimum: 0, maximum: 23 } },
      },
      share: { type: "number", minimum: 0, exclusiveMinimum: true, maximum: 1, exclusiveMaximum: true },
      "dotted.name": true,
    },
  };
  expect(schemaParameters(schema)).toEqual([
    { name: "region", type: '"eu" | "us"', required: true, description: "where" },
    { name: "size", type: "integer | null", required: false, description: "(default 3)" },
    { name: "backup.hour", type: "integer from 0 to 23", required: true, description: "" },
    { name: "share", type: "number above 0 below 1", required: false, description: "" },
    { name: "dotted\\.name", type: "any", required: false, description: "" },
  ]);
  for (const none of [undefined, null, true, [], { properties: [] }, { properties: null }])
    expect(schemaParameters(none)).toEqual([]);
});
