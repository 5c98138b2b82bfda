import type { Operation } from "@osbert/journal";
import { limits } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, test } from "vitest";
import type { EngineUnderTest } from "../src/conformance/index.js";
import { accept, entriesOf, Story } from "../src/conformance/story.js";

const memory: EngineUnderTest = {
  name: "memory",
  async open(clock) {
    const store = memoryStore({ clock });
    return { store, another: async () => store, dispose: async () => {} };
  },
};

/** Bounds that take many attempts to reach: on memory only. */
test("an operation that waits more often than it may fails clearly, and is not run over and over", async () => {
  await Story.tell(memory, async (story) => {
    let attempts = 0;
    const run = async (operation: Operation) => {
      // An engine that never stops trying would starve this test as well: it hangs instead.
      if (++attempts > limits.stepsOfAnOperation + 50) await new Promise(() => undefined);
      for (let wait = 0; ; wait++) await operation.sleep(`wait ${wait}`, 1);
    };
    const process = await story.engine({ kinds: { poll: { run } } });
    const id = await accept(process, "k", { kind: "poll" });
    for (let round = 0; round < 15; round++) await story.pass(100);
    const outcome = await story.ends(process, "k", id);
    expect(outcome).toMatchObject({ kind: "failed", error: { class: "unkeepable" } });
    expect(attempts).toBe(limits.stepsOfAnOperation + 1);
  });
});

test("an operation with more steps than it may have fails clearly", async () => {
  await Story.tell(memory, async (story) => {
    const run = async (operation: Operation) => {
      for (let step = 0; ; step++) await operation.step(`step ${step}`, () => step);
    };
    const process = await story.engine({ kinds: { job: { run } } });
    const id = await accept(process, "k", { kind: "job" });
    const outcome = await story.ends(process, "k", id);
    expect(outcome).toMatchObject({ kind: "failed", error: { class: "unkeepable" } });
    expect((await entriesOf(process, "k")).filter(({ kind }) => kind === "step")).toHaveLength(
      limits.stepsOfAnOperation,
    );
  });
});

test("a step that is not awaited fails the operation with a sentence, and takes nothing down", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
  try {
    await Story.tell(memory, async (story) => {
      let finish = (): void => undefined;
      const late = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const run = async (operation: Operation) => {
        void operation.step("forgotten", () => late);
        await operation.step("awaited", () => 1);
        return "done";
      };
      const engine = await story.engine({ kinds: { job: { run } } });
      const id = await accept(engine, "k", { kind: "job" });
      expect(await story.ends(engine, "k", id)).toEqual({ kind: "failed", error: notAwaited("forgotten") });
      finish();
      await story.pass(100);
      expect((await entriesOf(engine, "k")).map(({ kind }) => kind)).toEqual(["accepted", "step", "settled"]);
    });
  } finally {
    process.removeListener("unhandledRejection", note);
    for (const listener of listeners) process.on("unhandledRejection", listener);
  }
  expect(unhandled).toEqual([]);
});

test.each<[forgotten: string, run: (operation: Operation) => Promise<unknown>]>([
  [
    "has ended well meanwhile",
    async (operation) => {
      void operation.step("forgotten", () => 1);
      await operation.step("awaited", () => 2);
      await operation.step("awaited, too", () => 3);
    },
  ],
  [
    "has failed meanwhile",
    async (operation) => {
      void operation.step("forgotten", () => {
        throw new Error("nobody hears this");
      });
      await operation.step("awaited", () => 2);
    },
  ],
  [
    "is the last one",
    async (operation) => {
      void operation.step("forgotten", () => 1);
    },
  ],
])("a step that is not awaited fails the operation also if it %s", async (_, run) => {
  await Story.tell(memory, async (story) => {
    const engine = await story.engine({ kinds: { job: { run } } });
    const id = await accept(engine, "k", { kind: "job" });
    expect(await story.ends(engine, "k", id)).toEqual({ kind: "failed", error: notAwaited("forgotten") });
  });
});

test.each<[way: string, run: (operation: Operation) => Promise<unknown>]>([
  [
    "later",
    async (operation) => {
      const one = operation.step("one", () => 1);
      const two = await operation.step("two", () => 2);
      return [await one, two];
    },
  ],
  ["all at once", (operation) => Promise.all([operation.step("one", () => 1), operation.step("two", () => 2)])],
  [
    "with its failure",
    async (operation) => {
      const failing = () => {
        throw new Error("is dealt with");
      };
      const [one] = await Promise.allSettled([operation.step("one", () => 1), operation.step("two", failing)]);
      return [one.status === "fulfilled" ? one.value : 0, 2];
    },
  ],
  [
    "by whoever called the function",
    (operation) => operation.step("one", () => 1).then((one) => operation.step("two", () => [one, 2])),
  ],
])("a step that is awaited %s is awaited", async (_, run) => {
  await Story.tell(memory, async (story) => {
    const engine = await story.engine({ kinds: { job: { run } } });
    const id = await accept(engine, "k", { kind: "job" });
    expect(await story.ends(engine, "k", id)).toEqual({ kind: "succeeded", result: [1, 2] });
  });
});

function notAwaited(step: string) {
  return { class: "permanent", message: `step "${step}" was not awaited: write await operation.step(…)` };
}
