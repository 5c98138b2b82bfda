import { describe, expect, test } from "vitest";
import { type ParameterSource, readParameters } from "../../src/client/parameters.js";

const files: Readonly<Record<string, string>> = {
  "base.json": '{"a":{"x":1,"y":2},"list":[1]}',
  "-": '{"from":"stdin"}',
};
const read = async (file: string): Promise<string> => files[file] ?? "";
const document = (text: string): ParameterSource => ({ kind: "document", text });
const pair = (text: string): ParameterSource => ({ kind: "pair", text });
const parse = (...sources: readonly ParameterSource[]) => readParameters(sources, read);
/** As it travels. */
const wire = async (...sources: readonly ParameterSource[]) => JSON.stringify(await parse(...sources));

describe("parameters", () => {
  test("none are none, not an empty object", async () => {
    expect(await parse()).toBeUndefined();
    expect(await wire(document("{}"))).toBe("{}");
  });

  test("a text stays a text, whatever it looks like; := takes JSON", async () => {
    expect(await wire(pair("n=3"), pair("t=true"), pair("empty="), pair("eq=a=b:=c"))).toBe(
      '{"n":"3","t":"true","empty":"","eq":"a=b:=c"}',
    );
    expect(await wire(pair("n:=3"), pair('l:=["a",{"b":null}]'), pair('s:="x"'))).toBe(
      '{"n":3,"l":["a",{"b":null}],"s":"x"}',
    );
  });

  test("dots lead into nested values, and an escaped dot is part of a name", async () => {
    expect(await wire(pair("a.b.c=1"), pair("a.b.d:=2"), pair("host\\.name=x"))).toBe(
      '{"a":{"b":{"c":"1","d":2}},"host.name":"x"}',
    );
  });

  test("later ones win, objects are merged, everything else is replaced", async () => {
    expect(await wire(document("@base.json"), pair("a.y:=3"), document('{"list":[2,3]}'))).toBe(
      '{"a":{"x":1,"y":3},"list":[2,3]}',
    );
    expect(await wire(pair("a.y:=3"), document("@base.json"))).toBe('{"a":{"y":2,"x":1},"list":[1]}');
    expect(await wire(pair("a=text"), pair("a.b=1"))).toBe('{"a":{"b":"1"}}');
    expect(await wire(document("@-"), pair("b=1"))).toBe('{"from":"stdin","b":"1"}');
  });

  test("names of the prototype are names like any other, and touch nothing here", async () => {
    const text = await wire(
      document('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
      pair("__proto__.also=1"),
      pair("constructor.prototype.also=1"),
    );
    expect(text).toBe('{"__proto__":{"polluted":1,"also":"1"},"constructor":{"prototype":{"polluted":1,"also":"1"}}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(({} as Record<string, unknown>).also).toBeUndefined();
  });

  test.each([
    [pair("no-equals-sign"), /name=text/],
    [pair("=x"), /name=text/],
    [pair("a..b=1"), /name=text/],
    [pair("n:=three"), /not JSON; a text needs quotes/],
    [document("[1]"), /JSON object/],
    [document("{"), /not JSON/],
    [document("@nothing.json"), /-P @nothing.json: it is not JSON/],
    [document(`${'{"a":'.repeat(200)}1${"}".repeat(200)}`), /levels deep/],
    [pair(`${"a.".repeat(200)}b=1`), /name=text/],
  ])("%j is refused with what to write", async (source, message) => {
    await expect(parse(source)).rejects.toThrow(message);
  });

  test("an error does not repeat a value: it may be a secret", async () => {
    for (const source of [document('{"password":"hunter2'), pair("password:=hunter2")])
      await expect(parse(source)).rejects.not.toThrow(/hunter2/);
  });
});
