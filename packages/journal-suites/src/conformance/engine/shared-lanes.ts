import assert from "node:assert/strict";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  ann,
  bob,
  type EngineTests,
  isJournalError,
  leaseMs,
  numbered,
  type Process,
  type Story,
} from "../story.js";

/** Pauses and limits of lanes that hold in all processes. */
export const sharedLanesTests: EngineTests = {
  "lanes: a limit holds over all processes, and all that waits gets its turn": async (story) => {
    const jobs = new ManualJobs();
    const [a, b, c] = [await sharing(story, jobs), await sharing(story, jobs), await sharing(story, jobs)];
    await (await a.journal.lanes()).set("lane", { limit: 2 }, { by: bob });
    await story.until("all know", async () =>
      (await Promise.all([a, b, c].map(limitIn))).every((limit) => limit === 2),
    );
    const keys = numbered(9, "k");
    for (const [index, key] of keys.entries()) await accept([a, b, c][index % 3] ?? a, key, job(key, { lane: "lane" }));
    const other = await accept(a, "other", job("other", { lane: "another lane" }));
    await story.until("another lane is not held up", () => jobs.running.includes("other"));
    jobs.job("other").finish();
    await story.ends(a, "other", other);
    for (let left = keys.length; left > 0; left--) {
      const most = Math.min(2, left);
      await story.until("as many run as may", () => jobs.running.length === most);
      await story.pass(1_000);
      assert.ok(jobs.running.length <= 2, `${jobs.running.length} run`);
      jobs.job(jobs.running[0] ?? "").finish();
    }
    await story.until("all have run", () => jobs.begun.length === keys.length + 1 && jobs.running.length === 0);
  },

  "lanes: a limit is raised, lowered and lifted in any process, while others run": async (story) => {
    const jobs = new ManualJobs();
    const [a, b] = [await sharing(story, jobs), await sharing(story, jobs)];
    const [ofA, ofB] = [await a.journal.lanes(), await b.journal.lanes()];
    await ofA.set("lane", { limit: 1 }, { by: bob });
    await story.until("b knows", async () => (await limitIn(b)) === 1);
    for (const key of numbered(8, "k")) await accept(a, key, job(key, { lane: "lane" }));
    await story.until("one runs", () => jobs.running.length === 1);
    await ofB.set("lane", { limit: 4 }, { by: bob });
    await story.until("four run", () => jobs.running.length === 4);
    await ofA.set("lane", { limit: 2 }, { by: bob });
    await story.until("b knows", async () => (await limitIn(b)) === 2);
    await story.pass(5_000);
    for (const name of jobs.running) jobs.job(name).finish();
    await story.until("two run", () => jobs.running.length === 2);
    await story.pass(leaseMs);
    assert.equal(jobs.running.length, 2);
    await ofB.set("lane", { limit: null }, { by: bob });
    await story.until("all the rest runs", () => jobs.begun.length === 8);
    assert.deepEqual(ofB.value, []);
  },

  "lanes: a limit of nought lets nothing begin": async (story) => {
    const jobs = new ManualJobs();
    const a = await sharing(story, jobs);
    const lanes = await a.journal.lanes();
    await lanes.set("lane", { limit: 0 }, { by: bob });
    await accept(a, "k", job("a", { lane: "lane" }));
    await story.pass(60_000);
    assert.deepEqual(jobs.begun, []);
    await lanes.set("lane", { limit: 1 }, { by: bob });
    await story.until("it runs", () => jobs.runs("a"));
  },

  "lanes: what is paused in one process begins in none, also not after a restart": async (story) => {
    const jobs = new ManualJobs();
    const [a, b] = [await sharing(story, jobs), await sharing(story, jobs)];
    await accept(a, "k0", job("running", { lane: "lane" }));
    await story.until("it runs", () => jobs.runs("running"));
    await (await b.journal.lanes()).set("lane", { paused: true }, { by: bob });
    await story.until("a knows", async () => (await a.journal.lanes()).value[0]?.paused === true);
    const id = await accept(a, "k1", job("waiting", { lane: "lane" }));
    await accept(b, "k2", job("waiting, too", { lane: "lane" }));
    jobs.job("running").finish();
    await story.pass(60_000);
    assert.deepEqual(jobs.running, []);
    await a.journal.stop();
    await b.journal.stop();
    const c = await sharing(story, jobs);
    await story.pass(60_000);
    assert.deepEqual(jobs.running, []);
    assert.equal(await c.journal.cancel("k1", id, "not needed", ann), true);
    await (await c.journal.lanes()).set("lane", { paused: false }, { by: bob });
    await story.until("the rest goes on", () => jobs.runs("waiting, too"));
  },

  "lanes: the share of a process that died is free at the latest when its lease would be over": async (story) => {
    const jobs = new ManualJobs();
    const a = await sharing(story, jobs);
    await (await a.journal.lanes()).set("lane", { limit: 1 }, { by: bob });
    await accept(a, "k", job("a", { lane: "lane" }));
    await story.until("it runs", () => jobs.runs("a"));
    const b = await sharing(story, jobs);
    await accept(b, "k2", job("b", { lane: "lane" }));
    await story.pass(leaseMs);
    assert.deepEqual(jobs.running, ["a"]);
    await a.journal.kill();
    await story.pass(leaseMs + 1_000);
    await story.until("b runs one of them", () => jobs.begun.length >= 2);
    await story.pass(leaseMs);
    jobs.job(jobs.running.at(-1) ?? "").finish();
    await story.until("and then the other", () => jobs.begun.length === 3);
  },

  "lanes: a process that is full of other work leaves its places in a lane to one that has room": async (story) => {
    const [holder, other] = await onePlaceOfTwo(story);
    const full = await accept(holder.process, "full", job("full", { lane: "another lane" }));
    await story.until("it is full", () => holder.jobs.runs("full"));
    await accept(other.process, "k", job("waits", { lane: "lane" }));
    await story.until("the other one runs it", () => other.jobs.runs("waits"));
    other.jobs.job("waits").finish();
    holder.jobs.job("full").finish();
    await story.ends(holder.process, "full", full);
  },

  "lanes: a process in which a lane is paused leaves its places in it to others": async (story) => {
    const [holder, other] = await onePlaceOfTwo(story);
    holder.process.journal.pauseLanes(new Set(["lane"]));
    await accept(holder.process, "k", job("waits", { lane: "lane" }));
    await story.until("the other one runs it", () => other.jobs.runs("waits"));
  },

  "lanes: a place that nobody uses comes to the process that alone can use it": async (story) => {
    const [holder, other] = await onePlaceOfTwo(story, 2);
    // Beside an operation that runs there, nobody else can run one of the same resource.
    await accept(other.process, "k", job("runs", { lane: "another lane", mode: "shared" }));
    await story.until("it runs", () => holder.jobs.runs("runs") || other.jobs.runs("runs"));
    await accept(other.process, "k", job("waits", { lane: "lane", mode: "shared" }));
    await story.until("it runs beside", () => holder.jobs.runs("runs", "waits") || other.jobs.runs("runs", "waits"));
  },

  "lanes: a rule says who made it, and what is no rule is refused": async (story) => {
    const { journal } = await sharing(story, new ManualJobs());
    const lanes = await journal.lanes();
    await assert.rejects(lanes.set("lane", { limit: -1 }, { by: bob }), isJournalError("invalid-change"));
    await assert.rejects(lanes.set("lane", { limit: 0.5 }, { by: bob }), isJournalError("invalid-change"));
    await assert.rejects(lanes.set("", { limit: 1 }, { by: bob }), isJournalError("invalid-change"));
    await lanes.set("lane", { limit: 3 }, { by: bob });
    await lanes.set("lane", { paused: true }, { by: ann });
    assert.deepEqual(lanes.value, [{ lane: "lane", paused: true, limit: 3 }]);
    assert.deepEqual((await journal.find()).items, [], "it is no resource of anybody's");
  },

  "J10: as long as no lane has a limit, nobody writes anything about shares": async (story) => {
    const process = await sharing(story, new ManualJobs());
    const commits = process.store.count("commit");
    await story.pass(leaseMs * 10);
    assert.equal(process.store.count("commit"), commits);
  },
};

