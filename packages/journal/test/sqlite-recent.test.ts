import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Change, Lease } from "../src/store.js";
import { openForReading } from "../src/stores/sqlite/connection.js";
import { Reader } from "../src/stores/sqlite/reader.js";
import { databasePath, newRecord, openStore } from "./sqlite-fixture.js";

const keys = ["a", "b", "c"] as const;
const partIds = ["p", "q"] as const;
const owner = "me";

type Deed =
  | { readonly kind: "commit"; readonly key: string; readonly stale: boolean; readonly change: Partial<Change> }
  | { readonly kind: "claim" | "renew" | "release" | "reap" }
  | { readonly kind: "remove" | "set aside" | "restore"; readonly key: string }
  | { readonly kind: "read"; readonly key: string; readonly parts: readonly string[] };

const key = fc.constantFrom(...keys);
const text = fc.string({ maxLength: 6 }).map((value) => JSON.stringify(value));
const lease: fc.Arbitrary<Lease | null | "keep"> = fc.constantFrom("keep" as const, null, {
  owner,
  until: 9_000_000_000_000,
});
const change = fc.record({
  state: text,
  lane: fc.constantFrom("work", "play"),
  lease,
  dueAt: fc.constantFrom("keep" as const, null, 0),
  putParts: fc.uniqueArray(fc.record({ id: fc.constantFrom(...partIds), body: text }), { selector: ({ id }) => id }),
});
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("commit" as const), key, stale: fc.boolean(), change }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("claim", "renew", "release", "reap") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("remove", "set aside", "restore"), key }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("read" as const), key, parts: fc.subarray([...partIds, "never"]) }),
  },
) as fc.Arbitrary<Deed>;

describe("what was read last", () => {
  test("is what the file says, after any sequence of requests, also of several at once", async () => {
    const path = await databasePath();
    const store = await openStore(path);
    await store.attend(owner, () => undefined);
    const file = new Reader(openForReading(path));
    let token = 0;

    const carryOut = async (one: Deed): Promise<unknown> => {
      switch (one.kind) {
        case "commit": {
          const at = one.stale ? undefined : file.read(one.key, [])?.record;
          const expected = at === undefined ? null : { seq: at.seq, epoch: at.epoch };
          const epoch = at?.epoch ?? 1;
          const deleteParts = partIds.filter((id) => !one.change.putParts?.some((put) => put.id === id)).slice(0, 1);
          const details = { ...one.change, expected, epoch, token: `t${token++}`, deleteParts };
          const fresh = expected === null && details.lease === "keep" ? { lease: null } : {};
          return store.commit(newRecord(one.key, { ...details, ...fresh, ...(expected === null && { dueAt: 0 }) }));
        }
        case "claim":
          return store.claim({ owner, leaseMs: 60_000, limit: 2, laneRoom: 5, rooms: new Map() });
        case "renew":
        case "release": {
          const held = keys.flatMap((each) => {
            const record = file.read(each, [])?.record;
            return record?.lease ? [{ key: each, epoch: record.epoch, seq: record.seq, dueAt: "now" as const }] : [];
          });
          return one.kind === "renew" ? store.renew(owner, held, 90_000) : store.release(owner, held);
        }
        case "reap":
          return store.reap(owner);
        case "remove": {
          const record = file.read(one.key, [])?.record;
          return record && store.remove(one.key, record);
        }
        case "set aside":
          return store.setAside(one.key);
        case "restore":
          return store.restore(one.key);
        case "read":
          return store.read(one.key, one.parts);
      }
    };

    const rounds = fc.array(fc.array(deed, { minLength: 1, maxLength: 6 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(rounds, async (all) => {
        for (const together of all) {
          await Promise.all(together.map(carryOut));
          for (const each of keys) {
            for (const parts of [[], ["p"], ["p", "q", "never"]]) {
              expect(await store.read(each, parts)).toEqual(file.read(each, parts));
            }
          }
        }
      }),
      { numRuns: 150 },
    );
    file.close();
  });

  test("is the same object for as long as nothing changes, so that its text is read once", async () => {
    const store = await openStore(await databasePath());
    await store.commit(newRecord("a"));
    const first = await store.read("a", []);
    expect((await store.read("a", []))?.record).toBe(first?.record);
    await store.setAside("a");
    expect((await store.read("a", []))?.record).not.toBe(first?.record);
  });

  test("is not told any more once the file says otherwise, also before the writer's answer has come", async () => {
    const path = await databasePath();
    const store = await openStore(path);
    const file = new Reader(openForReading(path));
    await store.commit(newRecord("a", { putParts: [{ id: "p", body: "1" }] }));
    await store.read("a", ["p"]);
    const second = newRecord("a", { expected: { seq: 1, epoch: 0 }, token: "t2", putParts: [{ id: "p", body: "2" }] });
    const committed = store.commit(second);
    // The batch leaves in this turn of the loop. Its answer waits, because the loop does.
    await new Promise((resolve) => setImmediate(resolve));
    const end = performance.now() + 10_000;
    while (file.read("a", [])?.record.seq === 1 && performance.now() < end);
    const [found, versions, [part]] = await Promise.all([
      store.read("a", ["p"]),
      store.versions(["a"]),
      store.parts("a", { prefix: "", after: null, limit: 1 }),
    ]);
    expect([found?.record.seq, versions.get("a")?.seq]).toEqual([2, 2]);
    expect([found?.parts.get("p"), part?.body]).toEqual(["2", "2"]);
    await committed;
    file.close();
  });

  test("is bounded: thousands of others push it out", async () => {
    const store = await openStore(await databasePath());
    await store.commit(newRecord("first"));
    const first = (await store.read("first", []))?.record;
    await Promise.all(Array.from({ length: 8_200 }, (_, index) => store.commit(newRecord(`other-${index}`))));
    const again = (await store.read("first", []))?.record;
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });
});
