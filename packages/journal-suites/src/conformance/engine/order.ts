import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  bob,
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
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await acceptAll(process, "k", [job("a"), job("b")]);
    await accept(process, "k", job("c"));
    await runsOut(story, jobs, ["a"], ["b"], ["c"]);
    assert.deepEqual(jobs.begun, ["a", "b", "c"]);
  },

  "J7: shared operations run beside each other, and never beside an exclusive one": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await acceptAll(process, "k", [
      job("s1", shared),
      job("s2", shared),
      job("x"),
      job("s3", shared),
      job("s4", shared),
    ]);
    await accept(process, "k", job("y"));
    await story.until("s1 and s2 run", () => jobs.runs("s1", "s2"));
    jobs.job("s2").finish();
    await story.until("s2 has ended", () => jobs.runs("s1"));
    await story.pass(1_000);
    assert.ok(jobs.runs("s1"), "x waits for s1");
    await runsOut(story, jobs, ["s1"], ["x"], ["s3", "s4"], ["y"]);
  },

  "J7: what is put in front while an engine stands still for longer than its lease does not run beside what it runs":
    async (story) => {
      const jobs = new ManualJobs();
      const kinds = { job: jobs.kind({ deaf: true }) };
      const engine = await story.engine({ kinds });
      const desk = await story.process({ kinds });
      await accept(engine, "k", job("a"));
      await story.until("a runs", () => jobs.runs("a"));
      const ice = engine.store.hold();
      await story.clock.jump(leaseMs + 1_000);
      await accept(desk, "k", job("b", { place: "front" }));
      ice.letGo();
      await story.pass(2_000);
      assert.ok(jobs.runs("a"), `${jobs.running.join(" and ")} run at once`);
      await runsOut(story, jobs, ["a"], ["b"]);
      assert.deepEqual(jobs.begun, ["a", "b"]);
    },

  "J7: a shared operation that comes while others run joins them": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind(shared) } });
    const other = await story.process({ kinds: { job: jobs.kind(shared) } });
    await accept(process, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await accept(process, "k", job("b"));
    await story.until("b runs, too", () => jobs.runs("a", "b"));
    await accept(other, "k", job("c"));
    await story.until("c runs, too", () => jobs.runs("a", "b", "c"));
  },

  "J7: a shared operation that another process accepted joins also if the runner recorded something just then": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      await jobs.work(operation);
      await operation.step("one", () => 1);
      return jobs.work({ ...operation, input: `${String(operation.input)}, second half` } as Operation);
    };
    const kinds = { job: { run, mode: "shared" as const } };
    const runner = await story.engine({ kinds });
    const other = await story.process({ kinds });
    await accept(runner, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const looks = runner.store.hold(["claim"]);
    await accept(other, "k", job("b"));
    jobs.job("a").finish();
    await story.until("a has recorded its step", () => jobs.running.includes("a, second half"));
    looks.letGo();
    await story.until("b runs beside it", () => jobs.runs("a, second half", "b"));
  },

  "J7: operations of different resources run beside each other": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await Promise.all(["a", "b", "c"].map((name) => accept(process, `resource of ${name}`, job(name))));
    await story.until("all run", () => jobs.runs("a", "b", "c"));
  },

  "J7: an operation that waits for its time keeps its place": async (story) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      await operation.sleep("a minute", 60_000);
      return jobs.work(operation);
    };
    const process = await story.engine({ kinds: { job: jobs.kind(), sleeper: { run } } });
    await acceptAll(process, "k", [{ kind: "sleeper", input: "a" }, job("b")]);
    await story.until("a sleeps", async () => (await read(process, "k")).open[0]?.attempts === 1);
    await story.pass(50_000);
    assert.deepEqual(jobs.begun, []);
    await story.pass(10_000);
    await runsOut(story, jobs, ["a"], ["b"]);
  },

  "J7: a held operation stands aside, and those behind it go on; released, it takes its turn": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = ""] = await acceptAll(process, "k", [job("a", { held: true }), job("b"), job("c")]);
    await story.until("b runs", () => jobs.runs("b"));
    await story.pass(1_000);
    assert.ok(jobs.runs("b"));
    await runsOut(story, jobs, ["b"], ["c"]);
    await story.pass(1_000);
    assert.deepEqual(jobs.begun, ["b", "c"]);
    await change(process, "k", { release: [a] });
    await runsOut(story, jobs, ["a"]);
    assert.deepEqual(
      (await entriesOf(process, "k")).filter(({ operation }) => operation === a).map(({ kind }) => kind),
      ["accepted", "released", "settled"],
    );
  },

  "J7: an exclusive operation that is released while another one runs waits for its end": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = ""] = await acceptAll(process, "k", [job("a", { held: true }), job("b")]);
    await story.until("b runs", () => jobs.runs("b"));
    await change(process, "k", { release: [a] });
    await story.pass(1_000);
    assert.deepEqual(jobs.running, ["b"], "two exclusive operations of one resource never run together");
    await runsOut(story, jobs, ["b"], ["a"]);
  },

  "J7: an exclusive operation that is released while shared ones run waits for their end": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [x = ""] = await acceptAll(process, "k", [job("x", { held: true }), job("s1", shared), job("s2", shared)]);
    await story.until("s1 and s2 run", () => jobs.runs("s1", "s2"));
    await change(process, "k", { release: [x] });
    await story.pass(1_000);
    assert.deepEqual(jobs.running, ["s1", "s2"]);
    await runsOut(story, jobs, ["s1", "s2"], ["x"]);
  },

  "J7: a shared operation that is released while an exclusive one runs waits for its end": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [s = ""] = await acceptAll(process, "k", [job("s", { held: true, ...shared }), job("x")]);
    await story.until("x runs", () => jobs.runs("x"));
    await change(process, "k", { release: [s] });
    await story.pass(1_000);
    assert.deepEqual(jobs.running, ["x"]);
    await runsOut(story, jobs, ["x"], ["s"]);
  },

  "J7: what runs cannot be held any more, what has not started can": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("a runs", () => jobs.runs("a"));
    await assert.rejects(change(process, "k", { hold: [a] }), isJournalError("invalid-change"));
    await assert.rejects(change(process, "k", { hold: ["7-nonsense"] }), isJournalError("invalid-change"));
    await change(process, "k", { hold: [b] });
    jobs.job("a").finish();
    await story.pass(1_000);
    assert.deepEqual(jobs.begun, ["a"]);
    await change(process, "k", { release: [b] });
    await runsOut(story, jobs, ["b"]);
  },

  "J7: in front means before everything that has not started": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await acceptAll(process, "k", [job("a"), job("b"), job("c")]);
    await story.until("a runs", () => jobs.runs("a"));
    await accept(process, "k", job("urgent", { place: "front" }));
    await runsOut(story, jobs, ["a"], ["urgent"], ["b"], ["c"]);
  },

  "J7: what has started keeps its place before what is put in front, also while it waits": async (story) => {
    const jobs = new ManualJobs();
    const run = async (operation: Operation) => {
      await operation.sleep("a minute", 60_000);
      return jobs.work(operation);
    };
    const process = await story.engine({ kinds: { job: jobs.kind(), sleeper: { run } } });
    await acceptAll(process, "k", [{ kind: "sleeper", input: "a" }, job("b")]);
    await story.until("a sleeps", async () => (await read(process, "k")).open[0]?.attempts === 1);
    await accept(process, "k", job("urgent", { place: "front" }));
    await story.pass(60_000);
    await runsOut(story, jobs, ["a"], ["urgent"], ["b"]);
  },

  "J7: operations that have not started can be put into another order": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = "", , d = ""] = await acceptAll(
      process,
      "k",
      ["a", "b", "c", "d"].map((name) => job(name)),
    );
    await story.until("a runs", () => jobs.runs("a"));
    await assert.rejects(change(process, "k", { order: [b, a] }), isJournalError("invalid-change"));
    await change(process, "k", { order: [d, b] });
    await runsOut(story, jobs, ["a"], ["d"], ["b"], ["c"]);
  },

  "J7: 200 operations of one resource keep their order, also those beyond the record, and all end": async (story) => {
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
    assert.deepEqual([open.length, queued], [4, 196]);
    await process.journal.start();
    await story.until("all have ended", () => order.length === 200);
    assert.deepEqual(order, names);
    await story.until("nothing is left", async () => {
      const rest = await read(process, "k");
      return rest.open.length === 0 && rest.queued === 0;
    });
    assert.deepEqual((await process.journal.parts("k", "")).items, []);
  },

  "J7: a resource shows at least 32 open operations that are in turn, if there are so many": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() }, laneConcurrency: 100 });
    const shared = numbered(100).map((name) => job(name, { mode: "shared" }));
    await acceptAll(process, "k", shared);
    await story.until("as many as can run together do", () => jobs.running.length >= 32);
    for (const name of numbered(20)) {
      await story.until(`${name} runs`, () => jobs.running.includes(name));
      jobs.job(name).finish();
    }
    await story.until("they have ended", async () => {
      const { open, queued } = await read(process, "k");
      return open.length + queued === 80;
    });
    const { open } = await read(process, "k");
    assert.ok(open.length >= 32, `only ${open.length} are shown`);
  },

  "J7: shared operations begin when the exclusive one before them is gone, also beside many that run": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() }, laneConcurrency: 100 });
    const shared = (name: string) => job(name, { mode: "shared" });
    await acceptAll(process, "k", numbered(33).map(shared));
    await story.until("they run", () => jobs.running.length === 33);
    const exclusive = await accept(process, "k", job("alone"));
    const behind = numbered(7, "behind");
    await acceptAll(process, "k", behind.map(shared));
    assert.equal(await process.journal.cancel("k", exclusive, "not wanted", bob), true);
    await story.until("those behind it run", () => behind.every((name) => jobs.running.includes(name)));
  },

  "J10: of a queue of exclusive operations a record holds few": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await acceptAll(
      process,
      "k",
      numbered(100).map((name) => job(name)),
    );
    for (const name of numbered(20)) {
      await story.until(`${name} runs`, () => jobs.runs(name));
      jobs.job(name).finish();
    }
    await story.until("the next one runs", () => jobs.runs("0020"));
    const { open, queued } = await read(process, "k");
    assert.equal(open.length + queued, 80);
    assert.ok(open.length >= 1 && open.length <= 8, `${open.length} are in the record`);
  },

  "J7: operations behind more held ones than a record has room for go on": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    await acceptAll(process, "k", [...numbered(70).map((name) => job(name, { held: true })), job("free")]);
    await story.until("free runs", () => jobs.runs("free"));
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
async function runsOut(story: Story, jobs: ManualJobs, ...groups: readonly (readonly string[])[]): Promise<void> {
  for (const group of groups) {
    await story.until(`exactly ${group.join(", ")} runs`, () => jobs.runs(...group));
    for (const name of group) jobs.job(name).finish();
  }
  await story.until("nothing runs", () => jobs.running.length === 0);
}
