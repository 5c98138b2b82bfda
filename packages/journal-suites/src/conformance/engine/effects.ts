import assert from "node:assert/strict";
import type { Journal, Operation, Resource } from "@osbert/journal";
import {
  accept,
  ann,
  change,
  type EngineTests,
  entriesOf,
  gate,
  leaseMs,
  numbered,
  type Process,
  read,
  storyOf,
} from "../story.js";

/** `operation.transact`: effects of an operation on another resource. */
export const effectsTests: EngineTests = {
  "J4: an effect on another resource is made once, though its process dies before the step is recorded": async (
    story,
  ) => {
    let first: Journal | undefined;
    const reached = (point: string) => {
      if (point === "after step, before it is recorded") void first?.kill();
    };
    const dying = await story.process({ kinds: { job: { run: takeOne } }, reached });
    first = dying.journal;
    await dying.journal.start();
    const id = await accept(dying, "k", { kind: "job" });
    await story.until("it is dead", () => dying.store.isClosed);
    const second = await story.engine({ kinds: { job: { run: takeOne } } });
    await story.pass(leaseMs + 1_000);
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: 1 });
    assert.equal((await read(second, "ledger")).data, 1);
    assert.deepEqual(await storyOf(second, "k", id), ["accepted", "step", "settled"]);
  },

  "J4: an effect is made once, though the other resource is removed before the step is recorded": async (story) => {
    let effects = 0;
    const run = async (operation: Operation) =>
      (await operation.transact("make", "other", () => ({ result: ++effects, change: { data: "made" } }))).result;
    let first: Journal | undefined;
    const reached = (point: string) => {
      if (point === "after step, before it is recorded") void first?.kill();
    };
    const dying = await story.process({ kinds: { job: { run } }, reached });
    first = dying.journal;
    await dying.journal.start();
    const id = await accept(dying, "k", { kind: "job" });
    await story.until("it is dead", () => dying.store.isClosed);
    const retention = { notesMs: 1_000, succeededMs: 24 * 3_600_000 };
    const second = await story.process({ kinds: { job: { run } }, retention });
    second.journal.pauseLanes(new Set(["job"]));
    await second.journal.start();
    await change(second, "other", { gone: true });
    await story.pass(5_000);
    await story.until("nothing is left of it but its bare record", async () =>
      (await entriesOf(second, "other")).every(({ kind }) => kind === "pruned"),
    );
    // Also long after a late runner could still be on its way.
    await story.clock.jump(3_600_000);
    await story.pass(5_000);
    second.journal.pauseLanes(new Set());
    await story.pass(leaseMs + 1_000);
    assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: 1 });
    assert.equal(effects, 1);
    assert.ok((await entriesOf(second, "other")).length <= 2, "looking for notes leaves no trail");
    await story.clock.jump(3_600_000);
    await story.pass(5_000);
    await story.until("it goes", async () => (await second.journal.read("other")) === undefined);
  },

  "J4: an effect whose answer was lost is made once": async (story) => {
    const process = await story.process({ kinds: { job: { run: takeOne } } });
    const id = await accept(process, "k", { kind: "job" });
    process.store.fail("commit", "after");
    await process.journal.start();
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 1 });
    assert.equal((await read(process, "ledger")).data, 1);
  },

  "J3: a runner that was taken over from makes no effect on another resource any more": async (story) => {
    const kinds = { job: { run: takeOne } };
    const late = await story.process({ kinds });
    const id = await accept(late, "k", { kind: "job" });
    const held = late.store.hold(["commit", "renew", "release"]);
    await late.journal.start();
    await story.until("its effect is on its way", () => held.waiting > 0);
    // Else it may take its own lease anew before the other does.
    const claims = late.store.hold(["claim"]);
    const other = await story.engine({ kinds });
    await story.pass(leaseMs + 1_000);
    assert.deepEqual(await story.ends(other, "k", id), { kind: "succeeded", result: 1 });
    claims.letGo();
    held.letGo();
    await story.pass(10_000);
    assert.equal((await read(other, "ledger")).data, 1);
    assert.equal((await entriesOf(other, "ledger")).length, 1);
  },

  "J2: a decision of an operation about its own resource sees what others have made of it meanwhile": async (story) => {
    const door = gate();
    const run = async (operation: Operation) => {
      await door.passed;
      await operation.change(countUp, { parts: ["a"], partsUnder: ["list/"] });
      await operation.change(() => ({}));
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const other = await story.process({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it runs", async () => (await read(other, "k")).running);
    const parts = { a: 1, "list/x": 2, "list/y": 3, z: 100 };
    await other.journal.transact("k", () => ({ result: null, change: { data: 10, parts } }), { by: ann });
    door.open();
    await story.ends(process, "k", id);
    assert.equal((await read(process, "k")).data, 16);
    const kinds = (await entriesOf(process, "k")).map(({ kind }) => kind);
    assert.deepEqual(kinds, ["accepted", "changed", "changed", "settled"], "what changes nothing is not written");
  },

  "J3: a runner that was taken over from decides nothing about its resource any more": async (story) => {
    const run = async (operation: Operation) => operation.change(() => ({ data: "told" }));
    const late = await story.process({ kinds: { job: { run } } });
    const id = await accept(late, "k", { kind: "job" });
    const held = late.store.hold(["commit", "renew", "release"]);
    await late.journal.start();
    await story.until("its change is on its way", () => held.waiting > 0);
    const claims = late.store.hold(["claim"]);
    const other = await story.engine({ kinds: { job: { run } } });
    await story.pass(leaseMs + 1_000);
    await story.ends(other, "k", id);
    claims.letGo();
    held.letGo();
    await story.pass(10_000);
    const kinds = (await entriesOf(other, "k")).map(({ kind }) => kind);
    assert.deepEqual(kinds, ["accepted", "changed", "settled"]);
  },

  "J9: an effect on another resource says who asked for it, and which operation it is of": async (story) => {
    const process = await story.engine({ kinds: { job: { run: takeOne } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.ends(process, "k", id);
    const [entry] = await entriesOf(process, "ledger");
    assert.deepEqual([entry?.actor.subject, entry?.cause], ["ann", `operation ${id} of k`]);
    assert.deepEqual((await read(process, "ledger")).parts, new Map(), "the note is nobody else's business");
    assert.deepEqual((await process.journal.parts("ledger", "")).items, []);
  },

  "effects: operations that are accepted on another resource are told, and run": async (story) => {
    const run = async (operation: Operation) => {
      const { accepted } = await operation.transact("ask", "other", () => ({
        result: null,
        change: { accept: [{ kind: "leaf" }, { kind: "leaf" }] },
      }));
      return accepted.map(({ id }) => id);
    };
    const process = await story.engine({ kinds: { job: { run }, leaf: { run: async () => "leaf" } } });
    const outcome = await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.equal(outcome.kind, "succeeded");
    for (const leaf of (outcome as { readonly result: readonly string[] }).result)
      assert.deepEqual(await story.ends(process, "other", leaf), { kind: "succeeded", result: "leaf" });
  },

  "effects: an operation does not change its own resource so": async (story) => {
    const run = (operation: Operation) => operation.transact("own", operation.key, () => ({ result: null }));
    const process = await story.engine({ kinds: { job: { run } } });
    const outcome = await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.equal(outcome.kind, "failed");
  },

  "J10: notes of effects go when their operations have ended": async (story) => {
    const process = await story.engine({ kinds: { job: { run: takeOne } } });
    const effects = async (prefix: string) => {
      for (const key of numbered(12, prefix))
        await story.ends(process, key, await accept(process, key, { kind: "job" }));
    };
    await effects("early ");
    assert.equal((await notesOn(process, "ledger")).length, 12, "a moment later none goes");
    await story.pass(121_000);
    await effects("late ");
    assert.equal((await read(process, "ledger")).data, 24);
    const left = (await notesOn(process, "ledger")).length;
    assert.ok(left >= 12 && left < 20, `${left} notes are left of 24`);
  },
};

async function takeOne(operation: Operation): Promise<number> {
  const take = (resource: Resource | undefined) => {
    const taken = Number(resource?.data ?? 0) + 1;
    return { result: taken, change: { data: taken } };
  };
  return (await operation.transact("take one", "ledger", take)).result;
}

function notesOn({ store }: Process, key: string): Promise<readonly unknown[]> {
  return store.store.parts(key, { prefix: "osbert.effect/", after: null, limit: 100 });
}

function countUp({ data, parts }: Resource): { readonly data: number } {
  return { data: [...parts.values()].reduce<number>((sum, value) => sum + Number(value), Number(data)) };
}
