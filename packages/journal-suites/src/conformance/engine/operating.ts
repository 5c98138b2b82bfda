import assert from "node:assert/strict";
import { type Operation, RetryLater } from "@osbert/journal";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  bob,
  change,
  type EngineTests,
  entriesOf,
  gate,
  isJournalError,
  numbered,
  type Process,
  storyOf,
} from "../story.js";

const hourMs = 3_600_000;
const minuteMs = 60_000;

/** What an operator does to operations and lanes, and looks for. */
export const operatingTests: EngineTests = {
  "hurry: an operation that waits for its next attempt runs now": async (story) => {
    const run = async ({ attempt }: Operation) => {
      if (attempt === 1) throw new Error("no route to host");
      return attempt;
    };
    const backoff = { firstMs: hourMs, factor: 1, longestMs: hourMs };
    const process = await story.engine({ kinds: { job: { run, backoff } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await change(process, "k", { hurry: [id] }, bob);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 2 });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "retry", "hurried", "settled"]);
    const hurried = (await entriesOf(process, "k")).find(({ kind }) => kind === "hurried");
    assert.deepEqual([hurried?.actor, hurried?.requestId], [bob.actor, bob.requestId]);
  },

  "hurry: a wait of the operation's own is over": async (story) => {
    const run = async (operation: Operation) => {
      await operation.sleep("an hour", hourMs);
      return "woke";
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await change(process, "k", { hurry: [id] }, bob);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "woke" });
  },

  ...hurriedAtItsEnd("a RetryLater", () => new RetryLater("not yet", { afterMs: hourMs })),

  ...hurriedAtItsEnd("a failure", () => new Error("no route to host")),

  "hurry: what runs goes on, and what waits for its turn, or is not there, is left as it is": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [a = "", b = ""] = await acceptAll(process, "k", [job("a"), job("b")]);
    await story.until("a runs", () => jobs.runs("a"));
    await change(process, "k", { hurry: [a, b] }, bob);
    assert.deepEqual(jobs.begun, ["a"]);
    assert.deepEqual(await storyOf(process, "k", a), ["accepted", "hurried"], "its next poll looks at once");
    assert.deepEqual(await storyOf(process, "k", b), ["accepted"]);
    await assert.rejects(change(process, "k", { hurry: ["1-nobody"] }, bob), isJournalError("invalid-change"));
    for (const [name, id] of [
      ["a", a],
      ["b", b],
    ] as const) {
      await story.until(`${name} runs`, () => jobs.runs(name));
      jobs.job(name).finish();
      await story.ends(process, "k", id);
    }
    assert.deepEqual(jobs.begun, ["a", "b"]);
  },

  "pause: nothing begins in a paused lane, what runs in it goes on, and others are not held up": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const running = await accept(process, "k1", job("running", { lane: "paused" }));
    await story.until("it runs", () => jobs.runs("running"));
    process.journal.pauseLanes(new Set(["paused"]));
    const waiting = await accept(process, "k2", job("waiting", { lane: "paused" }));
    const behind = await accept(process, "k1", job("behind", { lane: "paused" }));
    const other = await accept(process, "k3", job("other", { lane: "free" }));
    await story.until("the other runs", () => jobs.runs("running", "other"));
    jobs.job("other").finish();
    jobs.job("running").finish();
    await story.ends(process, "k3", other);
    await story.ends(process, "k1", running);
    await story.pass(5 * minuteMs);
    assert.deepEqual(jobs.begun, ["running", "other"]);
    process.journal.pauseLanes(new Set());
    await story.until("both go on", () => jobs.runs("waiting", "behind"));
    for (const name of ["waiting", "behind"]) jobs.job(name).finish();
    await story.ends(process, "k2", waiting);
    await story.ends(process, "k1", behind);
  },

  "pause: a paused operation costs nothing while it waits, and can be cancelled": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.process({ kinds: { job: jobs.kind() } });
    process.journal.pauseLanes(new Set(["paused"]));
    await process.journal.start();
    const id = await accept(process, "k", job("a", { lane: "paused" }));
    const commits = process.store.count("commit");
    // Where a store is polled each of its looks is a question to a real server: as many as an hour has take minutes on a busy machine.
    await story.pass(5 * minuteMs);
    assert.equal(process.store.count("commit"), commits);
    assert.equal(await process.journal.cancel("k", id, "not needed", bob), true);
    assert.equal((await story.ends(process, "k", id)).kind, "cancelled");
    assert.deepEqual(jobs.begun, []);
  },

  "J10: resources with open operations are listed by lane, without those that have none": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind(), quick: { run: async () => 1 } } });
    for (const key of numbered(5, "done"))
      await story.ends(process, key, await accept(process, key, { kind: "quick" }));
    await change(process, "bare", { data: 1 });
    for (const [index, lane] of ["b", "a", "b"].entries())
      await accept(process, `k${index}`, job(`${index}`, { lane }));
    await accept(process, "later", job("later", { lane: "a", delayMs: hourMs }));
    await story.until("they run", () => jobs.runs("0", "1", "2"));
    assert.deepEqual(new Set(await workIn(process)), new Set(["k1", "later", "k0", "k2"]));
    assert.deepEqual(await workIn(process, "a"), ["k1", "later"]);
    await assert.rejects(process.journal.withWork({ after: "nonsense" }), isJournalError("invalid-change"));
    await assert.rejects(process.journal.withWork({ after: '["a",1e99,"b"]' }), isJournalError("invalid-change"));
    for (const name of ["0", "1", "2"]) jobs.job(name).finish();
  },
};

async function workIn({ journal }: Process, lane?: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await journal.withWork({ limit: 1, ...(lane !== undefined && { lane }), ...(after && { after }) });
    keys.push(...page.items.map(({ key }) => key));
    if (page.next === null) return keys;
    after = page.next;
  }
}

/** What it saw may be older than the reason to hurry: it must not wait for an hour on that. */
function hurriedAtItsEnd(what: string, error: () => Error): EngineTests {
  return {
    [`hurry: an attempt that ends with ${what} at that moment is followed by one more, at once`]: async (story) => {
      const doors = [gate(), gate(), gate()];
      let begun = 0;
      const run = async () => {
        const nth = begun++;
        await doors[nth]?.passed;
        if (nth < 2) throw error();
        return "done";
      };
      const backoff = { firstMs: hourMs, factor: 1, longestMs: hourMs };
      const process = await story.engine({ kinds: { job: { run, backoff } } });
      const id = await accept(process, "k", { kind: "job" });
      await story.until("it runs", () => begun === 1);
      await change(process, "k", { hurry: [id] });
      doors[0]?.open();
      await story.until("it runs again", () => begun === 2);
      const told = process.events.flatMap((event) => ("until" in event ? [event.until] : []));
      assert.ok(Math.max(...told) <= story.now, "what is told of the next attempt is what is written of it");
      doors[1]?.open();
      await story.rests(process, "k", id);
      assert.equal(begun, 2, "once");
      await change(process, "k", { hurry: [id] });
      doors[2]?.open();
      assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "done" });
    },
  };
}
