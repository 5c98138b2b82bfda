import assert from "node:assert/strict";
import { changeOf } from "../changes.js";
import type { StoreTests } from "../store-fixture.js";

/** `now`, `read` and `versions`. */
export const readTests: StoreTests = {
  "J6: the store tells the time of its clock": async (fixture) => {
    assert.equal(await fixture.store.now(), fixture.clock.now());
    fixture.clock.advance(98_765);
    assert.equal(await fixture.store.now(), fixture.clock.now());
  },

  "J2: a resource that was never written is not read": async (fixture) => {
    await fixture.create("k", { putParts: [{ id: "p", body: "1" }] });
    assert.equal(await fixture.store.read("other", []), undefined);
    assert.equal(await fixture.store.read("other", ["p"]), undefined);
  },

  "J2: a read answers the wanted parts that exist, and no others": async (fixture) => {
    const putParts = ["a", "b", "c"].map((id) => ({ id, body: `"${id}"` }));
    const record = await fixture.create("k", { putParts });
    await fixture.create("other", { putParts: [{ id: "d", body: "1" }] });
    const wanted = async (...ids: string[]) => Object.fromEntries((await fixture.store.read("k", ids))?.parts ?? []);
    assert.deepEqual(await wanted(), {});
    assert.deepEqual(await wanted("b"), { b: '"b"' });
    assert.deepEqual(await wanted("c", "d", "a"), { a: '"a"', c: '"c"' });
    assert.deepEqual(await wanted("d"), {});
    await fixture.change(record, { deleteParts: ["a"] });
    assert.deepEqual(await wanted("a", "b"), { b: '"b"' });
  },

  "J2: where records are is told of those that exist, however many are asked for": async (fixture) => {
    const versions = (keys: readonly string[]) => fixture.store.versions(keys);
    assert.deepEqual(new Map(await versions([])), new Map());
    assert.deepEqual(new Map(await versions(["k"])), new Map());
    const record = await fixture.create("k", { dueAt: fixture.clock.now() });
    await fixture.create("K", { epoch: 7 });
    assert.deepEqual(
      new Map(await versions(["k", "nobody", "K", "k "])),
      new Map([
        ["k", { seq: 1, epoch: 0 }],
        ["K", { seq: 1, epoch: 7 }],
      ]),
    );
    await fixture.change(record);
    assert.deepEqual(new Map(await versions(["k"])), new Map([["k", { seq: 2, epoch: 0 }]]));
    await fixture.claim("owner");
    assert.deepEqual(new Map(await versions(["k"])), new Map([["k", { seq: 2, epoch: 1 }]]));
    const many = Array.from({ length: 1_000 }, (_, index) => `${"long ".repeat(90)}${index}`);
    const last = many.at(-1) ?? "";
    await fixture.create(last);
    assert.deepEqual(new Map(await versions(many)), new Map([[last, { seq: 1, epoch: 0 }]]));
  },

  "J2: hundreds of parts are read at once": async (fixture) => {
    const putParts = Array.from({ length: 500 }, (_, index) => ({ id: `p${index}`, body: String(index) }));
    await fixture.create("k", { putParts });
    const read = await fixture.store.read(
      "k",
      putParts.map(({ id }) => id),
    );
    assert.deepEqual(new Map(read?.parts), new Map(putParts.map(({ id, body }) => [id, body])));
  },

  "J2: a read sees the record and its parts at one moment": async (fixture) => {
    const changes = 60;
    const at = (n: number) => ({ state: String(n), putParts: ["a", "b"].map((id) => ({ id, body: String(n) })) });
    let record = await fixture.create("k", at(0));
    let writing = true;
    const write = async () => {
      for (let n = 1; n <= changes; n++) {
        await fixture.store.commit(changeOf(record, at(n)));
        record = { ...record, seq: record.seq + 1 };
      }
    };
    const look = async () => {
      while (writing) {
        const read = await fixture.store.read("k", ["a", "b"]);
        const seen = [
          read?.record.state,
          read?.parts.get("a"),
          read?.parts.get("b"),
          String(Number(read?.record.seq) - 1),
        ];
        assert.equal(new Set(seen).size, 1, `record, parts and seq must be of one moment, not of ${seen.join(", ")}`);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const looking = Promise.all([look(), look(), look()]);
    await Promise.race([write().finally(() => (writing = false)), looking]);
    await looking;
    assert.equal((await fixture.record("k")).state, String(changes));
  },

  "J2: what was committed is read at once": async (fixture) => {
    let record = await fixture.create("k");
    for (let n = 0; n < 20; n++) {
      await fixture.store.commit(changeOf(record, { state: String(n) }));
      record = await fixture.record("k");
      assert.equal(record.state, String(n));
    }
  },
};
