import assert from "node:assert/strict";
import type { StoreTests } from "../store-fixture.js";
import { byBytes, hostileTexts } from "./hostile-texts.js";

/** `parts`. */
export const partsTests: StoreTests = {
  "J10: parts are listed by id in byte order, with their bodies": async (fixture) => {
    const ids = ["b", "B", "a", "é", "z", "\uff5e", "😀", "a b", "ab", "a-b", "10", "9"];
    await fixture.create("k", { putParts: parts(ids) });
    assert.deepEqual(await fixture.partIds("k"), [...ids].sort(byBytes));
    assert.deepEqual(await fixture.parts("k"), Object.fromEntries(ids.map((id) => [id, JSON.stringify(id)])));
    assert.ok(ids.indexOf("\uff5e") < ids.indexOf("😀") && byBytes("\uff5e", "😀") < 0);
  },

  "J10: parts are listed in pages": async (fixture) => {
    const ids = [...hostileTexts].sort(byBytes);
    await fixture.create("k", { putParts: parts(hostileTexts) });
    const seen: string[] = [];
    for (;;) {
      const page = await fixture.partIds("k", { after: seen.at(-1) ?? null, limit: 7 });
      assert.ok(page.length <= 7);
      if (page.length === 0) break;
      seen.push(...page);
      assert.ok(seen.length <= ids.length, "no part may be listed twice");
    }
    assert.deepEqual(seen, ids);
  },

  "J10: parts are listed by the start of their id, in which no character is special": async (fixture) => {
    const ids = hostileTexts.flatMap((text) => [text, `${text}1`, `x${text}`]);
    const distinct = [...new Set(ids)];
    await fixture.create("k", { putParts: parts(distinct) });
    for (const prefix of hostileTexts) {
      const expected = distinct.filter((id) => id.startsWith(prefix)).sort(byBytes);
      assert.deepEqual(
        await fixture.partIds("k", { prefix }),
        expected,
        `parts that start with ${JSON.stringify(prefix)}`,
      );
    }
  },

  "J10: a page of parts may go on within a prefix": async (fixture) => {
    await fixture.create("k", { putParts: parts(["a/1", "b/1", "b/2", "b/3", "c/1"]) });
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/", limit: 2 }), ["b/1", "b/2"]);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/", after: "b/2", limit: 2 }), ["b/3"]);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/", after: "a/1" }), ["b/1", "b/2", "b/3"]);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/", after: "b/3" }), []);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/", after: "c" }), []);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/2" }), ["b/2"]);
    assert.deepEqual(await fixture.partIds("k", { prefix: "b/2/" }), []);
  },

  "J10: parts are those of one resource": async (fixture) => {
    await fixture.create("k", { putParts: parts(["a"]) });
    await fixture.create("k2", { putParts: parts(["b"]) });
    assert.deepEqual(await fixture.partIds("k"), ["a"]);
    assert.deepEqual(await fixture.partIds("k2"), ["b"]);
    assert.deepEqual(await fixture.partIds("never there"), []);
  },
};

/** Parts whose body is their id. */
function parts(ids: readonly string[]) {
  return ids.map((id) => ({ id, body: JSON.stringify(id) }));
}
