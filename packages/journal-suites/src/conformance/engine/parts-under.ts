import assert from "node:assert/strict";
import type { Json, Operation, Resource } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, ann, change, type EngineTests, isJournalError, numbered, type Process } from "../story.js";

/** Parts by a prefix of their ids, inside of decisions and operations. */
export const partsUnderTests: EngineTests = {
  "parts: a decision sees all parts under its prefixes, in their order, and no others": async (story) => {
    const process = await story.process({ kinds: { job: new ManualJobs().kind() } });
    const ids = ["b/2", "b/10", "a/1", "bc", "b", "c/é", "c/z", "z"];
    await change(process, "k", { parts: Object.fromEntries(ids.map((id) => [id, id])) });
    assert.deepEqual(await seenUnder(process, "k", ["b/"]), ["b/10", "b/2"]);
    assert.deepEqual(await seenUnder(process, "k", ["c/", "a/"]), ["c/z", "c/é", "a/1"]);
    assert.deepEqual(await seenUnder(process, "k", ["d/"]), []);
    assert.deepEqual(await seenUnder(process, "k", ["a/"], ["z", "y"]), ["z", "a/1"]);
    assert.deepEqual(await seenUnder(process, "nobody", [""]), []);
    // Operations that wait behind the first few lie in parts, too; they are the journal's own.
    await acceptAll(
      process,
      "k",
      numbered(400).map((name) => job(name, { held: false })),
    );
    assert.deepEqual(await seenUnder(process, "k", [""]), [...ids].sort(byBytes));
  },

  "parts: what a decision sees under a prefix is of one moment with the record": async (story) => {
    const [a, b] = [await story.process({ kinds: {} }), await story.process({ kinds: {} })];
    await change(a, "k", { data: 1, parts: { "p/1": 1 } });
    const held = a.store.hold(["read"], "after");
    let seen: readonly unknown[] = [];
    const look = (resource: Resource | undefined) => {
      seen = [resource?.data, resource?.parts.get("p/1")];
      return { result: null };
    };
    const looked = a.journal.transact("k", look, { by: ann, partsUnder: ["p/"] });
    await story.until("the record was read", () => held.waiting > 0);
    await change(b, "k", { data: 2, parts: { "p/1": 2 } });
    held.letGo();
    await story.over(looked);
    assert.deepEqual(seen, [2, 2]);
  },

  "parts: what a decision sees under a prefix is not of a resource that had its key before": async (story) => {
    const [a, b] = [await story.process({ kinds: {} }), await story.process({ kinds: {} })];
    await change(a, "k", { data: 1, parts: { "p/1": 1 } });
    const held = a.store.hold(["read"], "after");
    let seen: readonly unknown[] = [];
    const look = (resource: Resource | undefined) => {
      seen = [resource?.data, resource?.parts.get("p/1")];
      return { result: null };
    };
    const looked = a.journal.transact("k", look, { by: ann, partsUnder: ["p/"] });
    await story.until("the record was read", () => held.waiting > 0);
    const before = await story.record(b, "k");
    assert.equal(await b.store.store.remove("k", before), true);
    await story.pass(10);
    await change(b, "k", { data: 2, parts: { "p/1": 2 } });
    assert.equal((await story.record(b, "k")).seq, before.seq, "both are as long");
    held.letGo();
    await story.over(looked);
    assert.deepEqual(seen, [2, 2]);
  },

  "parts: no decision sees more of them than a bound": async (story) => {
    const process = await story.process({ kinds: {} });
    const many = (from: string) => Object.fromEntries(numbered(600, from).map((id) => [id, 1 as Json]));
    await change(process, "k", { parts: many("p/a") });
    assert.equal((await seenUnder(process, "k", ["p/"])).length, 600);
    await change(process, "k", { parts: many("p/b") });
    await assert.rejects(seenUnder(process, "k", ["p/"]), isJournalError("too-large"));
  },

  "parts: an operation reads its resource's parts under a prefix in pages": async (story) => {
    const run = async (operation: Operation) => {
      const first = await operation.partsUnder("p/", { limit: 2 });
      const rest = await operation.partsUnder("p/", first.next === null ? {} : { after: first.next });
      return [...first.items, ...rest.items].map(({ id, value }) => `${id} ${String(value)}`);
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await change(process, "k", { parts: { "p/1": 1, "p/2": 2, "p/3": 3, q: 4 } });
    const outcome = await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.deepEqual(outcome, { kind: "succeeded", result: ["p/1 1", "p/2 2", "p/3 3"] });
  },
};

/** Ids of the parts that a decision sees, in their order. */
async function seenUnder(
  { journal }: Process,
  key: string,
  partsUnder: readonly string[],
  parts: readonly string[] = [],
): Promise<readonly string[]> {
  const look = (resource: Resource | undefined) => ({ result: [...(resource?.parts.keys() ?? [])] });
  return (await journal.transact(key, look, { by: ann, parts, partsUnder })).result;
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
