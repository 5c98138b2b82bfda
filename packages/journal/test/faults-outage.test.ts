import { describe, expect, test } from "vitest";
import type { Operation } from "../src/engine/operation-kind.js";
import type { OperationKinds } from "../src/engine/runner.js";
import { JournalError } from "../src/errors.js";
import { openJournal } from "../src/open-journal.js";
import { memoryStore } from "../src/stores/memory.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { faultyStore } from "../src/testing/index.js";
import {
  accept,
  kindsOf,
  Latch,
  type MemoryBench,
  outcomeOf,
  outcomeWithin,
  settle,
  startInMemory,
  startJournal,
  until,
} from "./faults-fixture.js";
import { Proxy as Network, PostgresPlace, postgresUrl } from "./postgres-support.js";
import { databasePath } from "./sqlite-fixture.js";

describe("a store that is away for a while", () => {
  test("a caller hears store-unavailable within its time, and the journal goes on when the store is back", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async () => "done" } } });
    const { journal, store, clock } = bench;
    store.breakDown("refused");
    const refused = accept(journal, "r1", { kind: "work" }, { timeoutMs: 2_000 }).catch((error: unknown) => error);
    await clock.advance(2_100);
    expect(await refused).toMatchObject({ name: "JournalError", code: "store-unavailable" });
    store.comeBack();
    const asked = accept(journal, "r1", { kind: "work" });
    await clock.advance(2_000);
    const id = await asked;
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toEqual({ kind: "succeeded", result: "done" });
    expect(journal.running).toBe(0);
  });

  test("a store that does not answer at all is not waited for longer than the caller's time", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async () => "done" } } });
    const { journal, store, clock } = bench;
    store.breakDown("hangs");
    const late = accept(journal, "r1", { kind: "work" }, { timeoutMs: 2_000 }).catch((error: unknown) => error);
    await clock.advance(2_100);
    expect(await late).toMatchObject({ name: "JournalError", code: "store-unavailable" });
    store.comeBack();
    await settle();
    const other = await accept(journal, "r2", { kind: "work" });
    expect(await outcomeWithin(bench, "r2", other, 60_000)).toMatchObject({ kind: "succeeded" });
  });

  test("a step whose result could not be recorded meanwhile is recorded afterwards, and does not run again", async () => {
    const latch = new Latch();
    let ran = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) =>
            operation.step("create", async () => {
              ran++;
              await latch.opened;
              return "created";
            }),
        },
      },
    });
    const { journal, store, clock, events } = bench;
    const id = await accept(journal, "r1", { kind: "work" });
    await settle();
    store.breakDown("refused");
    latch.open();
    await clock.advance(20_000);
    expect(kindsOf(events, "store failed").length).toBeGreaterThan(0);
    expect(await journal.operation("r1", id).catch((error: unknown) => error)).toBeInstanceOf(JournalError);
    store.comeBack();
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toEqual({ kind: "succeeded", result: "created" });
    expect(ran).toBe(1);
  });

  test("work that becomes due during an outage longer than a lease is done afterwards", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async () => "done" } } });
    const { journal, store, clock } = bench;
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => accept(journal, `r${n}`, { kind: "work", delayMs: 1_000 * n })),
    );
    store.breakDown("refused");
    await clock.advance(300_000);
    store.comeBack();
    for (const [n, id] of ids.entries()) {
      expect(await outcomeWithin(bench, `r${n}`, id, 60_000)).toMatchObject({ kind: "succeeded" });
    }
  });

  test("an outage is told once when it begins and once when it is over, not for every try", async () => {
    const { journal, store, clock, events } = await startInMemory({ kinds: { work: { run: async () => null } } });
    store.breakDown("refused", ["read", "commit"]);
    const asked = accept(journal, "r1", { kind: "work" });
    await clock.advance(5_000);
    store.comeBack();
    await clock.advance(5_000);
    await asked;
    expect(kindsOf(events, "store failed")).toHaveLength(1);
    expect(kindsOf(events, "store answered again")).toHaveLength(1);
  });

  test("a journal that is asked to stop during an outage does so within its time", async () => {
    const bench = await startInMemory({
      kinds: { work: { run: (operation) => operation.step("s", () => new Promise(() => undefined)) } },
      graceMs: 1_000,
    });
    const { journal, store, clock } = bench;
    await accept(journal, "r1", { kind: "work" });
    await settle();
    store.breakDown("refused");
    let stopped: unknown;
    void journal.stop({ drainMs: 1_000 }).then(
      () => {
        stopped = "stopped";
      },
      (error: unknown) => {
        stopped = error;
      },
    );
    await clock.advance(10_000);
    expect(stopped).toBe("stopped");
  });

  test("a journal whose store hangs stops within its time", async () => {
    const bench = await startInMemory({
      kinds: { work: { run: (operation) => operation.step("s", () => new Promise(() => undefined)) } },
      graceMs: 1_000,
    });
    const { journal, store, clock } = bench;
    await accept(journal, "r1", { kind: "work" });
    await settle();
    store.breakDown("hangs");
    let stopped = false;
    void journal.stop({ drainMs: 1_000 }).finally(() => {
      stopped = true;
    });
    await clock.advance(60_000);
    expect(stopped).toBe(true);
  });

  test("a journal that stops gives the leases of what it could not end back, so that others go on at once", async () => {
    const kinds = { work: { run: (operation: Operation) => operation.step("s", () => new Promise(() => undefined)) } };
    const { journal, store, clock } = await startInMemory({ kinds, graceMs: 1_000 });
    await accept(journal, "r1", { kind: "work" });
    await settle();
    const stopped = journal.stop({ drainMs: 1_000 });
    await clock.advance(10_000);
    await stopped;
    const record = (await store.read("r1", []))?.record;
    expect(record).toMatchObject({ lease: null });
    expect(record?.dueAt).toBeLessThanOrEqual(clock.wallMs());
  });

  test("a journal that was killed during an outage calls its store no more", async () => {
    const { journal, store, clock } = await startInMemory({ kinds: { work: { run: async () => null } } });
    store.breakDown("refused");
    const asked = accept(journal, "r1", { kind: "work" }).catch((error: unknown) => error);
    await clock.advance(1_000);
    await journal.kill();
    const calls = store.calls.length;
    store.comeBack();
    await clock.advance(60_000);
    expect(store.calls.length).toBe(calls);
    expect(await asked).toBeInstanceOf(JournalError);
  });
});

