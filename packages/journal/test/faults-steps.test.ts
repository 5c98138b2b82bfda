import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import type { Operation } from "../src/engine/operation-kind.js";
import { Permanent, RetryLater } from "../src/errors.js";
import type { JournalEvent } from "../src/observe.js";
import { memoryStore } from "../src/stores/memory.js";
import { manualClock } from "../src/testing/index.js";
import {
  accept,
  by,
  kindsOf,
  Latch,
  outcomeWithin,
  settle,
  startInMemory,
  startJournal,
  until,
} from "./faults-fixture.js";

const forever = () => new Promise<never>(() => undefined);

describe("a step that never returns", () => {
  test("ends with its operation's deadline, after its grace, frees its lane, and the others were never held up", async () => {
    const bench = await startInMemory({
      kinds: {
        hang: { run: (operation) => operation.step("s", forever), deadlineMs: 60_000 },
        work: { run: async () => "done" },
      },
      concurrency: 4,
      laneConcurrency: 2,
      graceMs: 5_000,
    });
    const { journal, clock, events } = bench;
    const hanging = await Promise.all(["h1", "h2", "h3"].map((key) => accept(journal, key, { kind: "hang" })));
    const other = await accept(journal, "other", { kind: "work" });
    expect(await outcomeWithin(bench, "other", other, 1_000)).toMatchObject({ kind: "succeeded" });
    await clock.advance(60_000);
    expect((await journal.operation("h1", hanging[0] ?? ""))?.status).toBe("open");
    for (const [n, id] of hanging.entries()) {
      const outcome = await outcomeWithin(bench, `h${n + 1}`, id, 70_000);
      expect(outcome).toMatchObject({ kind: "failed", error: { class: "deadline" } });
    }
    expect(kindsOf(events, "abandoned")).toHaveLength(2);
    expect(journal.running).toBe(0);
    const next = await accept(journal, "h1", { kind: "work" });
    expect(await outcomeWithin(bench, "h1", next, 1_000)).toMatchObject({ kind: "succeeded" });
  });

  test("with a time of its own fails the attempt, and is tried again", async () => {
    let attempts = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) => operation.step("s", () => (++attempts === 1 ? forever() : "done"), { timeoutMs: 3_000 }),
        },
      },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    expect(await outcomeWithin(bench, "r1", id, 10_000)).toEqual({ kind: "succeeded", result: "done" });
    expect(attempts).toBe(2);
  });

  test("and is cancelled is given up after its grace; what it does later does not count", async () => {
    let finish: (value: string) => void = () => undefined;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) =>
            operation.step("s", () => {
              return new Promise<string>((resolve) => {
                finish = resolve;
              });
            }),
        },
      },
      graceMs: 5_000,
    });
    const { journal, clock } = bench;
    const id = await accept(journal, "r1", { kind: "work" });
    await settle();
    expect(await journal.cancel("r1", id, "not wanted", by)).toBe(true);
    await clock.advance(4_000);
    expect((await journal.operation("r1", id))?.status).toBe("open");
    expect(await outcomeWithin(bench, "r1", id, 5_000)).toEqual({ kind: "cancelled", reason: "not wanted" });
    finish("too late");
    await settle();
    expect((await journal.entries("r1")).filter(({ kind }) => kind === "step")).toEqual([]);
    expect(journal.running).toBe(0);
  });

  test("in a lane of its own leaves the places of the other lanes", async () => {
    const bench = await startInMemory({
      kinds: {
        work: {
          lane: (input) => String(input),
          run: (operation) => (operation.input === "hangs" ? operation.step("s", forever) : Promise.resolve("done")),
        },
      },
      concurrency: 10,
      laneConcurrency: 3,
    });
    const { journal } = bench;
    for (let n = 0; n < 20; n++) await accept(journal, `hangs ${n}`, { kind: "work", input: "hangs" });
    expect(journal.running).toBe(3);
    for (let n = 0; n < 50; n++) {
      const id = await accept(journal, `works ${n}`, { kind: "work", input: "works" });
      expect(await outcomeWithin(bench, `works ${n}`, id, 1_000)).toMatchObject({ kind: "succeeded" });
    }
    await settle();
    expect(journal.running).toBe(3);
  });
});

