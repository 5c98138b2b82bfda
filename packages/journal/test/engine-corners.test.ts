import { expect, test, vi } from "vitest";
import { JournalError, type JournalOptions, openJournal } from "../src/index.js";
import { memoryStore } from "../src/stores/memory.js";
import { interposedStore } from "../src/testing/interposed-store.js";
import { manualClock } from "../src/testing/manual-clock.js";

const by = { actor: { type: "user", subject: "anna" } } as const;

/** On a memory store, with the real clock: nobody polls, so whatever is due must lead to a look by itself. */
async function started(options: Omit<JournalOptions, "store">) {
  const journal = await openJournal({ store: memoryStore(), ...options });
  await journal.start();
  return journal;
}

test("cancelling more operations than the record holds does not strand those behind them", async () => {
  const journal = await openJournal({ store: memoryStore(), kinds: { job: { run: async () => "done" } } });
  const asked = Array.from({ length: 200 }, () => ({ kind: "job" }));
  const { accepted } = await journal.transact("k", () => ({ result: null, change: { accept: asked } }), { by });
  const cancel = accepted.slice(0, 128).map(({ id }) => ({ operation: id, reason: "not wanted" }));
  await journal.transact("k", () => ({ result: null, change: { cancel } }), { by });
  await journal.start();
  const last = accepted.at(-1)?.id ?? "";
  expect(await journal.ended("k", last, { withinMs: 10_000 })).toEqual({ kind: "succeeded", result: "done" });
  await journal.stop();
});

test("a shared operation that waits for a place beside a running one is ended by its deadline", async () => {
  const hang = { mode: "shared", run: () => new Promise<never>(() => undefined) } as const;
  const journal = await started({ kinds: { hang }, concurrency: 4, laneConcurrency: 1, graceMs: 10 });
  const accept = [{ kind: "hang" }, { kind: "hang", deadlineMs: 50 }];
  const { accepted } = await journal.transact("k", () => ({ result: null, change: { accept } }), { by });
  const outcome = await journal.ended("k", accepted[1]?.id ?? "", { withinMs: 10_000 });
  expect(outcome).toMatchObject({ kind: "failed", error: { class: "deadline" } });
  await journal.stop({ drainMs: 0 });
});

