import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Around, JournalEvent, Operation } from "@osbert/journal";
import { RetryLater } from "@osbert/journal";
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
    const facts = {
      key: "k",
      operation: id,
      operationKind: "job",
      part: null,
      requestId: "request-of-ann",
      labels: {},
    };
    assert.deepEqual(accepted, { kind: "accepted", ...facts, lane: "database" });
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

  "observe: what is told of an operation names its part, its request and the labels of its resource, also of one that loses them":
    async (story) => {
      const settle = () => ({ labels: {} });
      const run = async (operation: Operation) => operation.step("one", () => 1);
      const process = await story.engine({ kinds: { job: { run, settle } } });
      await change(process, "k", { labels: { plan: "small" } });
      const id = await accept(process, "k", { kind: "job", part: "p" }, bob);
      await story.ends(process, "k", id);
      const told = process.events.filter((event) => "operation" in event);
      assert.deepEqual(
        told.map(({ kind }) => kind),
        ["accepted", "attempt started", "step finished", "settled"],
      );
      for (const event of told) {
        assert.ok("part" in event);
        const { operationKind, part, requestId, labels } = event;
        assert.deepEqual([operationKind, part, requestId, labels], ["job", "p", bob.requestId, { plan: "small" }]);
      }
    },

  "around: attempts and steps run inside it, under the trace of the request, also in another process": async (
    story,
  ) => {
    const context = new AsyncLocalStorage<string>();
    const told: string[] = [];
    const around: Around = {
      attempt: ({ attempt, trace, operationKind }) => ({
        run: (work) => context.run(`${operationKind} ${attempt} of ${trace}`, work),
        step: (name) => ({
          run: (work) => context.run(`${context.getStore()} / ${name}`, work),
          end: (error) => void told.push(`${name} ${error === undefined ? "ended" : (error as Error).message}`),
        }),
        end: (how, error) => void told.push(`${how}${error === undefined ? "" : `: ${(error as Error).message}`}`),
      }),
    };
    const inside: unknown[] = [];
    const run = async (operation: Operation) => {
      await operation.step("one", async () => {
        await Promise.resolve();
        inside.push(context.getStore());
      });
      inside.push(context.getStore());
      if (operation.attempt === 1) throw new RetryLater("not yet", { afterMs: 1_000 });
      if (operation.attempt === 2)
        await operation.step("two", () => {
          throw new Error("no");
        });
    };
    const first = await story.engine({ kinds: { job: { run } }, around });
    const id = await accept(first, "k", { kind: "job" }, { ...bob, trace: "t" });
    await story.until("the first attempt is over", () => told.length === 2);
    await first.journal.stop();
    const second = await story.engine({ kinds: { job: { run } }, around });
    await story.ends(second, "k", id);
    assert.deepEqual(inside, ["job 1 of t / one", "job 1 of t", "job 2 of t", "job 3 of t"]);
    assert.deepEqual(told, ["one ended", "threw: not yet", "two no", "threw: no", "returned"]);
  },

  "around: one that throws, or runs nothing, harms nothing": async (story) => {
    const fails = (): never => {
      throw new Error("the tracer is broken");
    };
    const broken: readonly Around[] = [
      { attempt: fails },
      { attempt: () => ({ run: fails, step: fails, end: fails }) },
      { attempt: () => ({ run: () => undefined as never, step: () => ({ run: fails, end: fails }), end: fails }) },
      {
        attempt: () => ({
          run: (work) => [work(), work()][0] as ReturnType<typeof work>,
          step: () => ({
            run: (work) => {
              work();
              return fails();
            },
            end: fails,
          }),
          end: fails,
        }),
      },
    ];
    for (const [index, around] of broken.entries()) {
      let ran = 0;
      const run = (operation: Operation) => operation.step("one", () => ++ran);
      const process = await story.engine({ kinds: { job: { run } }, around });
      const id = await accept(process, `k${index}`, { kind: "job" });
      assert.deepEqual(await story.ends(process, `k${index}`, id), { kind: "succeeded", result: 1 });
      await process.journal.stop();
    }
  },

  "backlog: what is open is counted by lane, with its oldest operation and what fails again and again": async (
    story,
  ) => {
    const run = async () => {
      throw new Error("down");
    };
    const process = await story.engine({ kinds: { job: { run, lane: (input) => String(input) } } });
    const bounds = { failures: 3 };
    assert.deepEqual((await process.journal.backlog(bounds)).lanes, []);
    await accept(process, "a", { kind: "job", input: "x" });
    const oldest = story.now;
    await story.pass(5);
    await accept(process, "b", { kind: "job", input: "x", delayMs: 3_600_000 });
    await accept(process, "c", { kind: "job", input: "y", delayMs: 3_600_000 });
    const failed = () => process.events.filter(({ kind }) => kind === "retrying").length;
    await story.until("it has failed three times", () => failed() === 3);
    const [x, y] = (await process.journal.backlog(bounds)).lanes;
    assert.deepEqual([x?.lane, x?.open, x?.failing, x?.complete], ["x", 2, 1, true]);
    assert.ok(x?.oldestAcceptedAt != null && Math.abs(x.oldestAcceptedAt - oldest) <= 5);
    assert.deepEqual([y?.lane, y?.open, y?.due, y?.failing], ["y", 1, 0, 0]);
    assert.equal((await process.journal.backlog({ sample: 1 })).lanes[0]?.complete, false);
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