describe("a shared operation beside one that takes long", () => {
  test("goes on when its wait is over", async () => {
    const bench = await startInMemory({
      kinds: {
        slow: { mode: "shared", run: (operation) => operation.step("s", forever) },
        naps: { mode: "shared", run: async (operation) => operation.sleep("nap", 10_000).then(() => "rested") },
      },
    });
    await accept(bench.journal, "r1", { kind: "slow" });
    const id = await accept(bench.journal, "r1", { kind: "naps" });
    expect(await outcomeWithin(bench, "r1", id, 15_000)).toEqual({ kind: "succeeded", result: "rested" });
  });

  test("is tried again when its back-off is over", async () => {
    let attempts = 0;
    const bench = await startInMemory({
      kinds: {
        slow: { mode: "shared", run: (operation) => operation.step("s", forever) },
        fails: {
          mode: "shared",
          run: async () => {
            if (++attempts === 1) throw new RetryLater("not yet", { afterMs: 1_000 });
          },
        },
      },
    });
    await accept(bench.journal, "r1", { kind: "slow" });
    const id = await accept(bench.journal, "r1", { kind: "fails" });
    expect(await outcomeWithin(bench, "r1", id, 5_000)).toMatchObject({ kind: "succeeded" });
  });

  test("one that waits behind an exclusive one ends with its deadline, not when the other one ends", async () => {
    const bench = await startInMemory({
      kinds: { slow: { run: (operation) => operation.step("s", forever) }, work: { run: async () => "done" } },
    });
    await accept(bench.journal, "r1", { kind: "slow" });
    const id = await accept(bench.journal, "r1", { kind: "work", deadlineMs: 10_000 });
    const outcome = await outcomeWithin(bench, "r1", id, 15_000);
    expect(outcome).toMatchObject({ kind: "failed", error: { class: "deadline" } });
  });
});

describe("a held operation that is released while another runs", () => {
  test.each(["exclusive", "shared"] as const)("does not run beside it (%s)", async (mode) => {
    const running = new Set<string>();
    let together = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) => {
            running.add(operation.id);
            together = Math.max(together, running.size);
            return operation.step("s", forever);
          },
        },
      },
    });
    const { journal } = bench;
    const held = await accept(journal, "r1", { kind: "work", held: true });
    await accept(journal, "r1", { kind: "work", mode });
    await settle();
    await journal.transact("r1", () => ({ result: null, change: { release: [held] } }), { by });
    await settle();
    expect(together).toBe(1);
  });
});

describe("a step that throws something that is not an Error", () => {
  const hostile = {
    get message(): string {
      throw new Error("not even that");
    },
    toString(): string {
      throw new Error("nor that");
    },
    toJSON(): string {
      throw new Error("nor that");
    },
  };
  const evil = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
      getPrototypeOf() {
        throw new Error("no");
      },
    },
  );
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const thrown: readonly (readonly [string, unknown])[] = [
    ["undefined", undefined],
    ["null", null],
    ["a text", "just words"],
    ["a number", 42],
    ["a BigInt", 10n],
    ["a symbol", Symbol("s")],
    ["a function", () => undefined],
    ["a frozen object", Object.freeze({ why: "frozen" })],
    ["an object without prototype", Object.create(null)],
    ["a cyclic object", cyclic],
    ["an object whose every reading throws", hostile],
    ["a proxy whose every trap throws", evil],
    ["an error whose message is a BigInt", Object.assign(new Error("x"), { message: 1n })],
    ["an error whose message is a symbol", Object.assign(new Error("x"), { message: Symbol("m") })],
    ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get: () => hostile.message })],
    ["a frozen error", Object.freeze(new Error("frozen"))],
    ["an error with 5 MB of message", new Error("x".repeat(5_000_000))],
    ["a RetryLater after NaN", new RetryLater("nan", { afterMs: Number.NaN })],
    ["a RetryLater after minus one", new RetryLater("minus", { afterMs: -1 })],
  ];

  test.each(thrown)("%s: the attempt has failed, and is tried again later", async (_, what) => {
    let attempts = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) =>
            operation.step("s", () => {
              attempts++;
              if (attempts > 50) return forever();
              if (attempts < 3) throw what;
              return "done";
            }),
        },
        other: { run: async () => "unharmed" },
      },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    const other = await accept(bench.journal, "r2", { kind: "other" });
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toEqual({ kind: "succeeded", result: "done" });
    expect(await outcomeWithin(bench, "r2", other, 1_000)).toEqual({ kind: "succeeded", result: "unharmed" });
    expect(attempts).toBe(3);
    const entries = await bench.journal.entries("r1");
    const tries = entries.filter(({ kind }) => kind === "retry" || kind === "waiting");
    const said = tries.map(({ payload }) => payload as { readonly error?: unknown; readonly reason?: unknown });
    expect(said.map(({ error, reason }) => error ?? reason)).toEqual([expect.any(String), expect.any(String)]);
  });

  test("it stands in the outcome as a sentence", async () => {
    const bench = await startInMemory({
      kinds: { work: { maxAttempts: 1, run: async () => Promise.reject(undefined as unknown as Error) } },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    const outcome = await outcomeWithin(bench, "r1", id, 1_000);
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { class: "exhausted", message: expect.stringContaining("undefined") },
    });
  });

  test("details of a Permanent that cannot be kept are left out; the failure is kept", async () => {
    for (const details of [10n, cyclic, "x".repeat(100_000), hostile, Symbol("s")]) {
      const bench = await startInMemory({
        kinds: { work: { run: async () => Promise.reject(new Permanent("no", { details })) } },
      });
      const id = await accept(bench.journal, "r1", { kind: "work" });
      expect(await outcomeWithin(bench, "r1", id, 1_000)).toEqual({
        kind: "failed",
        error: { message: "no", class: "permanent" },
      });
    }
  });
});

