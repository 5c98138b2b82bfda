import assert from "node:assert/strict";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  ann,
  change,
  type EngineTests,
  entriesOf,
  isJournalError,
  leaseMs,
  numbered,
  read,
} from "../story.js";

const double = { double: { run: async ({ input }: { input: unknown }) => Number(input) * 2 } };

/** J1 and J2: what was accepted is kept, and every change is one commit. */
export const acceptedTests: EngineTests = {
  "J1: what was accepted is there after the process died, and is run": async (story) => {
    const first = await story.process({ kinds: double });
    const id = await accept(first, "k", { kind: "double", input: 7 });
    await first.journal.kill();
    const second = await story.engine({ kinds: double });
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: 14 });
  },

  "J1: what one process accepted is run by the engine of another": async (story) => {
    const front = await story.process({ kinds: double });
    const back = await story.engine({ kinds: double });
    const id = await accept(front, "k", { kind: "double", input: 21 });
    assert.deepEqual(await story.ends(front, "k", id), { kind: "succeeded", result: 42 });
    assert.ok(back.events.some(({ kind }) => kind === "attempt started"));
  },

  "J1: data, labels, parts and entries are there after a restart": async (story) => {
    const first = await story.process({ kinds: {} });
    await change(first, "k", {
      data: { plan: "small" },
      labels: { space: "s1" },
      parts: { "binding/1": { user: "u" }, "binding/2": [1, 2] },
      entries: [{ kind: "noted", payload: { why: "because" } }],
    });
    await change(first, "k", { parts: { "binding/2": null } });
    const [before, entriesBefore] = [await read(first, "k", ["binding/1", "binding/2"]), await entriesOf(first, "k")];
    await first.journal.stop();
    const second = await story.process({ kinds: {} });
    assert.deepEqual(await read(second, "k", ["binding/1", "binding/2"]), before);
    assert.deepEqual(await entriesOf(second, "k"), entriesBefore);
    assert.deepEqual(
      [before.data, before.labels, [...before.parts]],
      [{ plan: "small" }, { space: "s1" }, [["binding/1", { user: "u" }]]],
    );
  },

  "J1: a decision that changes nothing writes nothing": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { data: 1 });
    const commits = process.store.count("commit");
    const { result, accepted } = await process.journal.transact("k", (resource) => ({ result: resource?.data }), {
      by: ann,
    });
    assert.deepEqual([result, accepted], [1, []]);
    assert.equal(process.store.count("commit"), commits);
    assert.equal(
      await process.journal.transact("never there", () => ({ result: 5 }), { by: ann }).then(({ result }) => result),
      5,
    );
    assert.equal(await process.journal.read("never there"), undefined);
  },

  "J1: a decision that only sets the data to null is kept": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { data: { secret: "s" } });
    await change(process, "k", { data: null });
    assert.equal((await read(process, "k")).data, null);
    assert.equal((await entriesOf(process, "k")).length, 2);
  },

  "J1: a decision that throws writes nothing, and its error reaches the caller": async (story) => {
    const process = await story.process({ kinds: double });
    await change(process, "k", { data: 1 });
    const refusal = new Error("409");
    const refuse = () => {
      throw refusal;
    };
    await assert.rejects(process.journal.transact("k", refuse, { by: ann }), refusal);
    assert.equal((await entriesOf(process, "k")).length, 1);
    await change(process, "k", { data: 2 });
    assert.equal((await read(process, "k")).data, 2);
  },

  "J1: a decision that asks for one impossible thing among others is refused as a whole": async (story) => {
    const process = await story.process({ kinds: double });
    await change(process, "k", { data: 1 });
    const mixed = { data: 2, labels: { a: "b" }, accept: [{ kind: "double" }, { kind: "no such kind" }] };
    await assert.rejects(change(process, "k", mixed), isJournalError("invalid-change"));
    const { data, labels, open, seq } = await read(process, "k");
    assert.deepEqual([data, labels, open, seq], [1, {}, [], 1]);
  },

  "J2: two processes that change one resource at once lose nothing, and its entries are numbered without a gap": async (
    story,
  ) => {
    const processes = [await story.process({ kinds: {} }), await story.process({ kinds: {} })];
    const names = numbered(20);
    const increments = processes.flatMap((process, index) =>
      names.map((name) =>
        change(process, "k", (resource) => ({
          data: Number(resource?.data ?? 0) + 1,
          entries: [{ kind: "noted", payload: `${index}/${name}` }],
        })),
      ),
    );
    await story.over(Promise.all(increments));
    const [process] = processes;
    assert.ok(process !== undefined);
    const { data, seq } = await read(process, "k");
    const entries = await entriesOf(process, "k");
    assert.deepEqual([data, seq], [40, 40]);
    assert.deepEqual(
      entries.map((entry) => entry.seq),
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    assert.deepEqual(
      entries.map(({ payload }) => String(payload)).sort(),
      [0, 1].flatMap((index) => names.map((name) => `${index}/${name}`)),
    );
  },

  "J2: many changes at once by one process never conflict with each other": async (story) => {
    const process = await story.process({ kinds: {} });
    await Promise.all(
      numbered(50).map(() => change(process, "k", (resource) => ({ data: Number(resource?.data ?? 0) + 1 }))),
    );
    assert.equal((await read(process, "k")).data, 50);
    assert.equal(process.store.count("commit"), 50);
  },

  "J2: a change whose answer was lost counts once": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { data: 0 });
    process.store.fail("commit", "after");
    await story.over(change(process, "k", (resource) => ({ data: Number(resource?.data) + 1 })));
    const { data, seq } = await read(process, "k");
    assert.deepEqual([data, seq], [1, 2]);
  },

  "J2: an operation whose acceptance was committed but not answered is accepted once, and run once": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    process.store.fail("commit", "after");
    const id = await story.over(accept(process, "k", job("a")));
    await story.until("a runs", () => jobs.runs("a"));
    jobs.job("a").finish(1);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 1 });
    assert.deepEqual(jobs.begun, ["a"]);
    assert.equal((await entriesOf(process, "k")).filter(({ kind }) => kind === "accepted").length, 1);
  },

  "J2: a decision that refuses by throwing has seen the resource as it is, also where an older state was at hand":
    async (story) => {
      const jobs = new ManualJobs();
      const runner = await story.engine({ kinds: { job: jobs.kind() } });
      const other = await story.process({ kinds: { job: jobs.kind() } });
      await accept(runner, "k", job("a"));
      await story.until("a runs", () => jobs.runs("a"));
      await change(other, "k", { data: "open" });
      const decide = (resource: { readonly data: unknown } | undefined) => {
        if (resource?.data !== "open") throw new Error("it is not open");
        return { result: "welcome" };
      };
      assert.equal((await runner.journal.transact("k", decide, { by: ann })).result, "welcome");
    },

  "J2: likelyNew saves reading a resource that is new, and decides again on one that is not": async (story) => {
    const process = await story.process({ kinds: double });
    const options = { by: ann, likelyNew: true };
    const decide = (resource: { readonly data: unknown } | undefined) =>
      resource === undefined ? { result: "created", change: { data: 1 } } : { result: "was there" };
    const { calls } = await process.store.traffic(async () => {
      assert.equal((await process.journal.transact("k", decide, options)).result, "created");
    });
    assert.deepEqual(calls, { commit: 1 });
    assert.equal((await process.journal.transact("k", decide, options)).result, "was there");
    assert.equal((await read(process, "k")).seq, 1);
  },

  "J2: likelyNew never lets a decision refuse by throwing what it has not seen": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { data: 1 });
    const decide = (resource: unknown) => {
      if (resource === undefined) throw new Error("there is no such resource");
      return { result: "found" };
    };
    assert.equal((await process.journal.transact("k", decide, { by: ann, likelyNew: true })).result, "found");
  },

  "J2: the end of an operation that was recorded without an answer is recorded once": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("a runs", () => jobs.runs("a"));
    process.store.fail("commit", "after");
    jobs.job("a").finish();
    await story.until("b runs", () => jobs.runs("b"));
    jobs.job("b").finish();
    await story.ends(process, "k", b);
    const settled = (await entriesOf(process, "k")).filter(({ kind }) => kind === "settled");
    assert.deepEqual(
      settled.map(({ operation }) => operation),
      [a, b],
    );
    assert.deepEqual(jobs.begun, ["a", "b"]);
    await story.pass(2 * leaseMs);
    assert.deepEqual(jobs.begun, ["a", "b"]);
  },
};
