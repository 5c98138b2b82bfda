import assert from "node:assert/strict";
import type { AskedOperation, Operation, Outcome, Page, Resource, ResourceChange } from "@osbert/journal";
import type { StoredEntry } from "@osbert/journal/store";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  ann,
  bob,
  change,
  type EngineTests,
  entriesOf,
  gate,
  isJournalError,
  leaseMs,
  numbered,
  type Process,
  read,
  storyOf,
} from "../story.js";

const dropped = { kind: "cancelled", reason: "the resource is deleted" } as const;
const dropOthers: ResourceChange = { cancel: { others: true, reason: dropped.reason } };

/** A resource as a queue of changes: what is told of those that wait, and what can be done to them. */
export const queueTests: EngineTests = {
  "queue: what is open is told with its state": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind(), deaf: jobs.kind({ deaf: true }) };
    const process = await story.engine({ kinds });
    process.journal.pauseLanes(new Set(["paused"]));
    await acceptAll(process, "k", [
      { kind: "deaf", input: "running" },
      job("held", { held: true }),
      job("queued"),
      job("paused", { lane: "paused" }),
      job("waiting", { delayMs: 60_000 }),
    ]);
    await story.until("the first one runs", () => jobs.runs("running"));
    assert.deepEqual(await statesOf(process, "k"), ["running", "held", "queued", "paused", "waiting"]);
    const [first] = (await read(process, "k")).open;
    assert.equal((await process.journal.operation("k", first?.id ?? ""))?.open?.state, "running");
    await process.journal.cancel("k", first?.id ?? "", "not wanted", bob);
    assert.deepEqual((await statesOf(process, "k"))[0], "cancelling");
    const id = await accept(process, "other", job("a", { lane: "paused" }));
    assert.equal((await process.journal.operation("other", id))?.open?.state, "paused");
    const [work] = (await process.journal.withWork({ lane: "paused" })).items;
    assert.deepEqual([work?.key, work?.open[0]?.state], ["other", "paused"]);
    process.journal.pauseLanes(new Set());
    await story.until("it runs", () => jobs.running.includes("a"));
    assert.deepEqual(await statesOf(process, "other"), ["running"]);
  },

  "queue: the end of an operation drops all others, however many wait, in the commit that tells of it": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const settle = (_: unknown, __: unknown, outcome: Outcome): ResourceChange =>
      outcome.kind === "succeeded" ? { ...dropOthers, gone: true } : {};
    const process = await story.engine({ kinds: { job: jobs.kind(), remove: jobs.kind({ settle }) } });
    const [remove = "", ...others] = await acceptAll(process, "k", [
      { kind: "remove", input: "remove" },
      ...numbered(300).map((name, index) => job(name, { held: index % 3 === 0 })),
    ]);
    await story.until("it runs", () => jobs.runs("remove"));
    jobs.job("remove").finish();
    await story.ends(process, "k", remove);
    const { open, queued } = await read(process, "k");
    assert.deepEqual([open.length, queued], [0, 0]);
    assert.deepEqual(jobs.begun, ["remove"]);
    assert.deepEqual((await process.journal.operation("k", others.at(-1) ?? ""))?.outcome, dropped);
    for (const id of [others[0], others[299]])
      assert.deepEqual(await storyOf(process, "k", id ?? ""), ["accepted", "cancel requested", "settled"]);
    const entries = await process.store.store.entries("k", { kind: "after", after: 301, limit: 1_000 });
    assert.equal(entries.length, 1 + 2 * 300);
    assert.equal(new Set(entries.map(({ token }) => token)).size, 1, "all of it is one commit");
    assert.deepEqual(await process.store.store.parts("k", { prefix: "", after: null, limit: 10 }), []);
    const told = (await entriesOf(process, "k")).find(
      ({ kind, operation }) => kind === "settled" && operation !== remove,
    );
    assert.deepEqual([told?.actor, told?.requestId], [ann.actor, ann.requestId]);
    assert.equal(process.events.filter(({ kind }) => kind === "settled").length, 301);
  },

  "queue: what is dropped by another's end is settled as its own kind says": async (story) => {
    const jobs = new ManualJobs();
    const kinds = {
      remove: jobs.kind({ settle: () => dropOthers }),
      job: jobs.kind({ settle: (_, { part }, { kind }) => ({ parts: { [part ?? ""]: kind } }) }),
    };
    const process = await story.engine({ kinds });
    const names = numbered(100);
    await acceptAll(process, "k", [{ kind: "remove", input: "remove" }, ...names.map((part) => job(part, { part }))]);
    await story.until("it runs", () => jobs.runs("remove"));
    jobs.job("remove").finish();
    await story.until("all have ended", async () => (await read(process, "k")).open.length === 0);
    const { items } = await process.journal.parts("k", "");
    assert.deepEqual(
      items,
      names.map((id) => ({ id, value: "cancelled" })),
    );
  },

  "queue: operations that each cancel all others when they are cancelled end once, and all of their ends are kept":
    async (story) => {
      const count = 1_200;
      const settle = ({ data }: Resource, _: unknown, { kind }: Outcome): ResourceChange =>
        kind === "cancelled" ? { ...dropOthers, data: Number(data) + 1, accept: [{ kind: "undo", held: true }] } : {};
      const jobs = new ManualJobs();
      const kinds = { job: jobs.kind({ settle }), undo: { run: async () => null } };
      const process = await story.process({ kinds });
      const ids = await acceptAll(
        process,
        "k",
        numbered(count).map((name, index) => job(name, { held: index % 5 === 4 })),
      );
      await process.journal.cancel("k", ids[700] ?? "", "not wanted", bob);
      await process.journal.start();
      await story.until("all have ended", async () => {
        const { items } = await process.journal.operations("k", { limit: 1 });
        return items[0]?.kind === "undo";
      });
      assert.equal((await read(process, "k")).data, count, "what each of their ends means");
      assert.deepEqual(jobs.begun, []);
      const entries = await entriesOf(process, "k");
      for (const what of ["settled", "cancel requested"]) {
        const told = entries.filter(({ kind }) => kind === what).map(({ operation }) => operation ?? "");
        assert.deepEqual([...told].sort(), [...ids].sort(), `each is ${what} once`);
      }
      assert.deepEqual((await process.journal.operation("k", ids.at(-1) ?? ""))?.outcome, dropped);
      const { open, queued } = await read(process, "k");
      assert.equal(open.length + queued, count, "what their ends accepted is kept");
    },

  "queue: of thousands that are cancelled together each commit ends some hundreds, also over a crash, and what was accepted after them runs":
    async (story) => {
      const jobs = new ManualJobs();
      const kinds = { job: jobs.kind() };
      const desk = await story.process({ kinds });
      const ids = await acceptAll(
        desk,
        "k",
        numbered(1_300).map((name) => job(name)),
      );
      await change(desk, "k", { ...dropOthers, accept: [job("after")] });
      const { open, queued } = await read(desk, "k");
      assert.ok(queued > 500, `${queued} are left for later commits`);
      assert.deepEqual(open, []);
      const last = ids.at(-1) ?? "";
      assert.equal((await desk.journal.operation("k", last))?.open?.state, "cancelling");
      const listed = await desk.journal.operations("k", { limit: 1_000 });
      assert.deepEqual([...new Set(listed.items.map(({ state, input }) => `${state} ${input === "after"}`))].sort(), [
        "cancelling false",
        "queued true",
      ]);
      await assert.rejects(change(desk, "k", { hold: [last] }), isJournalError("invalid-change"));
      await change(desk, "k", { hold: "others" });
      await change(desk, "k", { release: "others" });
      assert.equal(await desk.journal.cancel("k", last, "once more", bob), true);
      const engine = await story.engine({ kinds });
      // The second bite of the first engine never comes to be.
      const held = engine.store.hold(["commit"]);
      await story.until("it writes", () => held.waiting > 0);
      await engine.journal.kill();
      held.letGo();
      const next = await story.engine({ kinds });
      await story.pass(leaseMs + 1_000);
      await story.until("what was accepted afterwards runs", () => jobs.runs("after"));
      assert.deepEqual(jobs.begun, ["after"]);
      assert.deepEqual((await read(next, "k")).queued, 0);
      const stored = await storedEntries(next, "k");
      const settled = stored.filter(({ kind }) => kind === "settled");
      assert.deepEqual([settled.length, new Set(settled.map(({ operation }) => operation)).size], [1_300, 1_300]);
      const perCommit = new Map<string, number>();
      for (const { token } of settled) perCommit.set(token, (perCommit.get(token) ?? 0) + 1);
      assert.ok(Math.max(...perCommit.values()) <= 500, `${Math.max(...perCommit.values())} ended in one commit`);
      for (const id of [ids[0], ids[700], last])
        assert.deepEqual(await storyOf(next, "k", id ?? ""), ["accepted", "cancel requested", "settled"]);
    },

  "queue: what runs beside an operation whose end cancels it is told to stop": async (story) => {
    const jobs = new ManualJobs();
    const kinds = {
      job: jobs.kind({ mode: "shared" }),
      last: jobs.kind({ mode: "shared", settle: () => dropOthers }),
    };
    const process = await story.engine({ kinds });
    const [a = "", , c = ""] = await acceptAll(process, "k", [
      job("a"),
      { kind: "last", input: "b" },
      job("c", { mode: "exclusive" }),
    ]);
    await story.until("both run", () => jobs.runs("a", "b"));
    const { signal } = jobs.job("a").operation;
    jobs.job("b").finish();
    await story.until("a is told", () => signal.aborted);
    assert.deepEqual(await story.ends(process, "k", a), dropped);
    assert.deepEqual(await story.ends(process, "k", c), dropped);
    assert.deepEqual(jobs.begun, ["a", "b"]);
  },

  "queue: an operation can drop all others while it goes on": async (story) => {
    const [answered, done] = [gate(), gate()];
    const run = async (operation: Operation) => {
      await operation.change({ ...dropOthers, entries: [{ kind: "accepted by the broker" }] });
      answered.open();
      await done.passed;
      return "deleted";
    };
    const jobs = new ManualJobs();
    const kinds = { remove: { run, mode: "shared" as const }, job: jobs.kind({ mode: "shared" }) };
    const process = await story.engine({ kinds });
    const a = await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const [remove = "", ...rest] = await acceptAll(process, "k", [
      { kind: "remove" },
      ...numbered(80).map((name) => job(name, { mode: "exclusive" })),
    ]);
    await answered.passed;
    assert.deepEqual(await story.ends(process, "k", a), dropped);
    assert.deepEqual(await story.ends(process, "k", rest.at(-1) ?? ""), dropped);
    assert.deepEqual(
      (await read(process, "k")).open.map(({ id }) => id),
      [remove],
    );
    done.open();
    assert.deepEqual(await story.ends(process, "k", remove), { kind: "succeeded", result: "deleted" });
  },

  "queue: operations behind those in the record are held, released, hurried and put into another order": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const names = numbered(150);
    const ids = await acceptAll(process, "k", [...names.map((name) => job(name)), job("late", { delayMs: 900_000 })]);
    const id = (name: string) => ids[names.indexOf(name)] ?? "";
    await story.until("the first one runs", () => jobs.runs("0000"));
    await change(process, "k", { hold: [id("0100"), id("0002")], order: [id("0140"), id("0120")] });
    await change(process, "k", { hurry: [ids[150] ?? ""] });
    assert.deepEqual((await process.journal.operation("k", id("0100")))?.open?.state, "held");
    assert.deepEqual(await storyOf(process, "k", id("0100")), ["accepted", "held"]);
    assert.deepEqual(await storyOf(process, "k", ids[150] ?? ""), ["accepted", "hurried"]);
    for (const name of ["0000", "0140", "0120", "0001", "0003"]) {
      await story.until(`${name} runs`, () => jobs.runs(name));
      jobs.job(name).finish();
    }
    await story.until("0004 runs", () => jobs.runs("0004"));
    await change(process, "k", { release: [id("0100"), id("0002")] });
    const rest = names.filter((name) => Number(name) > 4 && !["0140", "0120"].includes(name));
    const { items } = await process.journal.operations("k", { limit: 1_000 });
    assert.deepEqual(
      items.map(({ input }) => input),
      ["0004", "0002", ...rest, "late"],
    );
    jobs.job("0004").finish();
    await story.until("0002 runs", () => jobs.runs("0002"));
    await change(process, "k", dropOthers);
    await story.until("all have ended", async () => (await read(process, "k")).open.length === 0);
    assert.deepEqual(await process.store.store.parts("k", { prefix: "", after: null, limit: 10 }), []);
    await assert.rejects(change(process, "k", { hold: [id("0100")] }), isJournalError("invalid-change"));
  },

  "J10: many operations behind those in the record are hurried without a read for each": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => "done" } } });
    const late = Array.from({ length: 150 }, () => ({ kind: "job", delayMs: 900_000 }));
    const ids = await acceptAll(process, "k", late);
    const { calls } = await process.store.traffic(() => change(process, "k", { hurry: ids.slice(-50) }));
    assert.ok((calls.read ?? 0) <= 3, `50 of them took ${calls.read} reads`);
    assert.deepEqual(await storyOf(process, "k", ids.at(-1) ?? ""), ["accepted", "hurried"]);
  },

  "queue: operations behind hundreds of held ones go on, and released those run in their old order": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.process({ kinds: { job: jobs.kind() } });
    const [held, free] = [numbered(300, "held"), ["free", "second"]];
    await acceptAll(
      process,
      "k",
      held.map((name) => job(name)),
    );
    await change(process, "k", { hold: "others", accept: free.map((name) => job(name)) });
    await process.journal.start();
    await story.until("free runs", () => jobs.runs("free"));
    jobs.job("free").finish();
    await story.until("second runs", () => jobs.runs("second"));
    await change(process, "k", { release: "others" });
    for (const name of ["second", "held0000", "held0001"]) {
      await story.until(`${name} runs`, () => jobs.runs(name));
      jobs.job(name).finish();
    }
    await story.until("held0002 runs", () => jobs.runs("held0002"));
    const { items } = await process.journal.operations("k", { limit: 1_000 });
    assert.deepEqual(
      items.map(({ input }) => input),
      held.slice(2),
    );
  },

  "queue: what is accepted as held comes after all that were accepted before it, wherever they wait": async (story) => {
    const order: string[] = [];
    const kinds = { job: { run: async ({ input }: Operation) => order.push(String(input)) } };
    const process = await story.process({ kinds });
    const names = numbered(120);
    const ids = await acceptAll(
      process,
      "k",
      names.map((name) => job(name)),
    );
    // The record has room now, and 56 wait behind it.
    const ended = ids.slice(0, 20).map((operation) => ({ operation, reason: "not wanted" }));
    await change(process, "k", { cancel: ended });
    const first = await accept(process, "k", job("first held", { held: true }));
    await change(process, "k", { hold: [ids[70] ?? "", ids[30] ?? ""] });
    const second = await accept(process, "k", job("second held", { held: true }));
    await change(process, "k", { order: [ids[50] ?? "", ids[110] ?? ""] });
    await change(process, "k", { release: [second, ids[70] ?? "", first, ids[30] ?? ""] });
    await accept(process, "k", job("last"));
    const told = (await process.journal.operations("k", { limit: 1_000 })).items.map(({ input }) => input);
    const expected = [
      ...["0050", "0110"],
      ...names.slice(20).filter((name) => name !== "0050" && name !== "0110"),
      ...["first held", "second held", "last"],
    ];
    assert.deepEqual(told, expected);
    await process.journal.start();
    await story.until("all have run", () => order.length === expected.length);
    assert.deepEqual(order, expected);
  },

  "queue: a decision sees the open operations about its parts, however many others are before them": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const parts = numbered(100, "binding/");
    const ids = await acceptAll(
      process,
      "k",
      parts.map((part) => job(part, { part })),
    );
    const wanted = "binding/0090";
    const repeated = async () => {
      const look = (
        resource: { readonly open: readonly { readonly id: string; readonly part: string | null }[] } | undefined,
      ) => ({
        result: resource?.open.filter(({ part }) => part === wanted).map(({ id }) => id) ?? [],
      });
      return (await process.journal.transact("k", look, { by: ann, parts: [wanted] })).result;
    };
    assert.deepEqual(await repeated(), [ids[90]]);
    const { open, queued } = await read(process, "k", [wanted]);
    assert.deepEqual([open.at(-1)?.id, open.at(-1)?.state, open.length + queued], [ids[90], "queued", 100]);
    await change(process, "k", { hold: [ids[90] ?? ""] });
    assert.deepEqual(await repeated(), [ids[90]]);
    await process.journal.cancel("k", ids[90] ?? "", "not wanted", bob);
    assert.deepEqual(await repeated(), []);
  },

  "queue: a decision can see all open operations": async (story) => {
    const process = await story.process({ kinds: { job: new ManualJobs().kind() } });
    const ids = await acceptAll(
      process,
      "k",
      numbered(200).map((name, index) => job(name, { held: index % 2 === 1 })),
    );
    const { result } = await process.journal.transact(
      "k",
      (resource) => ({ result: [resource?.open.map(({ id }) => id), resource?.queued] }),
      { by: ann, open: "all" },
    );
    assert.deepEqual(result, [ids, 0]);
  },

  "queue: the open operations are listed with their state, author, brief and input, those far behind included": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const names = numbered(150);
    const ids: string[] = [];
    for (const [from, by] of [[0, ann] as const, [75, bob] as const]) {
      const asked = names.slice(from, from + 75).map((name) => job(name, { brief: { sets: name } }));
      const { accepted } = await process.journal.transact("k", () => ({ result: 0, change: { accept: asked } }), {
        by,
      });
      ids.push(...accepted.map(({ id }) => id));
    }
    await story.until("the first one runs", () => jobs.runs("0000"));
    const listed: AskedOperation[] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page: Page<AskedOperation> = await process.journal.operations("k", { limit: 40, ...(after && { after }) });
      listed.push(...page.items);
      after = page.next;
    }
    assert.deepEqual(
      listed.map(({ id, input, brief, author }) => [id, input, brief, author.subject]),
      names.map((name, index) => [ids[index], name, { sets: name }, index < 75 ? "ann" : "bob"]),
    );
    assert.deepEqual([listed[0]?.state, listed[149]?.state], ["running", "queued"]);
    assert.deepEqual((await read(process, "k")).open[3]?.brief, { sets: "0003" });
    jobs.job("0000").finish();
    await story.until("the next one runs", () => jobs.runs("0001"));
    const { items } = await process.journal.operations("k", { after: ids[0] ?? "", limit: 1 });
    assert.deepEqual(items[0]?.id, ids[1], "where to go on is known, also if that has ended");
    assert.deepEqual((await process.journal.operations("never there")).items, []);
    const large = accept(process, "k", job("large", { brief: "x".repeat(1_023) }));
    await assert.rejects(large, isJournalError("too-large"));
  },
};

async function storedEntries({ store }: Process, key: string): Promise<readonly StoredEntry[]> {
  const all: StoredEntry[] = [];
  for (;;) {
    const page = await store.store.entries(key, { kind: "after", after: all.at(-1)?.seq ?? 0, limit: 1_000 });
    all.push(...page);
    if (page.length < 1_000) return all;
  }
}

async function statesOf(process: Process, key: string): Promise<readonly string[]> {
  return (await read(process, key)).open.map(({ state }) => state);
}