describe("a result that cannot be kept", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const results: readonly (readonly [string, () => unknown, string])[] = [
    ["a BigInt", () => 10n, "BigInt"],
    ["a cycle", () => cyclic, "circular"],
    ["a function", () => () => undefined, "function"],
    ["a symbol", () => Symbol("s"), "symbol"],
    ["2 MiB", () => "x".repeat(2 * 1_048_576), "at most"],
    [
      "what throws when it is written",
      () => ({
        toJSON: () => {
          throw new Error("no");
        },
      }),
      "no",
    ],
  ];

  test.each(results)(
    "of a step (%s): the operation fails at once with a sentence that says why",
    async (_, make, words) => {
      let ran = 0;
      const bench = await startInMemory({
        kinds: {
          work: {
            run: (operation) =>
              operation.step("s", () => {
                ran++;
                return make();
              }),
          },
        },
      });
      const id = await accept(bench.journal, "r1", { kind: "work" });
      const outcome = await outcomeWithin(bench, "r1", id, 1_000);
      expect(outcome).toMatchObject({
        kind: "failed",
        error: { class: "unkeepable", message: expect.stringContaining(words) },
      });
      expect(outcome).toMatchObject({ error: { message: expect.stringContaining('step "s"') } });
      expect(ran).toBe(1);
    },
  );

  test.each(results)("of an operation (%s): likewise", async (_, make, words) => {
    const bench = await startInMemory({ kinds: { work: { run: async () => make() } } });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    const outcome = await outcomeWithin(bench, "r1", id, 1_000);
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { class: "unkeepable", message: expect.stringContaining(words) },
    });
  });

  test("10,000 levels deep: it is kept, or refused with a sentence; the journal goes on either way", async () => {
    const bench = await startInMemory({
      kinds: {
        work: { run: (operation) => operation.step("s", () => nested(10_000)) },
        other: { run: async () => "unharmed" },
      },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    const outcome = await outcomeWithin(bench, "r1", id, 1_000);
    if (outcome.kind === "failed") expect(outcome.error.class).toBe("unkeepable");
    else expect(JSON.stringify(outcome)).toContain("[[[[");
    const other = await accept(bench.journal, "r1", { kind: "other" });
    expect(await outcomeWithin(bench, "r1", other, 1_000)).toMatchObject({ kind: "succeeded" });
  });
});

test("sleeping for ever, or for no number at all, does not end at once", async () => {
  for (const ms of [Number.POSITIVE_INFINITY, Number.MAX_VALUE, Number.NaN, -1]) {
    let ended = false;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: async (operation) => {
            await operation.sleep("nap", ms);
            ended = true;
          },
        },
      },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    await bench.clock.advance(60_000);
    expect(ended, `sleep(${ms}) returned`).toBe(false);
    const status = await bench.journal.operation("r1", id);
    expect(status?.status === "failed" || (status?.open?.readyAt ?? 0) > bench.clock.wallMs(), `sleep(${ms})`).toBe(
      true,
    );
  }
});

