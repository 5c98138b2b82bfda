import assert from "node:assert/strict";
import type { Entry, Operation } from "@osbert/journal";
import { journalActor } from "@osbert/journal/testing";
import { job, ManualJobs } from "../manual-jobs.js";
import { accept, ann, bob, change, type EngineTests, entriesOf, leaseMs, type Process, read } from "../story.js";

/** J9: who, when, why and under which request. */
export const attributionTests: EngineTests = {
  "J9: what an operation records says who asked for it, when, because of which entry, and under which request": async (
    story,
  ) => {
    const run = async (operation: Operation) => {
      operation.describe(`reserving, attempt ${operation.attempt}`);
      await operation.step("one", () => 1);
      if (operation.attempt === 1) throw new Error("flaky");
      await operation.sleep("a minute", 60_000);
      return { actor: operation.actor, requestId: operation.requestId };
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const startedAt = story.now;
    const id = await accept(process, "k", { kind: "job" }, { ...ann, cause: "a request by HTTP" });
    await story.rests(process, "k", id);
    await story.pass(62_000);
    assert.deepEqual(await story.ends(process, "k", id), {
      kind: "succeeded",
      result: { actor: ann.actor, requestId: ann.requestId },
    });
    const [accepted, ...rest] = await entriesOf(process, "k");
    assert.deepEqual(
      rest.map(({ kind }) => kind),
      ["described", "step", "retry", "described", "waiting", "described", "settled"],
    );
    assert.deepEqual(
      [accepted?.actor, accepted?.cause, accepted?.requestId],
      [ann.actor, "a request by HTTP", ann.requestId],
    );
    for (const entry of rest) {
      assert.deepEqual(
        [entry.actor, entry.cause, entry.requestId],
        [ann.actor, accepted?.seq, ann.requestId],
        entry.kind,
      );
      assert.ok(entry.at >= startedAt && entry.at <= story.now, entry.kind);
    }
  },

  "J9: a cancelled operation's end says who cancelled it": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    for (const state of ["running", "waiting"]) {
      const key = `${state} one`;
      const id = await accept(process, key, job(key, state === "waiting" ? { delayMs: 60_000 } : {}));
      if (state === "running") await story.until("it runs", () => jobs.runs(key));
      await process.journal.cancel(key, id, "not wanted", bob);
      await story.ends(process, key, id);
      const [accepted, requested, settled] = await entriesOf(process, key);
      assert.deepEqual(
        [requested?.kind, requested?.actor, requested?.requestId],
        ["cancel requested", bob.actor, bob.requestId],
      );
      assert.deepEqual(
        [settled?.kind, settled?.actor, settled?.requestId, settled?.cause],
        ["settled", bob.actor, bob.requestId, accepted?.seq],
      );
    }
  },

  "J9: what the end of an operation brings about says which end did": async (story) => {
    const settle = () => ({ entries: [{ kind: "noted" }], accept: [{ kind: "next" }] });
    const process = await story.engine({
      kinds: { job: { run: async () => 1, settle }, next: { run: async () => 2 } },
    });
    await accept(process, "k", { kind: "job" });
    await story.until("both have ended", async () => (await read(process, "k")).last?.kind === "next");
    const entries = await entriesOf(process, "k");
    assert.deepEqual(
      entries.map(({ kind }) => kind),
      ["accepted", "settled", "noted", "accepted", "settled"],
    );
    const [, settled, noted, accepted, end] = entries;
    for (const entry of [noted, accepted]) {
      assert.deepEqual([entry?.actor, entry?.requestId, entry?.cause], [ann.actor, ann.requestId, settled?.seq]);
    }
    assert.deepEqual([end?.actor, end?.requestId, end?.cause], [ann.actor, ann.requestId, accepted?.seq]);
  },

  "J9: a change of the resource says who made it and why": async (story) => {
    const process = await story.process({ kinds: {} });
    await change(process, "k", { data: 1 }, { ...bob, cause: "ticket 7" });
    await change(process, "k", { entries: [{ kind: "noted", payload: { text: "hello" } }] }, bob);
    const [changed, noted] = await entriesOf(process, "k");
    assert.deepEqual(
      [changed?.kind, changed?.actor, changed?.cause, changed?.requestId],
      ["changed", bob.actor, "ticket 7", bob.requestId],
    );
    assert.deepEqual(
      [noted?.payload, noted?.actor, noted?.cause, noted?.at],
      [{ text: "hello" }, bob.actor, null, story.now],
    );
  },

  "J9: what the journal does by itself says so, and why": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.process({
      kinds: { job: jobs.kind(), gone: jobs.kind() },
      retention: { succeededMs: 1_000 },
    });
    const engine = await story.engine({ kinds: { job: jobs.kind() }, retention: { succeededMs: 1_000 } });
    // Not known to the engine; past its deadline while it waits; pruned.
    await accept(process, "unknown", { kind: "gone" });
    await accept(process, "late", job("late", { delayMs: 60_000, deadlineMs: 5_000 }));
    await accept(engine, "pruned", job("short"));
    await story.until("it runs", () => jobs.runs("short"));
    jobs.job("short").finish();
    await story.pass(8_000);
    // So many runners that came and went that the next one is careful.
    await accept(process, "poison", job("poison", { delayMs: 60_000 }));
    await poison(process, "poison");
    await story.pass(leaseMs + 60_000);
    const own: Entry[] = [];
    for (const key of ["unknown", "late", "pruned", "poison"]) {
      const byItself = (await entriesOf(process, key)).filter(({ actor }) => actor.subject === journalActor.subject);
      assert.ok(byItself.length > 0, `the journal must have written something about ${key}`);
      own.push(...byItself);
    }
    assert.deepEqual([...new Set(own.map(({ kind }) => kind))].sort(), ["pruned", "retry", "settled", "waiting"]);
    for (const entry of own) {
      assert.deepEqual(entry.actor, journalActor);
      assert.notEqual(entry.cause, null, `why: a "${entry.kind}" entry does not say`);
    }
  },

  "J9: an operation that ends at its deadline while it waits does so under the request that asked for it": async (
    story,
  ) => {
    const process = await story.engine({ kinds: { job: { run: async () => 1 } } });
    const id = await accept(process, "k", { kind: "job", delayMs: 60_000, deadlineMs: 5_000 });
    await story.pass(5_000);
    await story.ends(process, "k", id);
    const settled = (await entriesOf(process, "k")).at(-1);
    assert.deepEqual([settled?.kind, settled?.requestId], ["settled", ann.requestId]);
  },
};

/** Runners come and go without recording anything. */
async function poison({ store }: Process, key: string): Promise<void> {
  const owner = "short-lived";
  for (let times = 0; times < 30; times++) {
    const found = await store.store.read(key, []);
    if (found === undefined) return;
    const { seq, epoch, state, lane } = found.record;
    await store.store.commit({
      ...{ key, expected: { seq, epoch }, token: `poison${times}`, state, lane, epoch: epoch + 1 },
      ...{ lease: { owner, until: 1 }, dueAt: "keep", putParts: [], deleteParts: [], addLabels: [], removeLabels: [] },
      entries: [
        { kind: "noted", operation: null, body: '{"actor":{"type":"operator","subject":"story"},"payload":null}' },
      ],
      ...{ deleteEntries: [], wake: false },
    });
  }
}