test("a resource with work for a full lane and later work for a free one is not claimed over and over", async () => {
  const hang = { run: () => new Promise<never>(() => undefined) };
  const quick = { mode: "shared", run: async () => "done" } as const;
  const store = memoryStore();
  let claims = 0;
  const counted = new Proxy(store, {
    get(target, name) {
      if (name === "claim") claims++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const journal = await openJournal({
    store: counted,
    kinds: { hang, quick },
    concurrency: 4,
    laneConcurrency: 1,
    graceMs: 10,
  });
  await journal.start();
  await journal.transact("other", () => ({ result: null, change: { accept: [{ kind: "hang", lane: "full" }] } }), {
    by,
  });
  const accept = [
    { kind: "quick", lane: "free", delayMs: 60_000 },
    { kind: "quick", lane: "full" },
  ];
  await journal.transact("k", () => ({ result: null, change: { accept } }), { by });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(claims).toBeLessThan(10);
  await journal.stop({ drainMs: 0 });
});

test("a reason that is too long is refused, and the operation can still be cancelled", async () => {
  const journal = await started({ kinds: { job: { run: async () => 1 } } });
  const accept = [{ kind: "job", delayMs: 60_000 }];
  const { accepted } = await journal.transact("k", () => ({ result: null, change: { accept } }), { by });
  const id = accepted[0]?.id ?? "";
  await expect(journal.cancel("k", id, "x".repeat(1_048_000), by)).rejects.toThrow(JournalError);
  expect(await journal.cancel("k", id, "enough", by)).toBe(true);
  const outcome = { kind: "cancelled", reason: "enough" };
  const [settled] = (await journal.entries("k")).filter(({ kind }) => kind === "settled");
  expect(await journal.operation("k", id)).toMatchObject({ outcome, endedAt: settled?.at });
  await journal.stop();
});

test("a function that asks for its signal only after it was told to stop sees that it was", async () => {
  let goOn = () => {};
  let began = () => {};
  const cancelled = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const running = new Promise<void>((resolve) => {
    began = resolve;
  });
  let reason: unknown;
  const journal = await started({
    kinds: {
      job: {
        async run(operation) {
          began();
          await cancelled;
          reason = operation.signal.reason;
          expect(operation.signal).toBe(operation.signal);
          operation.signal.throwIfAborted();
        },
      },
    },
  });
  const accept = [{ kind: "job" }];
  const { accepted } = await journal.transact("k", () => ({ result: null, change: { accept } }), { by });
  const id = accepted[0]?.id ?? "";
  await running;
  await journal.cancel("k", id, "enough", by);
  goOn();
  expect(await journal.ended("k", id, { withinMs: 10_000 })).toEqual({ kind: "cancelled", reason: "enough" });
  expect(reason).toMatchObject({ name: "Interrupted", why: "cancelled" });
  await journal.stop();
});

test("stopping twice at once lets what runs end", async () => {
  let finish = (_: string): void => undefined;
  const running = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const store = memoryStore();
  const journal = await openJournal({ store, kinds: { job: { run: () => running } } });
  await journal.start();
  const { accepted } = await journal.transact("k", () => ({ result: null, change: { accept: [{ kind: "job" }] } }), {
    by,
  });
  const stops = [journal.stop({ drainMs: 10_000 }), journal.stop({ drainMs: 0 })];
  finish("done");
  await Promise.all(stops);
  const after = await openJournal({ store, kinds: {} });
  expect((await after.operation("k", accepted[0]?.id ?? ""))?.outcome).toEqual({ kind: "succeeded", result: "done" });
  await after.stop();
});

test("the last words of an operation on a part are kept", async () => {
  const journal = await started({
    kinds: {
      job: {
        async run(operation) {
          operation.describe("final words");
        },
        settle: () => ({}),
      },
    },
  });
  const change = { parts: { p: { a: 1 } }, accept: [{ kind: "job", part: "p" }] };
  const { accepted } = await journal.transact("k", () => ({ result: null, change }), { by });
  await journal.ended("k", accepted[0]?.id ?? "", { withinMs: 10_000 });
  expect((await journal.read("k"))?.last?.description).toBe("final words");
  await journal.stop();
});

test("a lease that its owner renews in the last moment is not taken by a decision", async () => {
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  let runs = 0;
  const kinds = { job: { run: async () => ++runs } };
  const accepting = await openJournal({ store, kinds, clock });
  const accept = [{ kind: "job" }];
  await accepting.transact("k", () => ({ result: null, change: { accept } }), { by });
  await store.attend("frozen", () => undefined);
  const { claimed } = await store.claim({ owner: "frozen", leaseMs: 1_000, limit: 1, laneRoom: 1, rooms: new Map() });
  await clock.advance(1_001);
  let renewed: readonly string[] | undefined;
  const beside = interposedStore(store, async ({ method }, go) => {
    // It has decided that the lease is over; its owner is back before that is committed.
    if (method === "commit") renewed ??= await store.renew("frozen", claimed, 60_000);
    return go();
  });
  const journal = await openJournal({ store: beside, kinds, clock });
  await journal.transact("k", () => ({ result: null, change: { accept } }), { by });
  expect(renewed).toEqual(["k"]);
  await journal.start();
  await clock.advance(100);
  expect((await store.read("k", []))?.record.lease?.owner).toBe("frozen");
  expect(runs).toBe(0);
  await journal.stop();
});

test("an id that never was does not lead through the whole journal", async () => {
  const store = memoryStore();
  const journal = await openJournal({ store, kinds: {} });
  const entries = Array.from({ length: 3_000 }, (_, index) => ({ kind: "note", payload: index }));
  await journal.transact("k", () => ({ result: null, change: { entries } }), { by });
  let reads = 0;
  const read = store.entries.bind(store);
  store.entries = (key, range) => {
    reads++;
    return read(key, range);
  };
  expect(await journal.operation("k", "1-x")).toBeUndefined();
  // Its acceptance by its number, and its end by an index.
  expect(reads).toBe(2);
  await journal.stop();
});

test("what was accepted while the lease of a killed engine still held is run when it has run out", async () => {
  const store = memoryStore();
  const kinds = { job: { run: async () => "done" } };
  const dead = await new Promise<string>((resolve, reject) => {
    const reached: JournalOptions["reached"] = (point) => {
      if (point === "before attempt") journal.then((one) => one.kill()).then(() => resolve("dead"), reject);
    };
    const journal = openJournal({ store, kinds, leaseMs: 200, reached });
    journal
      .then(async (one) => {
        await one.start();
        await one.transact("k", () => ({ result: null, change: { accept: [{ kind: "job" }] } }), { by });
      })
      .catch(reject);
  });
  expect(dead).toBe("dead");
  const next = await openJournal({ store, kinds, leaseMs: 200 });
  await next.start();
  const accepting = next.transact("k", () => ({ result: null, change: { accept: [{ kind: "job" }] } }), { by });
  const [second] = (await accepting).accepted;
  expect(await next.ended("k", second?.id ?? "", { withinMs: 10_000 })).toEqual({ kind: "succeeded", result: "done" });
  await next.stop();
});

test("what takes every process down waits, also if it was told to hurry while it ran", async () => {
  const store = memoryStore();
  let runs = 0;
  const kinds = {
    job: {
      run: async () => {
        runs++;
      },
    },
  };
  const journal = await openJournal({ store, kinds });
  await journal.transact("k", () => ({ result: null, change: { accept: [{ kind: "job" }] } }), { by });
  for (let times = 0; times < 30; times++) {
    const { record } = (await store.read("k", [])) ?? {};
    if (record === undefined) throw new Error("it is not kept");
    const { seq, epoch, lane } = record;
    const state = record.state.replace(/("open":\[\{)(?!"hurried")/, '$1"hurried":true,');
    expect(state).toContain('"hurried":true');
    await store.commit({
      ...{ key: "k", expected: { seq, epoch }, token: `t${times}`, state, lane, epoch: epoch + 1, dueAt: "keep" },
      ...{ lease: { owner: "short-lived", until: 1 }, putParts: [], deleteParts: [], deleteEntries: [], wake: false },
      ...{ addLabels: [], removeLabels: [] },
      entries: [{ kind: "noted", operation: null, body: '{"actor":{"type":"user","subject":"a"},"payload":null}' }],
    });
  }
  await journal.start();
  await vi.waitFor(async () => expect((await journal.entries("k")).at(-1)?.kind).toBe("retry"), { timeout: 10_000 });
  const { payload, at } = (await journal.entries("k")).at(-1) ?? {};
  expect((payload as { until: number }).until).toBeGreaterThan(at ?? Number.POSITIVE_INFINITY);
  expect(runs).toBe(0);
  await journal.stop();
});
