import assert from "node:assert/strict";
import type { Operation } from "../../engine/attempt.js";
import { Bench, job } from "../bench.js";
import {
  accept,
  acceptAll,
  change,
  type EngineTests,
  entriesOf,
  isJournalError,
  leaseMs,
  numbered,
  type Process,
  read,
  type Story,
} from "../story.js";

const shared = { mode: "shared" } as const;

/** J7: the order of a resource's operations. */
export const orderTests: EngineTests = {
  "J7: exclusive operations run one after the other in the order in which they were accepted": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await acceptAll(process, "k", [job("a"), job("b")]);
    await accept(process, "k", job("c"));
    await runsOut(story, bench, ["a"], ["b"], ["c"]);
    assert.deepEqual(bench.begun, ["a", "b", "c"]);
  },

  "J7: shared operations run beside each other, and never beside an exclusive one": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await acceptAll(process, "k", [
      job("s1", shared),
      job("s2", shared),
      job("x"),
      job("s3", shared),
      job("s4", shared),
    ]);
    await accept(process, "k", job("y"));
    await story.until("s1 and s2 run", () => bench.runs("s1", "s2"));
    bench.job("s2").finish();
    await story.until("s2 has ended", () => bench.runs("s1"));
    await story.pass(1_000);
    assert.ok(bench.runs("s1"), "x waits for s1");
    await runsOut(story, bench, ["s1"], ["x"], ["s3", "s4"], ["y"]);
  },

  "J7: what is put in front while an engine stands still for longer than its lease does not run beside what it runs":
    async (story) => {
      const bench = new Bench();
      const kinds = { job: bench.kind({ deaf: true }) };
      const engine = await story.engine({ kinds });
      const desk = await story.process({ kinds });
      await accept(engine, "k", job("a"));
      await story.until("a runs", () => bench.runs("a"));
      const ice = engine.store.hold();
      await story.clock.jump(leaseMs + 1_000);
      await accept(desk, "k", job("b", { place: "front" }));
      ice.letGo();
      await story.pass(2_000);
      assert.ok(bench.runs("a"), `${bench.running.join(" and ")} run at once`);
      await runsOut(story, bench, ["a"], ["b"]);
      assert.deepEqual(bench.begun, ["a", "b"]);
    },

  "J7: a shared operation that comes while others run joins them": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind(shared) } });
    const other = await story.process({ kinds: { job: bench.kind(shared) } });
    await accept(process, "k", job("a"));
    await story.until("a runs", () => bench.runs("a"));
    await accept(process, "k", job("b"));
    await story.until("b runs, too", () => bench.runs("a", "b"));
    await accept(other, "k", job("c"));
    await story.until("c runs, too", () => bench.runs("a", "b", "c"));
  },

  "J7: a shared operation that another process accepted joins also if the runner recorded something just then": async (
    story,
  ) => {
    const bench = new Bench();
    const run = async (operation: Operation) => {
      await bench.work(operation);
      await operation.step("one", () => 1);
      return bench.work({ ...operation, input: `${String(operation.input)}, second half` } as Operation);
    };
    const kinds = { job: { run, mode: "shared" as const } };
    const runner = await story.engine({ kinds });
    const other = await story.process({ kinds });
    await accept(runner, "k", job("a"));
    await story.until("a runs", () => bench.runs("a"));
    const looks = runner.store.hold(["claim"]);
    await accept(other, "k", job("b"));
    bench.job("a").finish();
    await story.until("a has recorded its step", () => bench.running.includes("a, second half"));
    looks.letGo();
    await story.until("b runs beside it", () => bench.runs("a, second half", "b"));
  },

  "J7: operations of different resources run beside each other": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await Promise.all(["a", "b", "c"].map((name) => accept(process, `resource of ${name}`, job(name))));
    await story.until("all run", () => bench.runs("a", "b", "c"));
  },

  "J7: an operation that waits for its time keeps its place": async (story) => {
    const bench = new Bench();
    const run = async (operation: Operation) => {
      await operation.sleep("a minute", 60_000);
      return bench.work(operation);
    };
    const process = await story.engine({ kinds: { job: bench.kind(), sleeper: { run } } });
    await acceptAll(process, "k", [{ kind: "sleeper", input: "a" }, job("b")]);
    await story.until("a sleeps", async () => (await read(process, "k")).open[0]?.attempts === 1);
    await story.pass(50_000);
    assert.deepEqual(bench.begun, []);
    await story.pass(10_000);
    await runsOut(story, bench, ["a"], ["b"]);
  },

  "J7: a held operation stands aside, and those behind it go on; released, it takes its turn": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [a = ""] = await acceptAll(process, "k", [job("a", { held: true }), job("b"), job("c")]);
    await story.until("b runs", () => bench.runs("b"));
    await story.pass(1_000);
    assert.ok(bench.runs("b"));
    await runsOut(story, bench, ["b"], ["c"]);
    await story.pass(1_000);
    assert.deepEqual(bench.begun, ["b", "c"]);
    await change(process, "k", { release: [a] });
    await runsOut(story, bench, ["a"]);
    assert.deepEqual(
      (await entriesOf(process, "k")).filter(({ operation }) => operation === a).map(({ kind }) => kind),
      ["accepted", "released", "settled"],
    );
  },

  "J7: an exclusive operation that is released while another one runs waits for its end": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [a = ""] = await acceptAll(process, "k", [job("a", { held: true }), job("b")]);
    await story.until("b runs", () => bench.runs("b"));
    await change(process, "k", { release: [a] });
    await story.pass(1_000);
    assert.deepEqual(bench.running, ["b"], "two exclusive operations of one resource never run together");
    await runsOut(story, bench, ["b"], ["a"]);
  },

  "J7: an exclusive operation that is released while shared ones run waits for their end": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [x = ""] = await acceptAll(process, "k", [job("x", { held: true }), job("s1", shared), job("s2", shared)]);
    await story.until("s1 and s2 run", () => bench.runs("s1", "s2"));
    await change(process, "k", { release: [x] });
    await story.pass(1_000);
    assert.deepEqual(bench.running, ["s1", "s2"]);
    await runsOut(story, bench, ["s1", "s2"], ["x"]);
  },

  "J7: a shared operation that is released while an exclusive one runs waits for its end": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [s = ""] = await acceptAll(process, "k", [job("s", { held: true, ...shared }), job("x")]);
    await story.until("x runs", () => bench.runs("x"));
    await change(process, "k", { release: [s] });
    await story.pass(1_000);
    assert.deepEqual(bench.running, ["x"]);
    await runsOut(story, bench, ["x"], ["s"]);
  },

  "J7: what runs cannot be held any more, what has not started can": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("a runs", () => bench.runs("a"));
    await assert.rejects(change(process, "k", { hold: [a] }), isJournalError("invalid-change"));
    await assert.rejects(change(process, "k", { hold: ["7-nonsense"] }), isJournalError("invalid-change"));
    await change(process, "k", { hold: [b] });
    bench.job("a").finish();
    await story.pass(1_000);
    assert.deepEqual(bench.begun, ["a"]);
    await change(process, "k", { release: [b] });
    await runsOut(story, bench, ["b"]);
  },

  "J7: in front means before everything that has not started": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await acceptAll(process, "k", [job("a"), job("b"), job("c")]);
    await story.until("a runs", () => bench.runs("a"));
    await accept(process, "k", job("urgent", { place: "front" }));
    await runsOut(story, bench, ["a"], ["urgent"], ["b"], ["c"]);
  },

  "J7: what has started keeps its place before what is put in front, also while it waits": async (story) => {
    const bench = new Bench();
    const run = async (operation: Operation) => {
      await operation.sleep("a minute", 60_000);
      return bench.work(operation);
    };
    const process = await story.engine({ kinds: { job: bench.kind(), sleeper: { run } } });
    await acceptAll(process, "k", [{ kind: "sleeper", input: "a" }, job("b")]);
    await story.until("a sleeps", async () => (await read(process, "k")).open[0]?.attempts === 1);
    await accept(process, "k", job("urgent", { place: "front" }));
    await story.pass(60_000);
    await runsOut(story, bench, ["a"], ["urgent"], ["b"]);
  },

  "J7: operations that have not started can be put into another order": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    const [a = "", b = "", , d = ""] = await acceptAll(
      process,
      "k",
      ["a", "b", "c", "d"].map((name) => job(name)),
    );
    await story.until("a runs", () => bench.runs("a"));
    await assert.rejects(change(process, "k", { order: [b, a] }), isJournalError("invalid-change"));
    await change(process, "k", { order: [d, b] });
    await runsOut(story, bench, ["a"], ["d"], ["b"], ["c"]);
  },

  "J7: 200 operations of one resource keep their order, also those beyond the first 64, and all end": async (story) => {
    const order: string[] = [];
    const kinds = { job: { run: async ({ input }: Operation) => order.push(String(input)) } };
    const process = await story.process({ kinds });
    const names = numbered(200);
    await acceptAll(
      process,
      "k",
      names.slice(0, 120).map((name) => job(name)),
    );
    for (const name of names.slice(120, 130)) await accept(process, "k", job(name));
    await acceptAll(
      process,
      "k",
      names.slice(130).map((name) => job(name)),
    );
    const { open, queued } = await read(process, "k");
    assert.deepEqual([open.length, queued], [64, 136]);
    await process.journal.start();
    await story.until("all have ended", () => order.length === 200);
    assert.deepEqual(order, names);
    await story.until("nothing is left", async () => {
      const rest = await read(process, "k");
      return rest.open.length === 0 && rest.queued === 0;
    });
    assert.deepEqual((await process.journal.parts("k", "")).items, []);
  },

  "J7: a resource shows at least its first 32 open operations, if there are so many": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await acceptAll(
      process,
      "k",
      numbered(100).map((name) => job(name)),
    );
    for (const name of numbered(20)) {
      await story.until(`${name} runs`, () => bench.runs(name));
      bench.job(name).finish();
    }
    await story.until("the next one runs", () => bench.runs("0020"));
    const { open, queued } = await read(process, "k");
    assert.equal(open.length + queued, 80);
    assert.ok(open.length >= 32, `only ${open.length} are shown`);
  },

  "J7: operations behind more held ones than the first 64 go on": async (story) => {
    const bench = new Bench();
    const process = await story.engine({ kinds: { job: bench.kind() } });
    await acceptAll(process, "k", [...numbered(70).map((name) => job(name, { held: true })), job("free")]);
    await story.until("free runs", () => bench.runs("free"));
  },

  "J7: two engines keep the order of a resource between them": async (story) => {
    const order: string[] = [];
    const run = async (operation: Operation) => {
      await operation.step("note", () => order.push(String(operation.input)));
    };
    const engines = [await story.engine({ kinds: { job: { run } } }), await story.engine({ kinds: { job: { run } } })];
    const names = numbered(30);
    for (const [index, name] of names.entries())
      await story.over(accept(engines[index % 2] as Process, "k", job(name)));
    await story.until("all have ended", async () => (await read(engines[0] as Process, "k")).open.length === 0);
    assert.deepEqual(order, names);
  },
};

/** One group of names after the other runs; each is ended once exactly it runs. */
async function runsOut(story: Story, bench: Bench, ...groups: readonly (readonly string[])[]): Promise<void> {
  for (const group of groups) {
    await story.until(`exactly ${group.join(", ")} runs`, () => bench.runs(...group));
    for (const name of group) bench.job(name).finish();
  }
  await story.until("nothing runs", () => bench.running.length === 0);
}
