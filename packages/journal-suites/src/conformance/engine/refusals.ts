import assert from "node:assert/strict";
import type { Decision, NewOperation, Operation, ResourceChange } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, acceptAll, ann, change, type EngineTests, isJournalError, leaseMs, numbered, read } from "../story.js";

/** What the journal refuses, each with a clear error and without harm. */
export const refusalsTests: EngineTests = {
  "refused: keys that no store keeps alike, by every method": async (story) => {
    const { journal } = await story.process({ kinds: {} });
    for (const key of [
      "",
      "a\u0000b",
      "half \ud800",
      "x".repeat(513),
      7 as unknown as string,
      undefined as unknown as string,
    ]) {
      const asked: Readonly<Record<string, () => Promise<unknown>>> = {
        transact: () => journal.transact(key, () => ({ result: 1, change: { data: 1 } }), { by: ann }),
        read: () => journal.read(key),
        entries: () => journal.entries(key),
        parts: () => journal.parts(key, ""),
        restore: () => journal.restore(key),
        operation: () => journal.operation(key, "1-abc"),
        cancel: () => journal.cancel(key, "1-abc", "no", ann),
        ended: () => journal.ended(key, "1-abc", { withinMs: 0 }),
      };
      for (const [method, ask] of Object.entries(asked)) {
        await assert.rejects(ask, isJournalError("invalid-key"), `${method} of ${JSON.stringify(key)}`);
      }
    }
  },

  "refused: keys of any other kind are kept": async (story) => {
    const process = await story.process({ kinds: {} });
    const keys = [
      " ",
      "k ",
      "K",
      "k",
      "ß",
      "straße",
      "e\u0301",
      "é",
      "😀",
      "%_'\"\\",
      "x".repeat(512),
      "../../etc",
      "__proto__",
    ];
    for (const key of keys) await change(process, key, { data: key });
    for (const key of keys) assert.equal((await read(process, key)).data, key);
    assert.equal((await process.journal.find({ limit: 100 })).items.length, keys.length);
  },

  "refused: changes that cannot be carried out": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    await change(process, "k", { data: 1 });
    const accepting = (operation: Partial<NewOperation>): ResourceChange => ({
      accept: [{ kind: "job", ...operation }],
    });
    const refused: Readonly<Record<string, ResourceChange>> = {
      "an unknown kind": accepting({ kind: "no such kind" }),
      "a kind of every object": accepting({ kind: "constructor" }),
      "an entry of the journal's own kind": { entries: [{ kind: "settled" }] },
      "an entry without a kind": { entries: [{ kind: "" }] },
      "an entry of a very long kind": { entries: [{ kind: "x".repeat(65) }] },
      "an entry of a very long operation": { entries: [{ kind: "noted", operation: "1-".padEnd(65, "x") }] },
      "an entry of an operation with NUL": { entries: [{ kind: "noted", operation: "1-\u0000" }] },
      "a part of the journal's own": { parts: { "osbert.queue/1": 1 } },
      "a part without an id": { parts: { "": 1 } },
      "a part with a very long id": { parts: { ["x".repeat(513)]: 1 } },
      "a part with NUL": { parts: { "a\u0000": 1 } },
      "an operation of a part of the journal's own": accepting({ part: "osbert.x" }),
      "a label of the journal's own": { labels: { "osbert.x": "1" } },
      "a label without a value": { labels: { a: "" } },
      "a very long label": { labels: { a: "x".repeat(257) } },
      "too many labels": { labels: Object.fromEntries(numbered(17).map((name) => [name, "v"])) },
      "a lane without a name": accepting({ lane: "" }),
      "a very long lane": accepting({ lane: "x".repeat(101) }),
      "the order of what is not there": { order: ["9-x"] },
      "the release of what is not there": { release: ["9-x"] },
    };
    for (const [what, asked] of Object.entries(refused)) {
      await assert.rejects(change(process, "k", { data: 2, ...asked }), isJournalError("invalid-change"), what);
    }
    const { data, seq } = await read(process, "k");
    assert.deepEqual([data, seq], [1, 1]);
    const nothing = () =>
      process.journal.transact("k", () => ({ result: 0, change: { cancel: [{ operation: "9-x", reason: "" }] } }), {
        by: ann,
      });
    await assert.rejects(nothing, isJournalError("invalid-change"));
  },

  "refused: members that a decision, a change or an operation does not have, so that nothing misspelt is lost": async (
    story,
  ) => {
    const misspelt = (change: object) => change as ResourceChange;
    const run = async () => 1;
    const kinds = {
      job: { run },
      settles: { run, settle: () => misspelt({ putPart: { p: 1 } }) },
      "settles later": { run, settle: () => misspelt(Promise.resolve({ data: 1 })) },
      changes: { run: (operation: Operation) => operation.change(misspelt({ label: { a: "1" } })) },
    };
    const process = await story.engine({ kinds });
    const refused: Readonly<Record<string, readonly [decision: object, says: RegExp]>> = {
      "cancel beside the change": [
        { result: 1, change: { data: 1 }, cancel: [{ operation: "1-x", reason: "no" }] },
        /"cancel".*in its change/,
      ],
      "cancel without a change": [{ result: 1, cancel: { others: true, reason: "no" } }, /"cancel".*in its change/],
      "a change without its name": [{ result: 1, data: 1 }, /"data".*in its change/],
      "a misspelt change": [{ result: 1, changes: { data: 1 } }, /"changes"/],
      "a misspelt member of a change": [{ result: 1, change: { data: 1, putPart: { p: 1 } } }, /"putPart"/],
      "a misspelt member of an operation": [
        { result: 1, change: { accept: [{ kind: "job", delayMS: 5 }] } },
        /"delayMS"/,
      ],
      "no decision": [undefined as unknown as object, /a decision must be an object/],
    };
    for (const [what, [decision, says]] of Object.entries(refused)) {
      const asked = process.journal.transact("k", () => decision as Decision<number>, { by: ann });
      await assert.rejects(asked, (error) => isJournalError("invalid-change")(error) && says.test(String(error)), what);
    }
    assert.equal(await process.journal.read("k"), undefined);
    // What is not there is not lost.
    const absent = { result: 1, change: { data: 1, putPart: undefined }, cancel: undefined };
    await process.journal.transact("k", () => absent as unknown as Decision<number>, { by: ann });
    for (const [kind, says] of [
      ["settles", /could not be kept.*"putPart"/],
      ["settles later", /could not be kept.*must not be async/],
      ["changes", /"label"/],
    ] as const) {
      const outcome = await story.ends(process, kind, await accept(process, kind, { kind }));
      assert.ok(outcome.kind === "failed" && says.test(outcome.error.message), JSON.stringify(outcome));
    }
  },

  "refused: delays and deadlines that are no number of milliseconds": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e300]) {
      await assert.rejects(
        accept(process, "k", { kind: "job", delayMs: ms }),
        isJournalError("invalid-change"),
        `delayMs: ${ms}`,
      );
      await assert.rejects(
        accept(process, "k", { kind: "job", deadlineMs: ms }),
        isJournalError("invalid-change"),
        `deadlineMs: ${ms}`,
      );
    }
  },

  "refused: values that are too large or no JSON": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const large = "x".repeat(1_048_577);
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    for (const [value, code] of [
      [large, "too-large"],
      [cyclic as never, "not-serialisable"],
      [1n as never, "not-serialisable"],
    ] as const) {
      for (const asked of [
        { data: value },
        { parts: { p: value } },
        { entries: [{ kind: "noted", payload: value }] },
        { accept: [{ kind: "job", input: value }] },
      ]) {
        await assert.rejects(change(process, "k", asked), isJournalError(code), Object.keys(asked).join());
      }
    }
    assert.equal(await process.journal.read("k"), undefined);
  },

  "refused: more open operations than a resource may have; room comes with every end": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() }, maxOpen: 70 });
    await acceptAll(
      process,
      "k",
      numbered(70).map((name) => job(name)),
    );
    await assert.rejects(accept(process, "k", job("one too many")), isJournalError("queue-full"));
    await assert.rejects(accept(process, "k", job("in front", { place: "front" })), isJournalError("queue-full"));
    await accept(process, "another", job("elsewhere"));
    await story.until("the first one runs", () => jobs.running.includes("0000"));
    jobs.job("0000").finish();
    await story.until("the second one runs", () => jobs.running.includes("0001"));
    await accept(process, "k", job("now"));
    const { open, queued } = await read(process, "k");
    assert.equal(open.length + queued, 70);
  },

  "unknown kind: an operation that this process does not know is left to one that does": async (story) => {
    const knows = { known: { run: async () => "done" } };
    const front = await story.process({ kinds: knows });
    const ignorant = await story.engine({ kinds: {} });
    const id = await accept(front, "k", { kind: "known" });
    await story.until("it was looked at", () => ignorant.events.some(({ kind }) => kind === "unknown kind"));
    await story.quiet();
    assert.equal((await front.journal.operation("k", id))?.status, "open");
    assert.equal((await story.record(front, "k")).lease, null);
    await ignorant.journal.stop();
    await story.engine({ kinds: knows });
    await story.pass(leaseMs);
    assert.deepEqual(await story.ends(front, "k", id), { kind: "succeeded", result: "done" });
  },
};
