import assert from "node:assert/strict";
import type { Operation } from "@osbert/journal";
import { limits } from "@osbert/journal";
import { accept, type EngineTests, entriesOf, gate, leaseMs, storyOf } from "../story.js";

/** J4: steps. */
export const stepsTests: EngineTests = {
  "J4: the work of a step begins after the call that asks for it": async (story) => {
    const order: string[] = [];
    const run = async (operation: Operation) => {
      const asked = operation.step("note", () => order.push("work"));
      order.push("asked");
      await asked;
    };
    const process = await story.engine({ kinds: { job: { run } } });
    await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.deepEqual(order, ["asked", "work"]);
  },

  "J4: a recorded step is never run again, also in another engine, and its successor gets the same idempotency key":
    async (story) => {
      const runs: string[] = [];
      const keys: string[] = [];
      const doors = [gate(), gate()];
      let attempts = 0;
      const run = async (operation: Operation) => {
        const door = doors[attempts++];
        const host = await operation.step("reserve", () => {
          runs.push("reserve");
          return { host: `h${attempts}` };
        });
        await operation.step("create", async ({ idempotencyKey }) => {
          runs.push("create");
          keys.push(idempotencyKey);
          await door?.passed;
        });
        return host;
      };
      const first = await story.engine({ kinds: { job: { run } } });
      const id = await accept(first, "k", { kind: "job" });
      await story.until("the second step runs", () => runs.length === 2);
      await first.journal.kill();
      doors[0]?.open();
      const second = await story.engine({ kinds: { job: { run } } });
      await story.pass(leaseMs + 1_000);
      await story.until("the second step runs again", () => runs.length === 3);
      doors[1]?.open();
      assert.deepEqual(await story.ends(second, "k", id), { kind: "succeeded", result: { host: "h1" } });
      assert.deepEqual(runs, ["reserve", "create", "create"]);
      assert.equal(new Set(keys).size, 1);
      assert.deepEqual(await storyOf(second, "k", id), ["accepted", "step", "step", "settled"]);
    },

  "J4: a later attempt gets the recorded results and goes on behind them": async (story) => {
    const runs: string[] = [];
    const seen: unknown[] = [];
    const run = async (operation: Operation) => {
      seen.push(operation.recorded("one"));
      const one = await operation.step("one", () => runs.push("one"));
      if (operation.attempt === 1) throw new Error("not yet");
      await operation.step("two", () => runs.push("two"));
      return one;
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await story.pass(500);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 1 });
    assert.deepEqual(runs, ["one", "two"]);
    assert.deepEqual(seen, [undefined, 1]);
  },

  "J4: what a step gives is what JSON makes of it, in the first attempt as in later ones": async (story) => {
    const results: unknown[] = [];
    const run = async (operation: Operation) => {
      results.push(
        await operation.step<unknown>("odd", () => ({
          date: new Date(0),
          missing: undefined,
          notANumber: Number.NaN,
          list: [undefined, () => 1],
          text: "\u0000 \ud83d\ude00 \ud800",
          nested: { toJSON: () => "own words" },
        })),
      );
      results.push(await operation.step("nothing", () => undefined));
      if (operation.attempt === 1) throw new Error("again");
      return null;
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await story.pass(500);
    await story.ends(process, "k", id);
    const odd = {
      date: "1970-01-01T00:00:00.000Z",
      notANumber: null,
      list: [null, null],
      text: "\u0000 \ud83d\ude00 \ud800",
      nested: "own words",
    };
    assert.deepEqual(results, [odd, null, odd, null]);
  },

  "J4: every step of every operation of every resource has an idempotency key of its own": async (story) => {
    const keys: string[] = [];
    const note = ({ idempotencyKey }: { readonly idempotencyKey: string }) => keys.push(idempotencyKey);
    const run = async (operation: Operation) => {
      await operation.step("one", note);
      await operation.step("two", note);
    };
    const process = await story.engine({ kinds: { job: { run } } });
    for (const key of ["a", "b"]) {
      for (const _ of [1, 2]) await story.ends(process, key, await accept(process, key, { kind: "job" }));
    }
    assert.equal(keys.length, 8);
    assert.equal(new Set(keys).size, 8);
    for (const key of keys) assert.match(key, /^[0-9a-f]{16,64}$/);
  },

  "J4: two steps of one name are a clear failure": async (story) => {
    const run = async (operation: Operation) => {
      await operation.step("create it", () => 1);
      await operation.step("create it", () => 2);
    };
    const waits = async (operation: Operation) => {
      await operation.step("same", () => 1);
      await operation.sleep("same", 1);
    };
    const process = await story.engine({ kinds: { job: { run }, waits: { run: waits } } });
    for (const [kind, name] of [
      ["job", "create it"],
      ["waits", "same"],
    ] as const) {
      const outcome = await story.ends(process, "k", await accept(process, "k", { kind }));
      assert.ok(outcome.kind === "failed", "it must fail");
      assert.ok(outcome.error.message.includes(JSON.stringify(name)), outcome.error.message);
    }
  },

  "J4: steps side by side are each recorded": async (story) => {
    const run = async (operation: Operation) =>
      Promise.all(["a", "b", "c"].map((name) => operation.step(name, () => name.toUpperCase())));
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: ["A", "B", "C"] });
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "step", "step", "settled"]);
  },

  "J4: a step whose record was committed but not answered is recorded once, and not run again": async (story) => {
    let runs = 0;
    const door = gate();
    const run = async (operation: Operation) => {
      await door.passed;
      return operation.step("one", () => ++runs);
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it runs", () => process.journal.running === 1);
    process.store.fail("commit", "after");
    door.open();
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 1 });
    assert.equal(runs, 1);
    assert.deepEqual(await storyOf(process, "k", id), ["accepted", "step", "settled"]);
  },

  "J4: a step that fails is run again under the same idempotency key, those before it are not": async (story) => {
    const keys: string[] = [];
    let first = 0;
    const run = async (operation: Operation) => {
      await operation.step("first", () => ++first);
      return operation.step("flaky", ({ idempotencyKey, attempt }) => {
        keys.push(idempotencyKey);
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return attempt;
      });
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await story.pass(10_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 3 });
    assert.deepEqual([first, keys.length, new Set(keys).size], [1, 3, 1]);
  },

  "J4: a step that takes longer than it may fails the attempt, which is tried again": async (story) => {
    const run = async (operation: Operation) =>
      operation.step("slow", ({ attempt }) => (attempt === 1 ? new Promise<number>(() => undefined) : attempt), {
        timeoutMs: 1_000,
      });
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.until("it runs", () => process.journal.running === 1);
    await story.pass(1_000);
    await story.pass(1_000);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: 2 });
    const retry = (await entriesOf(process, "k")).find(({ kind }) => kind === "retry");
    assert.match(JSON.stringify(retry?.payload), /slow.*longer than 1000 ms/);
  },

  "J4: a result that cannot be kept fails the operation clearly, and harms nothing else": async (story) => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const odd: Readonly<Record<string, unknown>> = {
      bigint: 1n,
      cyclic,
      function: () => 1,
      symbol: Symbol("s"),
      throwing: {
        toJSON: () => {
          throw new Error("no words");
        },
      },
      large: "x".repeat(limits.jsonBytes),
    };
    const step = async (operation: Operation) => operation.step("odd", () => odd[String(operation.input)]);
    const result = async (operation: Operation) => odd[String(operation.input)];
    const process = await story.engine({
      kinds: { step: { run: step }, result: { run: result }, fine: { run: async () => 1 } },
    });
    for (const input of Object.keys(odd)) {
      for (const kind of ["step", "result"]) {
        const outcome = await story.ends(process, "k", await accept(process, "k", { kind, input }));
        assert.ok(
          outcome.kind === "failed" && outcome.error.class === "unkeepable",
          `${kind} ${input}: ${JSON.stringify(outcome)}`,
        );
        assert.match(outcome.error.message, kind === "step" ? /step "odd"/ : /result of result/);
      }
    }
    assert.deepEqual(await story.ends(process, "k", await accept(process, "k", { kind: "fine" })), {
      kind: "succeeded",
      result: 1,
    });
  },

  "J4: a large result that may be kept is kept whole": async (story) => {
    const text = "ü".repeat(400_000);
    const run = async (operation: Operation) => {
      await operation.step("large", () => text);
      if (operation.attempt === 1) throw new Error("again");
      return operation.recorded("large") === text;
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    await story.rests(process, "k", id);
    await story.pass(500);
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: true });
  },
};
