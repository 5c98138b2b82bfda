import assert from "node:assert/strict";
import type { Operation, Outcome } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, change, type EngineTests, entriesOf, numbered, type Process, read } from "../story.js";

/** Reading and finding. */
export const queriesTests: EngineTests = {
  "find: resources by label, page by page, in the order of their keys": async (story) => {
    const process = await story.process({ kinds: {} });
    const keys = numbered(25, "k");
    await Promise.all(
      keys.map((key, index) => change(process, key, { labels: { space: index % 5 === 4 ? "other" : "s" } })),
    );
    const expected = keys.filter((_, index) => index % 5 !== 4);
    assert.deepEqual(await pages(process, { label: { name: "space", value: "s" } }), [
      expected.slice(0, 8),
      expected.slice(8, 16),
      expected.slice(16),
    ]);
    assert.deepEqual((await pages(process, { label: { name: "space", value: "none" } })).flat(), []);
    assert.deepEqual((await pages(process, {})).flat(), keys);
    assert.deepEqual((await pages(process, { prefix: "k001" })).flat(), keys.slice(10, 20));
    assert.deepEqual((await pages(process, { prefix: "k001", label: { name: "space", value: "other" } })).flat(), [
      "k0014",
      "k0019",
    ]);
  },

  "find: labels that changed are found under their new value only": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { labels: { a: "1", b: "2" } });
    await change(process, "k", { labels: { a: "3" } });
    const found = async (name: string, value: string) =>
      (await process.journal.find({ label: { name, value } })).items.length;
    assert.deepEqual([await found("a", "1"), await found("b", "2"), await found("a", "3")], [0, 0, 1]);
    assert.deepEqual((await read(process, "k")).labels, { a: "3" });
  },

  "entries: from the front or from the back, page by page": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { entries: numbered(25).map((payload) => ({ kind: "noted", payload })) });
    const seqs = async (range: Parameters<Process["journal"]["entries"]>[1]) =>
      (await process.journal.entries("k", range)).map(({ seq }) => seq);
    assert.deepEqual(await seqs({ limit: 3 }), [1, 2, 3]);
    assert.deepEqual(await seqs({ after: 23, limit: 10 }), [24, 25]);
    assert.deepEqual(await seqs({ before: 4 }), [3, 2, 1]);
    assert.deepEqual(await seqs({ before: Number.MAX_SAFE_INTEGER, limit: 2 }), [25, 24]);
    assert.deepEqual(await seqs({ after: 25 }), []);
    assert.deepEqual(await process.journal.entries("never there"), []);
  },

  "parts: by a prefix of their ids, page by page": async (story) => {
    const process = await story.process({ kinds: {} });
    const ids = numbered(12, "binding/");
    await change(process, "k", { parts: Object.fromEntries([...ids, "config"].map((id) => [id, { id }])) });
    const first = await process.journal.parts("k", "binding/", { limit: 7 });
    assert.deepEqual(
      first.items.map(({ id }) => id),
      ids.slice(0, 7),
    );
    const second = await process.journal.parts("k", "binding/", { limit: 7, after: first.next ?? "" });
    assert.deepEqual(
      second.items,
      ids.slice(7).map((id) => ({ id, value: { id } })),
    );
    assert.equal(second.next, null);
  },

  "parts: those that the journal keeps for itself are not shown": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    await change(process, "k", { parts: { mine: 1, zebra: 2 } });
    await acceptAll(
      process,
      "k",
      numbered(70).map((name) => job(name)),
    );
    const { items } = await process.journal.parts("k", "");
    assert.deepEqual(
      items.map(({ id }) => id),
      ["mine", "zebra"],
    );
    const [queued] = await process.store.store.parts("k", { prefix: "osbert.", after: null, limit: 1 });
    assert.ok(queued !== undefined);
    assert.equal((await read(process, "k", [queued.id])).parts.size, 0);
  },

  "parts: a running operation reads them as they are now": async (story) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      await jobs.work(operation);
      return [operation.data, Object.fromEntries(await operation.parts(["a", "b"]))];
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await change(process, "k", { data: "as it was", parts: { a: 1 } });
    const id = await accept(process, "k", job("x"));
    await story.until("x runs", () => jobs.runs("x"));
    await change(process, "k", { data: "changed", parts: { a: 2, b: 3 } });
    jobs.job("x").finish();
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: ["as it was", { a: 2, b: 3 }] });
  },

  "operation: what became of it, while it waits, runs, is queued, and after others ended": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const other = await story.process({ kinds: {} });
    const ids = await acceptAll(process, "k", [
      job("a", { part: "p" }),
      job("b"),
      ...numbered(70).map((name) => job(name)),
    ]);
    const [a = "", b = ""] = ids;
    await story.until("a runs", () => jobs.runs("a"));
    const [first, queued] = [
      await other.journal.operation("k", a),
      await other.journal.operation("k", ids.at(-1) ?? ""),
    ];
    assert.deepEqual(
      [first?.status, first?.kind, first?.part, first?.outcome, first?.endedAt, first?.open?.id],
      ["open", "job", "p", null, null, a],
    );
    assert.deepEqual([queued?.status, queued?.open?.id], ["open", ids.at(-1)]);
    const endedAt = story.now;
    jobs.job("a").finish({ answer: 42 });
    await story.until("b runs", () => jobs.runs("b"));
    await story.pass(1_000);
    jobs.job("b").finish();
    await story.ends(process, "k", b);
    const ended = await other.journal.operation("k", a);
    assert.ok(ended?.endedAt != null && ended.endedAt >= endedAt && ended.endedAt < endedAt + 1_000);
    assert.deepEqual(ended, {
      id: a,
      kind: "job",
      part: "p",
      status: "succeeded",
      open: null,
      outcome: { kind: "succeeded", result: { answer: 42 } },
      endedAt: ended.endedAt,
    });
    for (const odd of ["", "7", "7-x", "99999-x", `${a}0`, a.replace("-", "--")])
      assert.equal(await other.journal.operation("k", odd), undefined, odd);
    assert.equal(await other.journal.operation("never there", a), undefined);
  },

  "operation: its description is what its function said last": async (story) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      operation.describe("reserving a host");
      operation.describe("reserving another host");
      await jobs.work(operation);
      operation.describe("x".repeat(5_000));
      await operation.step("one", () => 1);
      operation.describe("nearly done");
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await story.pass(1_000);
    assert.equal((await process.journal.operation("k", id))?.open?.description, "reserving another host");
    jobs.job("a").finish();
    await story.ends(process, "k", id);
    assert.equal((await read(process, "k")).last?.description, "nearly done");
    const described = (await entriesOf(process, "k")).filter(({ kind }) => kind === "described");
    assert.equal(described.length, 3);
    assert.ok(JSON.stringify(described[1]?.payload).length < 1_100, "a long one is cut");
  },

  "ended: resolves when the operation ends, in this process or in another": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const other = await story.process({ kinds: {} });
    const id = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const outcomes: (Outcome | undefined)[] = [];
    for (const { journal } of [process, other]) {
      void journal.ended("k", id, { withinMs: 60_000 }).then((outcome) => outcomes.push(outcome));
    }
    await story.pass(5_000);
    assert.deepEqual(outcomes, []);
    jobs.job("a").finish(1);
    await story.until("both have heard", () => outcomes.length === 2);
    assert.deepEqual(outcomes, [
      { kind: "succeeded", result: 1 },
      { kind: "succeeded", result: 1 },
    ]);
    assert.deepEqual(await other.journal.ended("k", id, { withinMs: 0 }), { kind: "succeeded", result: 1 });
  },

  "ended: gives up after its time, when it is called off, and on what never was": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const id = await accept(process, "k", { kind: "job" });
    const answers: string[] = [];
    const wait = (name: string, signal?: AbortSignal) =>
      void process.journal
        .ended("k", id, { withinMs: 10_000, ...(signal && { signal }) })
        .then((outcome) => answers.push(`${name}: ${String(outcome)}`));
    const controller = new AbortController();
    wait("called off", controller.signal);
    wait("late");
    await story.pass(9_000);
    assert.deepEqual(answers, []);
    controller.abort();
    await story.until("it is called off", () => answers.length === 1);
    await story.pass(1_000);
    await story.until("it is late", () => answers.length === 2);
    assert.deepEqual(answers, ["called off: undefined", "late: undefined"]);
    assert.equal(await process.journal.ended("k", "9-zz", { withinMs: 10_000 }), undefined);
  },
};

async function pages(
  process: Process,
  query: { prefix?: string; label?: { name: string; value: string } },
): Promise<string[][]> {
  const found: string[][] = [];
  let after: string | undefined;
  for (;;) {
    const page = await process.journal.find({ ...query, limit: 8, ...(after !== undefined && { after }) });
    if (page.items.length > 0) found.push(page.items.map(({ key }) => key));
    if (page.next === null) return found;
    after = page.next;
  }
}
