import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { Permanent } from "@osbert/journal";
import { accept, acceptAll, change, type EngineTests, entriesOf, numbered, read } from "../story.js";

const minuteMs = 60_000;
const run = async ({ input }: Operation) => {
  if (input === "fails") throw new Permanent("no");
  return input;
};

/** How long entries are kept. */
export const retentionTests: EngineTests = {
  "retention: entries go when their operation ended long enough ago, by outcome; notes by their own age": async (
    story,
  ) => {
    const retention = {
      succeededMs: minuteMs,
      failedMs: 3 * minuteMs,
      cancelledMs: 2 * minuteMs,
      notesMs: 4 * minuteMs,
    };
    const process = await story.engine({ kinds: { job: { run } }, retention });
    await change(process, "k", { entries: [{ kind: "noted" }] });
    const good = await accept(process, "k", { kind: "job" });
    const bad = await accept(process, "k", { kind: "job", input: "fails" });
    await story.ends(process, "k", good);
    await story.ends(process, "k", bad);
    const unwanted = await accept(process, "k", { kind: "job", delayMs: minuteMs });
    await process.journal.cancel("k", unwanted, "no", { actor: { type: "user", subject: "ann" } });
    const left = async () => {
      const entries = await entriesOf(process, "k");
      const kept = (id: string) => entries.some(({ operation }) => operation === id);
      return [kept(good), kept(unwanted), kept(bad), entries.some(({ kind }) => kind === "noted")];
    };
    const seen: boolean[][] = [];
    await story.pass(minuteMs / 2);
    for (let minute = 0; minute < 5; minute++) {
      seen.push(await left());
      await story.pass(minuteMs);
    }
    assert.deepEqual(seen, [
      [true, true, true, true],
      [false, true, true, true],
      [false, false, true, true],
      [false, false, false, true],
      [false, false, false, false],
    ]);
    assert.equal(await process.journal.operation("k", good), undefined);
    assert.equal((await read(process, "k")).seq > 0, true);
  },

  "retention: the entries of an open operation stay, however old they are": async (story) => {
    const sleeper = async (operation: Operation) => {
      const kept = await operation.step("one", () => "kept");
      await operation.sleep("long", 20 * minuteMs);
      return kept;
    };
    const retention = { succeededMs: minuteMs, failedMs: minuteMs, cancelledMs: minuteMs, notesMs: minuteMs };
    const process = await story.engine({
      kinds: { job: { run, mode: "shared" }, sleeper: { run: sleeper, mode: "shared" } },
      retention,
    });
    const id = await accept(process, "k", { kind: "sleeper", input: "words" });
    await change(process, "k", { entries: [{ kind: "noted" }] });
    await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    await story.pass(10 * minuteMs);
    assert.deepEqual(
      (await entriesOf(process, "k"))
        .filter(({ kind }) => kind !== "pruned")
        .map(({ operation, kind }) => [operation, kind]),
      [
        [id, "accepted"],
        [id, "step"],
        [id, "waiting"],
      ],
    );
    await story.pass(10 * minuteMs);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "kept" });
  },

  "retention: a resource that is gone is removed entirely with its last entries": async (story) => {
    const settle = () => ({ gone: true });
    const retention = { succeededMs: minuteMs, notesMs: minuteMs };
    const process = await story.engine({ kinds: { job: { run }, delete: { run, settle } }, retention });
    await change(process, "k", { parts: { p: 1 }, labels: { space: "s" } });
    await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    await story.pass(minuteMs / 2);
    const id = await accept(process, "k", { kind: "delete" });
    await story.ends(process, "k", id);
    await story.pass(minuteMs - 5_000);
    assert.equal((await process.journal.operation("k", id))?.status, "succeeded");
    await story.pass(10_000);
    await story.until("it is removed", async () => (await process.journal.read("k")) === undefined);
    assert.deepEqual(await entriesOf(process, "k"), []);
    assert.deepEqual((await process.journal.parts("k", "")).items, []);
    assert.deepEqual((await process.journal.find({ label: { name: "space", value: "s" } })).items, []);
    assert.ok(process.events.some((event) => event.kind === "pruned" && event.removed));
    const again = await accept(process, "k", { kind: "job", input: "anew" });
    assert.notEqual(again, id);
    assert.deepEqual(await story.ends(process, "k", again), { kind: "succeeded", result: "anew" });
  },

  "retention: the bare record of a resource that is gone stays for as long as it is to be known": async (story) => {
    const settle = () => ({ gone: true, data: "was here" });
    const retention = { succeededMs: minuteMs, notesMs: minuteMs, goneMs: 10 * minuteMs };
    const process = await story.engine({ kinds: { delete: { run, settle } }, retention });
    const id = await accept(process, "k", { kind: "delete" });
    await story.ends(process, "k", id);
    await story.pass(2 * minuteMs);
    await story.until("it is bare", async () => (await process.journal.operation("k", id)) === undefined);
    assert.deepEqual(
      (await entriesOf(process, "k")).map(({ kind }) => kind),
      ["pruned"],
    );
    await story.pass(8 * minuteMs);
    const bare = await read(process, "k");
    assert.deepEqual([bare.data, bare.last], ["was here", null]);
    await story.pass(3 * minuteMs);
    await story.until("it is removed", async () => (await process.journal.read("k")) === undefined);
  },

  "retention: a bare record goes in its time, also if entries went at several times before": async (story) => {
    const settle = () => ({ gone: true });
    const retention = { succeededMs: minuteMs, failedMs: 4 * minuteMs, notesMs: minuteMs, goneMs: 10 * minuteMs };
    const process = await story.engine({ kinds: { job: { run }, delete: { run, settle } }, retention });
    await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    // Some entries go before the resource does, some a while after it.
    await story.pass(2 * minuteMs);
    await story.ends(process, "k", await accept(process, "k", { kind: "job", input: "fails" }));
    const id = await accept(process, "k", { kind: "delete" });
    await story.ends(process, "k", id);
    await story.pass(6 * minuteMs);
    await story.until("it is bare", async () => (await read(process, "k")).last === null);
    await story.pass(6 * minuteMs);
    assert.notEqual(await process.journal.read("k"), undefined);
    await story.pass(6 * minuteMs);
    await story.until("it is removed", async () => (await process.journal.read("k")) === undefined);
  },

  "retention: operations whose entries a part still refers to stay, whole, until it does not": async (story) => {
    const failing = async (operation: Operation) => {
      await operation.step("made", () => "a thing");
      throw new Permanent("no");
    };
    const settle = (_: unknown, { steps }: { readonly steps: readonly (readonly [string, number])[] }) => ({
      parts: { undo: steps.map(([, seq]) => seq) },
    });
    const process = await story.engine({
      kinds: { job: { run: failing, settle, reads: ["undo"] } },
      retention: { failedMs: minuteMs, notesMs: minuteMs, needed: (parts) => (parts.get("undo") ?? []) as number[] },
    });
    const id = await accept(process, "k", { kind: "job" });
    await story.ends(process, "k", id);
    const kinds = async () =>
      (await entriesOf(process, "k")).filter(({ operation }) => operation === id).map(({ kind }) => kind);
    await story.pass(5 * minuteMs);
    assert.deepEqual(await kinds(), ["accepted", "step", "settled"]);
    await change(process, "k", { parts: { undo: null } });
    await story.pass(5 * minuteMs);
    await story.until("it is gone", async () => (await kinds()).length === 0);
  },

  "retention: a rule of one's own decides by outcome, part and time; where it is silent the ages count": async (
    story,
  ) => {
    const told: unknown[] = [];
    const process = await story.engine({
      kinds: { job: { run } },
      retention: {
        succeededMs: minuteMs,
        goesAt: ({ outcome, part, at }) => {
          told.push([outcome, part]);
          return part === "p" ? at + 5 * minuteMs : undefined;
        },
      },
    });
    const own = await accept(process, "k", { kind: "job", part: "p" });
    const aged = await accept(process, "k", { kind: "job" });
    await story.ends(process, "k", own);
    await story.ends(process, "k", aged);
    await story.pass(2 * minuteMs);
    await story.until("the aged one is gone", async () => (await process.journal.operation("k", aged)) === undefined);
    assert.equal((await process.journal.operation("k", own))?.status, "succeeded");
    await story.pass(4 * minuteMs);
    await story.until("the other one is gone", async () => (await process.journal.operation("k", own)) === undefined);
    assert.ok(told.some((ended) => JSON.stringify(ended) === '["succeeded","p"]'));
    assert.ok(told.some((ended) => JSON.stringify(ended) === '["succeeded",null]'));
  },

  "retention: a resource that was gone and is used again stays": async (story) => {
    const process = await story.engine({
      kinds: { job: { run } },
      retention: { succeededMs: minuteMs, notesMs: minuteMs },
    });
    await change(process, "k", { data: 1 });
    await change(process, "k", { gone: true });
    await accept(process, "k", { kind: "job" });
    await story.pass(5 * minuteMs);
    assert.equal((await read(process, "k")).data, 1);
  },

  "retention: for ever means for ever": async (story) => {
    const retention = { succeededMs: null, failedMs: null, cancelledMs: null, notesMs: null };
    const process = await story.engine({ kinds: { job: { run } }, retention });
    await change(process, "k", { entries: [{ kind: "noted" }] });
    await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.equal((await story.record(process, "k")).dueAt, null);
  },

  "retention: what may go is found also behind many entries that stay": async (story) => {
    const retention = { failedMs: minuteMs, notesMs: null };
    const process = await story.engine({ kinds: { job: { run } }, retention });
    await change(process, "k", { entries: numbered(2_100).map((payload) => ({ kind: "noted", payload })) });
    const id = await accept(process, "k", { kind: "job", input: "fails" });
    await story.ends(process, "k", id);
    await story.pass(5 * minuteMs);
    assert.equal((await entriesOf(process, "k")).filter(({ operation }) => operation === id).length, 0);
  },

  "retention: more entries than are looked at at once all go": async (story) => {
    const process = await story.engine({ kinds: { job: { run } }, retention: { notesMs: minuteMs } });
    await change(process, "k", { entries: numbered(4_500).map((payload) => ({ kind: "noted", payload })) });
    await story.pass(2 * minuteMs);
    await story.until("they are gone", async () =>
      (await entriesOf(process, "k")).every(({ kind }) => kind === "pruned"),
    );
  },

  "retention: many resources whose entries go at one time are all seen to, also with little room": async (story) => {
    const process = await story.engine({
      kinds: { job: { run } },
      retention: { succeededMs: minuteMs },
      concurrency: 8,
      laneConcurrency: 2,
    });
    const keys = numbered(12, "k");
    const ids = await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    for (const [index, key] of keys.entries()) await story.ends(process, key, ids[index] ?? "");
    await story.pass(2 * minuteMs);
    for (const key of keys)
      assert.deepEqual(
        (await entriesOf(process, key)).map(({ kind }) => kind),
        ["pruned"],
        key,
      );
  },

  "retention: it does not hold up the operations of the resource": async (story) => {
    const process = await story.engine({ kinds: { job: { run } }, retention: { notesMs: 0, succeededMs: 0 } });
    await acceptAll(
      process,
      "k",
      numbered(10).map((input) => ({ kind: "job", input })),
    );
    await change(process, "k", { entries: [{ kind: "noted" }] });
    await story.until("all have ended", async () => (await read(process, "k")).open.length === 0);
    await story.until("all entries are gone", async () => (await entriesOf(process, "k")).length <= 1);
  },
};
