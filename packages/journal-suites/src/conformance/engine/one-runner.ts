import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { Interrupted } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  change,
  type EngineTests,
  entriesOf,
  gate,
  leaseMs,
  numbered,
  read,
  storyOf,
} from "../story.js";

/** J3: at most one engine runs an operation at a time, and a late one is refused. */
export const oneRunnerTests: EngineTests = {
  "J3: two engines run every operation once, and never two of one resource together": async (story) => {
    const running = new Map<string, number>();
    const runs: string[] = [];
    let overlaps = 0;
    const run = async (operation: Operation) => {
      const others = running.get(operation.key) ?? 0;
      if (others > 0) overlaps++;
      running.set(operation.key, others + 1);
      runs.push(operation.id);
      await operation.step("one", () => undefined);
      await operation.step("two", () => undefined);
      running.set(operation.key, (running.get(operation.key) ?? 0) - 1);
    };
    const kinds = { job: { run } };
    const engines = [await story.engine({ kinds }), await story.engine({ kinds })] as const;
    const keys = numbered(6, "k");
    const ids = await story.over(
      Promise.all(
        keys.flatMap((key) => engines.flatMap((engine) => [1, 2, 3].map(() => accept(engine, key, { kind: "job" })))),
      ),
    );
    await story.until("everything has ended", async () => {
      const resources = await Promise.all(keys.map((key) => engines[0].journal.read(key)));
      return resources.every((resource) => resource?.open.length === 0);
    });
    assert.equal(overlaps, 0);
    assert.deepEqual([...runs].sort(), [...ids].sort());
  },

  "J3: an engine whose lease ran out is refused: nothing that it records counts, and its signal is aborted": async (
    story,
  ) => {
    const doors = [gate<string>(), gate<string>()];
    const signals: AbortSignal[] = [];
    let started = 0;
    const run = async (operation: Operation) => {
      signals.push(operation.signal);
      const door = doors[started++];
      const who = await operation.step("who", () => door?.passed ?? "nobody");
      await operation.step("second", () => who);
      return who;
    };
    const kinds = { job: { run } };
    const frozen = await story.engine({ kinds });
    const id = await accept(frozen, "k", { kind: "job" });
    await story.until("it runs", () => started === 1);
    const ice = frozen.store.hold();
    const other = await story.engine({ kinds });
    await story.pass(leaseMs + 1_000);
    await story.until("the other engine has taken over", () => started === 2);

    doors[0]?.open("the frozen one");
    await story.quiet();
    ice.letGo();
    await story.until("the frozen engine has noticed", () => signals[0]?.aborted === true);
    const reason: unknown = signals[0]?.reason;
    assert.ok(reason instanceof Interrupted && reason.why === "lease-lost");
    await story.until("it has let go", () => frozen.journal.running === 0);
    assert.equal(signals[1]?.aborted, false);

    doors[1]?.open("the other one");
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: "the other one" });
    assert.deepEqual(await storyOf(other, "k", id), ["accepted", "step", "step", "settled"]);
    assert.equal(started, 2);
    assert.ok(frozen.events.some(({ kind }) => kind === "lease lost"));
  },

  "J3: an engine that does not know yet that it lost a resource takes nothing back by changing it": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ deaf: true }) };
    const frozen = await story.engine({ kinds });
    const id = await accept(frozen, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const ice = frozen.store.hold();
    const other = await story.engine({ kinds });
    await story.pass(leaseMs + 1_000);
    await story.until("the other engine has taken over", () => jobs.begun.length === 2);
    const successor = (await story.record(other, "k")).lease?.owner;

    frozen.store.hold(["renew", "claim"]);
    ice.letGo();
    await change(frozen, "k", { data: "changed late" });
    await story.quiet();
    assert.equal((await story.record(other, "k")).lease?.owner, successor, "the lease is still the successor's");
    assert.equal((await read(other, "k")).data, "changed late");
    for (const name of jobs.running) jobs.job(name).finish("done");
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: "done" });
    assert.equal(jobs.begun.length, 2);
  },

  "J3: a lease is kept for as long as the operation runs": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind({ deadlineMs: null }) };
    const first = await story.engine({ kinds });
    const second = await story.engine({ kinds });
    const id = await accept(first, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await story.pass(10 * leaseMs);
    assert.deepEqual(jobs.begun, ["a"]);
    jobs.job("a").finish();
    await story.ends(second, "k", id);
    assert.deepEqual(jobs.begun, ["a"]);
  },

  "J3: no step is begun on a lease that may be over": async (story) => {
    const door = gate();
    const steps: string[] = [];
    const run = async (operation: Operation) => {
      await Promise.race([door.passed, new Promise((resolve) => operation.signal.addEventListener("abort", resolve))]);
      await operation.step("effect", () => steps.push(operation.id));
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await accept(process, "k", { kind: "job" });
    await story.until("it runs", () => process.journal.running === 1);
    const ice = process.store.hold();
    await story.clock.jump(leaseMs + 1_000);
    door.open();
    await story.quiet();
    assert.deepEqual(steps, [], "the store has not confirmed the lease");
    ice.letGo();
    await story.until("it has run", () => steps.length > 0);
    await story.until("it has ended", async () => (await read(process, "k")).open.length === 0);
    assert.equal(steps.length, 1);
  },

  "J3: an engine that stood still for longer than its lease, with nobody taking over, goes on with what it runs":
    async (story) => {
      const jobs = new ManualJobs();
      const process = await story.engine({ kinds: { job: jobs.kind() } });
      const id = await accept(process, "k", job("a"));
      await story.until("a runs", () => jobs.runs("a"));
      // What is due is claimed before the lease is renewed: the lease is taken up under a new epoch.
      const renewals = process.store.hold(["renew"]);
      await story.clock.jump(leaseMs + 1_000);
      await story.pass(6_000);
      renewals.letGo();
      await story.pass(leaseMs);
      assert.ok(jobs.runs("a"));
      assert.equal(jobs.job("a").operation.signal.aborted, false);
      jobs.job("a").finish("done");
      assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "done" });
      assert.deepEqual(jobs.begun, ["a"]);
    },

  "J3: an answer to a claim that is lost does not put to sleep what was claimed": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    const desk = await story.process({ kinds });
    process.store.fail("claim", "after");
    for (const key of numbered(5, "k")) await accept(desk, key, job(key));
    const acceptedAt = story.now;
    await story.until("they run", () => jobs.running.length === 5);
    assert.ok(story.now - acceptedAt < leaseMs / 2, `took ${story.now - acceptedAt} ms`);
    await story.pass(2 * leaseMs);
    assert.equal(jobs.begun.length, 5, "each once");
  },

  "J3: an engine that the store no longer vouches for lets go of everything, and comes back under another name": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = ""] = await acceptAll(process, "k", [job("a")]);
    await story.until("a runs", () => jobs.runs("a"));
    const { signal } = jobs.job("a").operation;
    const [owner = ""] = process.store.presences.keys();
    process.store.presences.get(owner)?.();
    await story.until("it came back", () => process.store.presences.size === 2);
    const reason: unknown = signal.reason;
    assert.ok(reason instanceof Interrupted && reason.why === "lease-lost");
    assert.ok(process.events.some(({ kind }) => kind === "presence lost"));
    await process.store.store.leave(owner);
    await story.pass(leaseMs + 1_000);
    await story.until("a runs again", () => jobs.runs("a"));
    jobs.job("a").finish();
    await story.ends(process, "k", a);
    assert.equal((await entriesOf(process, "k")).filter(({ kind }) => kind === "settled").length, 1);
  },

  "J11: what a killed process ran goes on in the next one without waiting for its lease": async (story) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const first = await story.engine({ kinds });
    const id = await accept(first, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    const killedAt = story.now;
    await first.journal.kill();
    const second = await story.engine({ kinds });
    await story.until("a runs again", () => jobs.begun.length === 2 && jobs.runs("a"));
    assert.ok(story.now - killedAt <= 5_000, `took ${story.now - killedAt} ms`);
    jobs.job("a").finish("done");
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: "done" });
  },

  "J11: where a store cannot tell that a process is gone, another engine goes on when the lease runs out": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const first = await story.engine({ kinds });
    const second = await story.engine({ kinds });
    const id = await accept(first, "k", job("a"));
    await story.until("a runs", () => jobs.runs("a"));
    await first.journal.kill();
    await story.pass(leaseMs + 1_000);
    await story.until("a runs again", () => jobs.begun.length === 2 && jobs.runs("a"));
    jobs.job("a").finish("done");
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: "done" });
  },
};

