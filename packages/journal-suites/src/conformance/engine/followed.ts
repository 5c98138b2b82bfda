import assert from "node:assert/strict";
import { type Followed, type Json, limits, type Operation } from "@osbert/journal";
import {
  accept,
  ann,
  bob,
  change,
  type EngineTests,
  entriesOf,
  isJournalError,
  numbered,
  type Process,
} from "../story.js";

const kinds = { job: { run: async () => 1 } };

/** One small durable value with a copy in every process. */
export const followedTests: EngineTests = {
  "followed: what one process changes is in the copies of all, and outlives them": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    assert.deepEqual([ofA.value, ofB.value], [[], []]);
    assert.deepEqual(await add(ofA, "one"), ["one"]);
    assert.deepEqual(ofA.value, ["one"], "the change of this process is in its copy when it is made");
    await story.until("the other has it, too", () => ofB.value.join() === "one");
    await add(ofB, "two");
    await story.until("both have both", () => ofA.value.join() === "one,two");
    assert.deepEqual((await follow(await story.process({ kinds }))).value, ["one", "two"]);
    assert.deepEqual([ofA.staleSince, ofB.staleSince], [null, null]);
    assert.throws(() => (ofA.value as string[]).push("three"), TypeError);
  },

  "followed: listeners are told of every change, also of others, and of nothing else": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    const told: string[] = [];
    ofB.onChange(() => {
      throw new Error("whoever throws harms nobody");
    });
    ofB.onChange((value, before) => told.push(`${before.join()} > ${value.join()}`));
    const callOff = ofB.onChange(() => told.push("called off"));
    callOff();
    await add(ofA, "one");
    await story.until("it was told", () => told.length > 0);
    await change(a, "value", { entries: [{ kind: "noted" }] });
    await ofA.update(() => undefined, { by: ann });
    await add(ofB, "two");
    await story.pass(10_000);
    assert.deepEqual(told, [" > one", "one > one,two"]);
    ofB.close();
    await add(ofA, "three");
    await story.pass(10_000);
    assert.equal(told.length, 2);
    assert.deepEqual(ofB.value, ["one", "two"]);
  },

  "followed: changes at the same time are made one after the other, and none is lost": async (story) => {
    const processes = [await story.process({ kinds }), await story.process({ kinds })];
    const copies = await Promise.all(processes.map((process) => follow(process)));
    const names = numbered(12, "n");
    const added = names.map((name, index) => add(copies[index % 2] ?? assert.fail(), name));
    await story.over(Promise.all(added));
    for (const copy of copies) {
      await story.until("all are there", () => copy.value.length === names.length);
      assert.deepEqual(new Set(copy.value), new Set(names));
    }
  },

  "followed: a change by an operation, or by a plain transaction, is in the copies, too": async (story) => {
    const run = async (operation: Operation) => operation.change({ data: ["by a job"] });
    const a = await story.engine({ kinds: { job: { run } } });
    const b = await story.process({ kinds });
    const [ofA, ofB] = [await follow(a), await follow(b)];
    await story.ends(a, "value", await accept(a, "value", { kind: "job" }));
    await story.until("both have it", () => ofA.value.join() === "by a job" && ofB.value.join() === "by a job");
    await change(b, "value", { data: ["by b"] });
    assert.deepEqual(ofB.value, ["by b"]);
    await story.until("a has it", () => ofA.value.join() === "by b");
  },

  "followed: while the store is away the last value stays, and it is told since when it may be old": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    await add(ofA, "one");
    await story.until("b has it", () => ofB.value.join() === "one");
    await story.pass(10_000);
    const away = story.now;
    b.store.fail("versions", "before", 1_000);
    await add(ofA, "two");
    await story.until("it is known to be old", () => ofB.staleSince !== null);
    assert.deepEqual(ofB.value, ["one"]);
    assert.ok((ofB.staleSince ?? 0) <= away + 10_000 && (ofB.staleSince ?? 0) >= away - 10_000);
    const since = ofB.staleSince;
    await story.pass(30_000);
    assert.equal(ofB.staleSince, since);
    assert.equal(b.events.filter(({ kind }) => kind === "store failed").length, 1, "told once");
    b.store.letAllGo();
    await story.until("it has caught up", () => ofB.value.join() === "one,two");
    await story.until("it is not old any more", () => ofB.staleSince === null);
  },

  "followed: an answer that was long under way does not bring an older value back": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    const late = b.store.hold(["read"], "after");
    await add(ofA, "one");
    await story.until("b reads what a has written", async () => {
      await story.pass(100);
      return late.waiting > 0;
    });
    await change(a, "value", { data: ["two"] });
    const seen: (readonly string[])[] = [];
    ofB.onChange((value) => seen.push(value));
    late.letGo();
    await story.until("b has the newest", () => ofB.value.join() === "two");
    await story.pass(10_000);
    assert.deepEqual(seen.at(-1), ["two"]);
    assert.ok(seen.length <= 2);
  },

  "followed: looking whether anything has changed is one question for all values, and reads none": async (story) => {
    const process = await story.process({ kinds });
    const other = await story.process({ kinds });
    for (const key of numbered(20, "value")) await add(await follow(process, key), "x".repeat(1_000));
    await add(await follow(other, "value1"), "y");
    await story.pass(5_000);
    const polls = process.store.store.pace.pollMs === null ? 0 : 1;
    const before = process.store.wakes;
    const { calls, bytes } = await process.store.traffic(() =>
      story.pass(polls * (process.store.store.pace.pollMs ?? 0)),
    );
    // A store that tells of changes may tell late of those before: each is worth a question, of the same kind.
    const late = process.store.wakes - before;
    const { versions = 0, ...others } = calls;
    assert.deepEqual(others, {});
    assert.ok(polls <= versions && versions <= polls + late, `${versions} questions, ${late} late`);
    assert.ok(bytes < 3_000 * (1 + late), `${bytes} bytes`);
  },

  "followed: what is too large, or no value, is refused, and the value stays": async (story) => {
    const process = await story.process({ kinds });
    const followed = await follow(process);
    await add(followed, "one");
    await assert.rejects(add(followed, "x".repeat(limits.followedBytes)), isJournalError("too-large"));
    const nonsense = { value: { no: "list" } as unknown as readonly string[] };
    await assert.rejects(
      followed.update(() => nonsense, { by: ann }),
      /no list of names/,
    );
    assert.deepEqual(followed.value, ["one"]);
    await assert.rejects(process.journal.followed("osbert.keys", names), isJournalError("invalid-key"));
  },

  "followed: a value that cannot be read any more leaves the last one, until someone has mended it": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    await add(ofA, "one");
    await story.until("b has it", () => ofB.value.join() === "one");
    await change(a, "value", { data: { another: "version wrote this" } });
    await story.until("b knows that it is old", () => ofB.staleSince !== null);
    assert.deepEqual([ofA.value, ofB.value], [["one"], ["one"]]);
    await change(a, "value", { data: ["two"] });
    await story.until("b has what was mended", () => ofB.value.join() === "two" && ofB.staleSince === null);
  },

  "followed: a damaged record does not keep a process from following, and is told": async (story) => {
    const process = await story.process({ kinds });
    await change(process, "value", { data: ["one"] });
    const mend = await story.damage(process, "value");
    const followed = await follow(process);
    assert.deepEqual(followed.value, []);
    assert.notEqual(followed.staleSince, null);
    assert.ok(process.events.some(({ kind }) => kind === "set aside"));
    await mend();
    await follow(process, "another");
    await add(followed, "two");
    assert.deepEqual(followed.value, ["one", "two"]);
    assert.equal(followed.staleSince, null);
  },

  "followed: who begins while the last other one closes follows all the same": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, first] = [await follow(a), await follow(b)];
    const beginning = follow(b);
    first.close();
    const second = await beginning;
    await add(ofA, "one");
    await story.until("it has what was changed", () => second.value.join() === "one");
    const beginnings = [follow(b)];
    second.close();
    beginnings.push(follow(b));
    const [third, fourth] = await Promise.all(beginnings);
    await add(ofA, "two");
    for (const follower of [third, fourth])
      await story.until("both have what was changed", () => follower?.value.join() === "one,two");
  },

  "followed: a value that its reader refuses from the start is not looked at any more": async (story) => {
    // The second process of a story polls on every store.
    const [, process] = [await story.process({ kinds }), await story.process({ kinds })];
    const refuse = (): Json => {
      throw new Error("no value of this version");
    };
    await assert.rejects(process.journal.followed("value", refuse), /no value of this version/);
    const { calls } = await process.store.traffic(() => story.pass(10_000));
    assert.deepEqual(calls, {});
    assert.deepEqual((await follow(process)).value, []);
  },

  "followed: a store that falls silent is told as one that is away, and is asked again": async (story) => {
    const [a, b] = [await story.process({ kinds }), await story.process({ kinds })];
    const [ofA, ofB] = [await follow(a), await follow(b)];
    const silent = b.store.hold(["versions"]);
    await add(ofA, "one");
    await story.pass(30_000);
    assert.notEqual(ofB.staleSince, null);
    assert.ok(silent.waiting > 1, "it was asked again");
    silent.letGo();
    await story.until("it has caught up", () => ofB.value.join() === "one" && ofB.staleSince === null);
  },

  "followed: its journal says who changed it, and why": async (story) => {
    const process = await story.process({ kinds });
    const followed = await follow(process);
    await followed.update(() => ({ value: ["one"], entries: [{ kind: "noted", payload: "because" }] }), { by: bob });
    const [entry] = await entriesOf(process, "value");
    assert.deepEqual([entry?.kind, entry?.payload, entry?.actor], ["noted", "because", bob.actor]);
  },
};

function names(data: Json): readonly string[] {
  if (data === null) return [];
  if (!Array.isArray(data)) throw new Error("no list of names");
  return data.map(String);
}

function follow({ journal }: Process, key = "value"): Promise<Followed<readonly string[]>> {
  return journal.followed(key, names);
}

function add(followed: Followed<readonly string[]>, name: string): Promise<readonly string[]> {
  return followed.update((before) => ({ value: [...before, name] }), { by: ann });
}