describe("answers that are lost", () => {
  test("an accept whose commit's answer was lost is not accepted twice", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async () => "done" } } });
    const { journal, store, clock } = bench;
    store.next("commit", "answer lost");
    const asked = accept(journal, "r1", { kind: "work", input: "once" });
    await clock.advance(1_000);
    const id = await asked;
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toMatchObject({ kind: "succeeded" });
    const accepted = (await journal.entries("r1")).filter(({ kind }) => kind === "accepted");
    expect(accepted).toHaveLength(1);
  });

  test("an operation that was accepted for later, with the answer lost, runs when its time has come", async () => {
    const bench = await startInMemory({ kinds: { work: { run: async () => "done" } } });
    const { journal, store, clock } = bench;
    store.next("commit", "answer lost");
    const asked = accept(journal, "r1", { kind: "work", delayMs: 20_000 });
    await clock.advance(1_000);
    expect(await outcomeWithin(bench, "r1", await asked, 60_000)).toMatchObject({ kind: "succeeded" });
  });

  test("a retry that was recorded with its answer lost comes when its time has come", async () => {
    let attempts = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: async () => {
            if (++attempts === 1) throw new Error("not yet");
            return "done";
          },
        },
      },
    });
    const { journal, store } = bench;
    store.next("commit", "answer hangs");
    const asked = accept(journal, "r1", { kind: "work" });
    await settle();
    store.comeBack();
    store.next("commit", "answer lost");
    const id = await asked;
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toMatchObject({ kind: "succeeded" });
    expect(attempts).toBe(2);
  });

  test("a step whose record's answer was lost is recorded once and does not run again", async () => {
    const latch = new Latch();
    let ran = 0;
    const bench = await startInMemory({
      kinds: {
        work: {
          run: (operation) =>
            operation.step("create", async () => {
              ran++;
              await latch.opened;
              return "created";
            }),
        },
      },
    });
    const id = await accept(bench.journal, "r1", { kind: "work" });
    await settle();
    bench.store.next("commit", "answer lost");
    latch.open();
    expect(await outcomeWithin(bench, "r1", id, 60_000)).toMatchObject({ kind: "succeeded" });
    expect(ran).toBe(1);
    const steps = (await bench.journal.entries("r1")).filter(({ kind }) => kind === "step");
    expect(steps).toHaveLength(1);
  });

  test("an answer that was on its way for a minute does not set the journal's clock back", async () => {
    const behind: number[] = [];
    const kinds = { work: { run: async () => void behind.push(bench.clock.wallMs() - bench.journal.now()) } };
    const bench: MemoryBench = await startInMemory({ kinds });
    const { journal, store, clock } = bench;
    store.next("commit", "answer hangs");
    void accept(journal, "r1", { kind: "work" }).catch(() => undefined);
    await clock.advance(60_000);
    store.comeBack();
    await settle();
    expect(Math.max(...behind)).toBeLessThan(5_000);
  });
});