/** The same where the store can tell that another process is dead. */
export const lanesOfTheKilledTests: EngineTests = {
  "J11: the places of a killed process are free long before its lease would be over, also if it waited for more":
    async (story) => {
      const jobs = new ManualJobs();
      const killed = await sharing(story, jobs);
      await (await killed.journal.lanes()).set("lane", { limit: 2 }, { by: bob });
      for (const key of ["k1", "k2"]) await accept(killed, key, job(key, { lane: "lane" }));
      await story.until("both places are taken", () => jobs.runs("k1", "k2"));
      // Three more are urgent for it: they are of a resource that it holds.
      await accept(killed, "k3", job("beside", { lane: "another lane", mode: "shared" }));
      await story.until("it holds the resource", () => jobs.runs("k1", "k2", "beside"));
      for (const name of ["k4", "k5", "k6"]) await accept(killed, "k3", job(name, { lane: "lane", mode: "shared" }));
      const next = await sharing(story, jobs);
      await accept(next, "k7", job("k7", { lane: "lane" }));
      await story.pass(3_000);
      assert.ok(jobs.runs("k1", "k2", "beside"), jobs.running.join());
      const killedAt = story.now;
      await killed.journal.kill();
      for (let left = 6; left > 0; left--) {
        await story.until("both places are taken", () => inLane(jobs).length === Math.min(2, left));
        jobs.job(inLane(jobs)[0] ?? "").finish();
      }
      assert.ok(story.now - killedAt < leaseMs / 2, `took ${story.now - killedAt} ms`);
    },

  "J11: the places of a process that is killed while it runs nothing are free long before its lease would be over":
    async (story) => {
      const jobs = new ManualJobs();
      const [killed, next] = [await sharing(story, jobs), await sharing(story, jobs)];
      await (await killed.journal.lanes()).set("lane", { limit: 2 }, { by: bob });
      await story.until("the other knows", async () => (await limitIn(next)) === 2);
      await story.pass(5_000);
      await killed.journal.kill();
      const killedAt = story.now;
      for (const key of ["k1", "k2"]) await accept(next, key, job(key, { lane: "lane" }));
      await story.until("both places are the other's", () => jobs.runs("k1", "k2"));
      assert.ok(story.now - killedAt < leaseMs / 2, `took ${story.now - killedAt} ms`);
    },
};