/** What a store must do that several processes share. */
export const takeOverByAnotherTests: EngineTests = {
  "J3: an engine makes sure before a step, and runs none where another has taken over that it has not heard of": async (
    story,
  ) => {
    const doors = [gate(), gate()];
    const effects: string[] = [];
    const kinds = (name: string, door: Promise<void> | undefined) => ({
      job: {
        run: async (operation: Operation) => {
          await operation.step("one", () => undefined);
          await door;
          await operation.step("two", () => effects.push(name));
        },
      },
    });
    const first = await story.engine({ kinds: kinds("first", doors[0]?.passed) });
    const second = await story.engine({ kinds: kinds("second", doors[1]?.passed) });
    await accept(first, "k", { kind: "job" });
    await story.until("it runs", () => first.journal.running === 1);
    // As if the session that vouches for it had broken without a word.
    const [owner = ""] = first.store.presences.keys();
    const claims = first.store.hold(["claim"]);
    await first.store.store.leave(owner);
    await story.until("the second has taken over", () => second.journal.running === 1);
    claims.letGo();
    await story.clock.jump(2_000);
    doors[0]?.open();
    await story.quiet();
    assert.deepEqual(effects, []);
    doors[1]?.open();
    await story.until("it has run", () => effects.length > 0);
    await story.pass(2_000);
    assert.deepEqual(effects, ["second"]);
    // It was taken for dead: whatever it claimed under its old name would be taken from it, too.
    await story.until("it has come back under another name", () => first.store.presences.size === 2);
  },

  "J11: a commit that lands under the name of an engine that was taken for dead meanwhile is not waited for": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const process = await story.engine({ kinds });
    await change(process, "k", { data: 1 });
    const commits = process.store.hold(["commit"]);
    const accepting = accept(process, "k", job("a"));
    await story.until("the commit is under way", () => commits.waiting === 1);
    const [owner = ""] = process.store.presences.keys();
    process.store.presences.get(owner)?.();
    await process.store.store.leave(owner);
    await story.until("it came back", () => process.store.presences.size === 2);
    await story.pass(2_000);
    commits.letGo();
    await accepting;
    const acceptedAt = story.now;
    await story.until("a runs", () => jobs.runs("a"));
    assert.ok(story.now - acceptedAt < leaseMs / 2, `took ${story.now - acceptedAt} ms`);
  },

  "J11: an engine that runs already goes on with what a killed one ran, without waiting for its lease": async (
    story,
  ) => {
    const jobs = new ManualJobs();
    const kinds = { job: jobs.kind() };
    const first = await story.engine({ kinds });
    const second = await story.engine({ kinds });
    const ids = await Promise.all(numbered(5, "k").map((key) => accept(first, key, job(key))));
    await story.until("they run", () => jobs.running.length === 5);
    const killedAt = story.now;
    await first.journal.kill();
    await story.until("they run again", () => jobs.begun.length === 10 && jobs.running.length === 5);
    assert.ok(story.now - killedAt < leaseMs / 2, `took ${story.now - killedAt} ms`);
    for (const name of jobs.running) jobs.job(name).finish();
    for (const [index, key] of numbered(5, "k").entries()) await story.ends(second, key, ids[index] ?? "");
  },
};