describe("SQLite that fails", () => {
  test("an outage is over, and everything that was accepted is done once", async () => {
    const store = faultyStore(sqliteStore(await databasePath()));
    const ran = new Map<string, number>();
    const { journal } = await startJournal({
      store,
      kinds: {
        work: {
          run: (operation) =>
            operation.step("count", () => {
              ran.set(operation.key, (ran.get(operation.key) ?? 0) + 1);
              return operation.key;
            }),
        },
      },
    });
    const accepted = new Map<string, string>();
    const refused: unknown[] = [];
    const work = Array.from({ length: 200 }, async (_, n) => {
      const key = `r${n}`;
      if (n === 50) store.breakDown("refused");
      if (n === 51) for (const method of ["commit", "commit", "commit"] as const) store.next(method, "answer lost");
      await accept(journal, key, { kind: "work" }, { timeoutMs: 200 }).then(
        (id) => accepted.set(key, id),
        (error: unknown) => refused.push(error),
      );
    });
    await Promise.all(work);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) expect(error).toMatchObject({ code: "store-unavailable" });
    store.comeBack();
    for (const [key, id] of accepted) expect(await outcomeOf(journal, key, id)).toMatchObject({ kind: "succeeded" });
    expect([...ran.values()].filter((times) => times > 1)).toEqual([]);
  });
});

describe.skipIf(postgresUrl === null)("PostgreSQL behind a network that breaks", () => {
  const work = (ran: string[], latch?: Latch): OperationKinds => ({
    work: {
      run: (operation) =>
        operation.step("create", async () => {
          ran.push(operation.key);
          await latch?.opened;
          return operation.key;
        }),
    },
  });

  test("callers hear store-unavailable within their time, a step that finished meanwhile is recorded, and all goes on", () =>
    PostgresPlace.use(async (place) => {
      const proxy = await Network.to(place.url);
      const ran: string[] = [];
      const latch = new Latch();
      const store = postgresStore(place.newPool(proxy.url), { schema: place.schema, timeoutMs: 500 });
      const { journal, events } = await startJournal({ store, kinds: work(ran, latch) });
      place.atEnd(() => proxy.cut());
      place.atEnd(() => journal.kill());
      const before = await accept(journal, "before", { kind: "work" });
      await until("the step runs", () => ran.includes("before"));

      await proxy.cut();
      const startedAt = performance.now();
      const error = await accept(journal, "meanwhile", { kind: "work" }, { timeoutMs: 1_000 }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: "store-unavailable" });
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      latch.open();
      await until("the outage is told", () => kindsOf(events, "store failed").length > 0);

      await proxy.restore();
      expect(await outcomeOf(journal, "before", before)).toEqual({ kind: "succeeded", result: "before" });
      const after = await accept(journal, "after", { kind: "work" });
      expect(await outcomeOf(journal, "after", after)).toMatchObject({ kind: "succeeded" });
    }));

  test("a connection that falls silent is given up within the caller's time, and all goes on", () =>
    PostgresPlace.use(async (place) => {
      const proxy = await Network.to(place.url);
      const ran: string[] = [];
      const store = postgresStore(place.newPool(proxy.url), { schema: place.schema, timeoutMs: 500 });
      const { journal } = await startJournal({ store, kinds: work(ran) });
      place.atEnd(() => proxy.cut());
      place.atEnd(() => journal.kill());
      const before = await accept(journal, "before", { kind: "work" });
      await outcomeOf(journal, "before", before);
      proxy.fallSilent();
      const startedAt = performance.now();
      const error = await accept(journal, "meanwhile", { kind: "work" }, { timeoutMs: 1_000 }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: "store-unavailable" });
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      await proxy.cut();
      await proxy.restore();
      const after = await accept(journal, "after", { kind: "work" });
      expect(await outcomeOf(journal, "after", after)).toMatchObject({ kind: "succeeded" });
    }));

  test("sessions that are ended under load lose nothing, and no recorded step runs again", () =>
    PostgresPlace.use(async (place) => {
      const ran: string[] = [];
      const store = postgresStore(place.newPool(), { schema: place.schema, timeoutMs: 2_000 });
      const { journal } = await startJournal({ store, kinds: work(ran) });
      place.atEnd(() => journal.kill());
      const accepted = new Map<string, string>();
      let stop = false;
      const load = Array.from({ length: 8 }, async (_, caller) => {
        for (let n = 0; !stop; n++) {
          const key = `c${caller}-${n}`;
          await accept(journal, key, { kind: "work" }).then(
            (id) => accepted.set(key, id),
            () => undefined,
          );
        }
      });
      for (let kill = 1; kill <= 3; kill++) {
        await until("there is progress", () => accepted.size > kill * 60);
        await place.terminateSessions();
      }
      await until("there is progress", () => accepted.size > 300);
      stop = true;
      await Promise.all(load);
      for (const [key, id] of accepted) expect(await outcomeOf(journal, key, id)).toMatchObject({ kind: "succeeded" });
      for (const key of accepted.keys()) {
        const steps = (await journal.entries(key)).filter(({ kind }) => kind === "step");
        expect(steps, key).toHaveLength(1);
      }
    }));
});

test("a store that cannot be opened leaves a clear error", async () => {
  const store = memoryStore();
  const open = { ...store, open: () => Promise.reject(new JournalError("store-unavailable", "no route to the store")) };
  await expect(openJournal({ store: open as typeof store, kinds: {} })).rejects.toThrow("no route to the store");
});
