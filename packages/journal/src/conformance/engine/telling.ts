import assert from "node:assert/strict";
import type { Operation } from "../../engine/attempt.js";
import { RetryLater } from "../../errors.js";
import type { JournalEvent } from "../../observe.js";
import { accept, bob, change, type EngineTests } from "../story.js";

/** The one `observe` seam. */
export const tellingTests: EngineTests = {
  "observe: the story of an operation, in its order": async (story) => {
    const run = async (operation: Operation) => {
      await operation.step("one", () => 1);
      if (operation.attempt === 1) throw new Error("flaky");
      if (operation.attempt === 2) throw new RetryLater("not yet", { afterMs: 1_000 });
      await operation.sleep("a second", 1_000);
      return 7;
    };
    const process = await story.engine({ kinds: { job: { run, lane: "database" } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.pass(10_000);
    await story.ends(process, "k", id);
    const told = process.events.filter((event) => "operation" in event && event.operation === id);
    assert.deepEqual(
      told.map(({ kind }) => kind),
      [
        "accepted",
        "attempt started",
        "step finished",
        "retrying",
        "attempt started",
        "waiting",
        "attempt started",
        "waiting",
        "attempt started",
        "settled",
      ],
    );
    const [accepted, , step, retrying] = told;
    assert.deepEqual(accepted, { kind: "accepted", key: "k", operation: id, operationKind: "job", lane: "database" });
    assert.ok(step?.kind === "step finished" && step.step === "one" && step.tookMs >= 0);
    assert.ok(retrying?.kind === "retrying" && retrying.attempt === 1 && (retrying.error as Error).message === "flaky");
    const attempts = told.flatMap((event) => (event.kind === "attempt started" ? [event.attempt] : []));
    assert.deepEqual(attempts, [1, 2, 3, 4]);
    const settled = told.at(-1);
    assert.ok(settled?.kind === "settled" && settled.outcome === "succeeded" && settled.tookMs >= 2_500);
  },

  "observe: cancels, and each end once": async (story) => {
    const process = await story.engine({ kinds: { job: { run: async () => 1 } } });
    const id = await accept(process, "k", { kind: "job", delayMs: 60_000 });
    await process.journal.cancel("k", id, "no", bob);
    await story.quiet();
    const kinds = process.events.map(({ kind }) => kind);
    assert.deepEqual(kinds, ["accepted", "cancel requested", "settled"]);
  },

  "observe: nothing that is told carries inputs or results": async (story) => {
    const secret = "s3cr3t";
    const run = async (operation: Operation) => {
      operation.describe("working");
      return operation.step("one", () => secret);
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await change(process, "k", { data: secret, parts: { p: secret } });
    await story.ends(process, "k", await accept(process, "k", { kind: "job", input: secret }));
    assert.ok(!JSON.stringify(process.events).includes(secret));
  },

  "observe: a store that does not answer is told once, and so is that it answers again": async (story) => {
    const process = await story.process({ kinds: {} });
    process.store.fail("commit", "before", 3);
    let done = false;
    void change(process, "k", { data: 1 }).then(() => {
      done = true;
    });
    await story.until("the change is made", () => done);
    const told = (kind: JournalEvent["kind"]) => process.events.filter((event) => event.kind === kind).length;
    assert.deepEqual([told("store failed"), told("store answered again")], [1, 1]);
  },

  "observe: an observer that throws harms nothing": async (story) => {
    const observe = () => {
      throw new Error("the log is full");
    };
    const process = await story.engine({ kinds: { job: { run: async () => 1 } }, observe });
    let id = "";
    void accept(process, "k", { kind: "job" }).then(
      (accepted) => {
        id = accepted;
      },
      () => undefined,
    );
    await story.until("it is accepted", () => id !== "");
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 1 });
  },
};
