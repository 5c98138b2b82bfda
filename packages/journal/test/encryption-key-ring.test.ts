import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { encryptedStore, newKey, parseKeyRing } from "../src/encryption/index.js";
import { memoryStore } from "../src/stores/memory.js";

const key = () => randomBytes(32).toString("base64");
const bytesOf = (value: unknown) => (value as KeyObject).export().toString("base64");

describe("parseKeyRing", () => {
  test("the first key is the active one; comments, empty lines and spaces do not count", () => {
    const [first, second] = [key(), key()];
    const ring = parseKeyRing(`# of 2030: not\n\n  2030-01 : ${first}\r\n\t2029-01:${second}  \n`);
    expect(ring.active).toBe("2030-01");
    expect(Object.keys(ring.keys).sort()).toEqual(["2029-01", "2030-01"]);
    expect(Object.entries(ring.keys).map(([id, value]) => [id, bytesOf(value)])).toEqual(
      expect.arrayContaining([
        ["2030-01", first],
        ["2029-01", second],
      ]),
    );
  });

  test("commas may stand in place of line ends, as in an environment variable", () => {
    const ring = parseKeyRing(`b:${key()},a:${key()}, c:${key()}`);
    expect([ring.active, Object.keys(ring.keys).sort()]).toEqual(["b", ["a", "b", "c"]]);
  });

  test("ids that mean something to JavaScript, or are numbers, are ids as any other", () => {
    expect(parseKeyRing(`9:${key()}\n1:${key()}`).active).toBe("9");
    const ring = parseKeyRing(`constructor:${key()}`);
    expect(encryptedStore(memoryStore(), ring).name).toBe("memory");
  });

  test("a key in base64 for URLs, without its end, is a key too", () => {
    const bytes = Buffer.alloc(32, 0xfb);
    expect(bytesOf(parseKeyRing(`a:${bytes.toString("base64url")}`).keys.a)).toBe(bytes.toString("base64"));
  });

  const secret = key();
  test.each([
    ["nothing", "", "holds no key"],
    ["comments alone", "# a\n#b", "holds no key"],
    ["a key without an id", `a:${key()}\n${secret}`, "line 2 has no colon"],
    ["an empty id", `a:${key()}\n\n:${secret}`, "line 3: the id"],
    ["an id with a space", `a b:${secret}`, "line 1: the id"],
    ["an id that is too long", `${"a".repeat(33)}:${secret}`, "line 1: the id"],
    ["an id that is no name for a property", `__proto__:${secret}`, "line 1: the id"],
    ["a key and an id the wrong way round", `${secret}:a`, "line 1: the id"],
    ["an id twice", `a:${key()}\na:${secret}`, 'line 2: there is a key "a" already'],
    ["a key that is too short", `a:${secret.slice(4)}`, "line 1: the key"],
    ["a key that is too long", `a:${secret.slice(0, 40)}${secret}`, "line 1: the key"],
    ["a key with other characters", `a:${secret.slice(0, 20)}*${secret.slice(21)}`, "line 1: the key"],
    ["a key in hexadecimal", `a:${Buffer.from(secret, "base64").toString("hex")}`, "line 1: the key"],
    ["too many keys", Array.from({ length: 65 }, (_, index) => `k${index}:${key()}`).join("\n"), "65 keys"],
  ])("%s is refused with the line, and with nothing of a key", (_, text, words) => {
    let refusal: unknown;
    try {
      parseKeyRing(text);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: "invalid-key-ring", message: expect.stringContaining(words) });
    const shown = inspect(refusal, { depth: 9 });
    for (let at = 0; at + 8 <= secret.length; at++) expect(shown).not.toContain(secret.slice(at, at + 8));
  });

  test("a ring does not show its keys when it is printed", () => {
    const ring = parseKeyRing(`a:${secret}`);
    const hex = Buffer.from(secret, "base64").toString("hex");
    for (const shown of [JSON.stringify(ring), inspect(ring, { depth: 9 })]) {
      expect(shown).not.toContain(secret.slice(0, 8));
      expect(shown.replaceAll(" ", "")).not.toContain(hex.slice(0, 8));
    }
  });
});

describe("newKey", () => {
  test("is a line of a ring, and another one each time", () => {
    const lines = [newKey(), newKey(), newKey("mine")];
    const ring = parseKeyRing(lines.join("\n"));
    expect(Object.keys(ring.keys)).toHaveLength(3);
    expect(new Set(Object.values(ring.keys).map(bytesOf)).size).toBe(3);
    expect(lines[2]).toMatch(/^mine:/);
  });

  test("takes no id that a ring would not take", () => {
    expect(() => newKey("a:b")).toThrow(expect.objectContaining({ code: "invalid-key-ring" }));
  });
});

describe("a ring that was made by hand", () => {
  test("may hold bytes or key objects", () => {
    const keys = { a: randomBytes(32), b: createSecretKey(randomBytes(32)) };
    expect(encryptedStore(memoryStore(), { active: "b", keys }).name).toBe("memory");
  });

  test.each([
    ["whose active key is missing", { active: "b", keys: { a: randomBytes(32) } }, '"b" is not among its keys'],
    ["with a key that is too short", { active: "a", keys: { a: randomBytes(16) } }, "32 bytes"],
    ["with an id that cannot be written", { active: "a:b", keys: { "a:b": randomBytes(32) } }, "the id of a key"],
    ["without keys", { active: "toString", keys: {} }, "is not among its keys"],
  ])("is refused %s", (_, ring, words) => {
    expect(() => encryptedStore(memoryStore(), ring)).toThrow(
      expect.objectContaining({ code: "invalid-key-ring", message: expect.stringContaining(words) }),
    );
  });
});
