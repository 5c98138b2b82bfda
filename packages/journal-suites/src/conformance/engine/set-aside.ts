import assert from "node:assert/strict";
import { job, ManualJobs } from "../manual-jobs.js";
import {
  accept,
  acceptAll,
  ann,
  change,
  type EngineTests,
  isJournalError,
  numbered,
  type Process,
  read,
} from "../story.js";

/** A resource that cannot be read is set aside; the rest goes on. */
export const setAsideTests: EngineTests = {
  "set aside: a record that cannot be read is taken out of the way and reported, the rest goes on": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    const keys = numbered(5, "k");
    const ids = await Promise.all(keys.map((key) => accept(process, key, { kind: "job" })));
    await change(process, "k0002", { labels: { space: "s" } });
    const mend = await story.damage(process, "k0002");
    await process.journal.start();
    for (const [index, key] of keys.entries()) if (key !== "k0002") await story.ends(process, key, ids[index] ?? "");
    await story.until("it is set aside", async () => (await setAside(process)).includes("k0002"));
    assert.ok(process.events.some((event) => event.kind === "set aside" && event.key === "k0002"));
    const { dueAt, lease } = await story.record(process, "k0002");
    assert.deepEqual([dueAt, lease], [null, null]);
    const claims = process.store.count("claim");
    await story.pass(120_000);
    const { pollMs } = process.store.store.pace;
    assert.ok(
      process.store.count("claim") - claims <= (pollMs === null ? 1 : 120_000 / pollMs + 1),
      "it is not claimed over and over",
    );

    await assert.rejects(process.journal.read("k0002"), isJournalError("unreadable"));
    await assert.rejects(
      process.journal.transact("k0002", () => ({ result: 1 }), { by: ann }),
      isJournalError("unreadable"),
    );
    const found = await process.journal.find({ prefix: "k" });
    assert.deepEqual(
      found.items.map(({ key }) => key),
      keys.filter((key) => key !== "k0002"),
    );

    await mend();
    await process.journal.restore("k0002");
    await story.ends(process, "k0002", ids[2] ?? "");
    assert.deepEqual(await setAside(process), []);
    assert.deepEqual((await read(process, "k0002")).labels, { space: "s" });
  },

  "set aside: so is a state of another shape": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => 1 } } });
    for (const [index, state] of [
      "null",
      "[]",
      "{}",
      '{"version":2}',
      '"text"',
      '{"version":1,"open":[{}],"queued":0,"labels":{},"heldEpoch":0}',
    ].entries()) {
      const key = `k${index}`;
      await change(process, key, { data: 1 });
      await story.damage(process, key, state);
      await story.until(`${state} is set aside`, async () => (await setAside(process)).includes(key));
    }
    await story.ends(process, "fine", await accept(process, "fine", { kind: "job" }));
  },

  "set aside: so is an operation whose request is missing, with its resource": async (story) => {
    const process = await story.process({ kinds: { job: { run: async () => 1 } } });
    await accept(process, "k", { kind: "job", delayMs: 1_000 });
    await story.tearOut(process, "k", 1);
    await process.journal.start();
    await story.pass(2_000);
    await story.until("it is set aside", async () => (await setAside(process)).includes("k"));
    await story.ends(process, "fine", await accept(process, "fine", { kind: "job" }));
  },

  "set aside: one whose record is damaged while it runs does not take the others with it": async (story) => {
    const jobs = new ManualJobs();
    const process = await story.engine({ kinds: { job: jobs.kind() } });
    const [id = ""] = await acceptAll(process, "k", [job("a")]);
    await story.until("a runs", () => jobs.runs("a"));
    const mend = await story.damage(process, "k");
    jobs.job("a").finish("the result");
    await story.until("it is set aside", async () => (await setAside(process)).includes("k"));
    const other = await accept(process, "fine", job("b"));
    await story.until("b runs", () => jobs.runs("b"));
    jobs.job("b").finish();
    await story.ends(process, "fine", other);
    await mend();
    await process.journal.restore("k");
    await story.until("a runs again", () => jobs.runs("a"));
    jobs.job("a").finish("again");
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: "again" });
  },

  "set aside: restoring what was never set aside changes nothing": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => 1 } } });
    await change(process, "k", { data: 1 });
    const before = await story.record(process, "k");
    await process.journal.restore("k");
    await process.journal.restore("never there");
    await story.quiet();
    assert.deepEqual(await story.record(process, "k"), before);
  },
};

/** Keys that were set aside, and of which it was told. */
async function setAside({ journal, events }: Process): Promise<readonly string[]> {
  const { items } = await journal.listSetAside();
  return items.filter((key) => events.some((event) => event.kind === "set aside" && event.key === key));
}