function inLane(jobs: ManualJobs): readonly string[] {
  return jobs.running.filter((name) => name !== "beside");
}

async function sharing(story: Story, jobs: ManualJobs): Promise<Process> {
  const process = await story.process({ kinds: { job: jobs.kind() } });
  await process.journal.lanes();
  await process.journal.start();
  return process;
}

interface Worker {
  readonly process: Process;
  readonly jobs: ManualJobs;
}

/** Two processes that share a lane with one place, which the first of them has. */
async function onePlaceOfTwo(story: Story, concurrency = 1): Promise<readonly [holder: Worker, other: Worker]> {
  const workers: Worker[] = [];
  for (let index = 0; index < 2; index++) {
    const jobs = new ManualJobs();
    const process = await story.process({ kinds: { job: jobs.kind() }, concurrency });
    await process.journal.lanes();
    await process.journal.start();
    workers.push({ process, jobs });
  }
  const [a, b] = workers as [Worker, Worker];
  await (await a.process.journal.lanes()).set("lane", { limit: 1 }, { by: bob });
  await story.until("b knows", async () => (await limitIn(b.process)) === 1);
  // Whoever has it at first may not be the one whose turn it is.
  await story.pass(5_000);
  const probe = await accept(a.process, "probe", job("probe", { lane: "lane" }));
  await story.until("one of them has the place", () => a.jobs.runs("probe") || b.jobs.runs("probe"));
  const [holder, other] = a.jobs.runs("probe") ? [a, b] : [b, a];
  holder.jobs.job("probe").finish();
  await story.ends(a.process, "probe", probe);
  return [holder, other];
}

async function limitIn({ journal }: Process): Promise<number | null> {
  return (await journal.lanes()).value.find(({ lane }) => lane === "lane")?.limit ?? null;
}