test("a step that was not awaited and fails does not end the process", async () => {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const file = fileURLToPath(new URL("./faults-child.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", tsx, file], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text: Buffer) => {
    out += text.toString();
  });
  child.stderr.on("data", (text: Buffer) => {
    err += text.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  expect({ code, err: err.split("\n").find((line) => /Error|Interrupted/.test(line)) ?? "" }).toEqual({
    code: 0,
    err: "",
  });
  expect(out).toContain("still here");
});

describe("an observer that throws", () => {
  test("harms nobody: operations are accepted, run, retried and end, and no place is lost", async () => {
    let attempts = 0;
    let thrown = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: async (operation) => {
            await operation.step("s", () => "ok");
            if (++attempts < 3) throw new Error("again");
            return "done";
          },
        },
      },
      observe: () => {
        if (++thrown <= 100) throw new Error("the observer is broken");
      },
    });
    const { journal } = bench;
    const id = await accept(journal, "r1", { kind: "work" });
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toEqual({ kind: "succeeded", result: "done" });
    expect(attempts).toBe(3);
    const second = await accept(journal, "r2", { kind: "work" });
    expect(await outcomeWithin(bench, "r2", second, 60_000)).toMatchObject({ kind: "succeeded" });
    expect(journal.running).toBe(0);
  });

  test.each([
    "accepted",
    "attempt started",
    "step finished",
    "settled",
    "cancel requested",
    "abandoned",
    "retrying",
    "waiting",
    "lease lost",
    "store failed",
    "store answered again",
  ] satisfies JournalEvent["kind"][])("at %s alone harms nobody", async (kind) => {
    let attempts = 0;
    let thrown = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: async (operation) => {
            await operation.step("s", () => "ok");
            await operation.sleep("nap", 1_000);
            if (++attempts === 1) throw new Error("again");
            return "done";
          },
        },
        hang: { run: (operation) => operation.step("s", forever) },
      },
      graceMs: 1_000,
      // Not for ever, or an engine that tries again at once would never let this test fail.
      observe: (event) => {
        if (event.kind === kind && ++thrown <= 100) throw new Error("the observer is broken");
      },
    });
    const { journal, store, clock } = bench;
    const hanging = await accept(journal, "r2", { kind: "hang" });
    const id = await accept(journal, "r1", { kind: "work" });
    await settle();
    await journal.cancel("r2", hanging, "enough", by);
    store.next("commit", "refused");
    store.next("claim", "refused");
    await clock.advance(2_000);
    expect(await outcomeWithin(bench, "r1", id, 120_000)).toEqual({ kind: "succeeded", result: "done" });
    expect(await outcomeWithin(bench, "r2", hanging, 120_000)).toMatchObject({ kind: "cancelled" });
    expect(journal.running).toBe(0);
    expect(thrown).toBeLessThan(20);
  });
});

test("an operation that changes its own resource from within a step does not wait for itself", async () => {
  const bench = await startInMemory({
    kinds: {
      work: {
        run: (operation: Operation) =>
          operation.step("s", async () => {
            await bench.journal.transact(
              operation.key,
              () => ({ result: null, change: { data: { from: "within" } } }),
              { by },
            );
            const { accepted } = await bench.journal.transact(
              operation.key,
              () => ({ result: null, change: { accept: [{ kind: "other" }] } }),
              { by },
            );
            return accepted[0]?.id ?? "";
          }),
      },
      other: { run: async () => "after" },
    },
  });
  const id = await accept(bench.journal, "r1", { kind: "work" });
  const outcome = await outcomeWithin(bench, "r1", id, 1_000);
  expect(outcome.kind).toBe("succeeded");
  const second = outcome.kind === "succeeded" ? String(outcome.result) : "";
  expect(await outcomeWithin(bench, "r1", second, 1_000)).toEqual({ kind: "succeeded", result: "after" });
  expect((await bench.journal.read("r1"))?.data).toEqual({ from: "within" });
});

describe("many resources that are due at once", () => {
  test.each([
    ["with room for ten", 3_000, 10, 10],
    ["with room for ten of their lane, and for others", 1_000, 40, 10],
  ])("all run, %s", async (_, count, concurrency, laneConcurrency) => {
    const clock = manualClock();
    const store = memoryStore({ clock: clock.wallMs });
    let [now, most, ran] = [0, 0, 0];
    const { journal } = await startJournal({
      store,
      clock,
      kinds: {
        work: {
          run: (operation) =>
            operation.step("s", async () => {
              ran++;
              most = Math.max(most, ++now);
              await oneTurn();
              now--;
            }),
        },
      },
      concurrency,
      laneConcurrency,
    });
    const all = Array.from({ length: count }, (_, n) => accept(journal, `r${n}`, { kind: "work", delayMs: 60_000 }));
    await Promise.all(all);
    expect(ran).toBe(0);
    await clock.advance(60_000);
    await until("all have run", () => ran === count && journal.running === 0, 50_000).catch(() => undefined);
    expect(ran).toBe(count);
    expect(most).toBe(10);
  });
});

test("what is due behind a full lane runs as its places become free, also if several do while the store is asked", async () => {
  const latches = new Map<string, Latch>();
  const ran: string[] = [];
  const bench = await startInMemory({
    kinds: {
      work: {
        run: async (operation) => {
          ran.push(operation.key);
          const latch = new Latch();
          latches.set(operation.key, latch);
          await latch.opened;
        },
      },
    },
    concurrency: 8,
    laneConcurrency: 2,
  });
  const { journal, store, clock } = bench;
  for (let n = 0; n < 6; n++) await accept(journal, `r${n}`, { kind: "work", delayMs: 1_000 });
  await clock.advance(1_000);
  expect(ran).toHaveLength(2);
  // The first to end leads to a look; the second ends while the store has not answered it yet.
  store.next("claim", "answer hangs");
  latches.get(ran[0] ?? "")?.open();
  await settle();
  latches.get(ran[1] ?? "")?.open();
  await settle();
  store.comeBack();
  for (let rounds = 0; rounds < 6; rounds++) {
    await settle();
    for (const latch of latches.values()) latch.open();
  }
  await clock.advance(60_000);
  expect(ran).toHaveLength(6);
});

function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}
