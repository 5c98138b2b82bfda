import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import type { JournalEvent } from "../src/observe.js";
import { type Store, setAsideLabel } from "../src/store.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { accept, type Bench, by, outcomeOf, startJournal, until } from "./faults-fixture.js";
import { PostgresPlace, postgresUrl } from "./postgres-support.js";
import { databasePath } from "./sqlite-fixture.js";

/** A store whose rows can be spoiled behind its back. */
interface Damaged {
  readonly store: Store;
  /** Answers the text that stood there. */
  setState(key: string, text: string): Promise<string>;
  setEntry(key: string, seq: number, body: string): Promise<string>;
  /** Answers how to put it back. */
  takeEntry(key: string, seq: number): Promise<() => Promise<void>>;
}

const kinds = {
  work: { run: async () => "done" },
  steps: {
    run: async (operation: {
      step(name: string, work: () => string): Promise<string>;
      sleep(name: string, ms: number): Promise<void>;
    }) => {
      await operation.step("first", () => "one");
      await operation.sleep("nap", 300);
      return operation.step("second", () => "two");
    },
  },
};

function damageSuite(withStore: (body: (damaged: Damaged) => Promise<void>) => Promise<void>): void {
  /** r1 is spoiled before its operation is due; r2 has nothing to do with it. */
  const suffers = async (
    damaged: Damaged,
    damage: (bench: Bench) => Promise<() => Promise<unknown>>,
    words: RegExp,
  ): Promise<void> => {
    const bench = await startJournal({ store: damaged.store, kinds });
    const { journal, events } = bench;
    const id = await accept(journal, "r1", { kind: "work", delayMs: 500 });
    const mend = await damage(bench);
    const other = await accept(journal, "r2", { kind: "work", delayMs: 500 });
    const event = await setAside(events, "r1");
    expect(String(event.error)).toMatch(words);
    expect(await outcomeOf(journal, "r2", other)).toMatchObject({ kind: "succeeded" });
    const listed = () => damaged.store.find({ label: setAsideLabel, after: null, limit: 10 });
    await until("it is listed", async () => (await listed()).length > 0);
    expect((await listed()).map(({ key }) => key)).toEqual(["r1"]);
    expect((await listed())[0]).toMatchObject({ dueAt: null, lease: null });
    const again = await accept(journal, "r2", { kind: "work" });
    expect(await outcomeOf(journal, "r2", again)).toMatchObject({ kind: "succeeded" });
    expect(events.filter(({ kind }) => kind === "set aside")).toHaveLength(1);

    await mend();
    await journal.restore("r1");
    expect(await outcomeOf(journal, "r1", id)).toEqual({ kind: "succeeded", result: "done" });
    expect(await listed()).toEqual([]);
  };

  test.each([
    ["half a text", '{"version":1,"data":'],
    ["nothing", ""],
    ["another thing", "[1, 2, 3]"],
    ["a state of a later version", '{"version":2}'],
    ["a state whose operations are not there", '{"version":1,"labels":{},"queued":0,"heldEpoch":0,"open":[null]}'],
  ])(
    "a state that is %s: that resource alone is set aside, told and listed, and goes on once it is mended",
    (_, text) =>
      withStore((damaged) =>
        suffers(
          damaged,
          async () => {
            const good = await damaged.setState("r1", text);
            return () => damaged.setState("r1", good);
          },
          /stored state of "r1"/,
        ),
      ),
  );

  test("an accept entry that cannot be read: likewise", () =>
    withStore((damaged) =>
      suffers(
        damaged,
        async () => {
          const good = await damaged.setEntry("r1", 1, '{"actor":');
          return () => damaged.setEntry("r1", 1, good);
        },
        /JSON|entry/,
      ),
    ));

  test("an accept entry that is missing: likewise", () =>
    withStore((damaged) => suffers(damaged, () => damaged.takeEntry("r1", 1), /missing/)));

  test("a step's result that cannot be read: the step does not run again, and goes on once it is mended", () =>
    withStore(async (damaged) => {
      const { journal, events } = await startJournal({ store: damaged.store, kinds });
      const id = await accept(journal, "r1", { kind: "steps" });
      const step = await until("the first step is recorded", async () =>
        (await journal.entries("r1")).find(({ kind }) => kind === "step"),
      );
      await until("it sleeps", async () => (await journal.entries("r1")).some(({ kind }) => kind === "waiting"));
      const good = await damaged.setEntry("r1", step.seq, "not JSON");
      await setAside(events, "r1");
      expect((await journal.operation("r1", id))?.status).toBe("open");
      await damaged.setEntry("r1", step.seq, good);
      await journal.restore("r1");
      expect(await outcomeOf(journal, "r1", id)).toEqual({ kind: "succeeded", result: "two" });
      const steps = (await journal.entries("r1")).filter(({ kind }) => kind === "step");
      expect(steps).toHaveLength(2);
    }));

  test("whoever asks for a spoiled resource gets a clear error, and a list leaves it out", () =>
    withStore(async (damaged) => {
      const { journal } = await startJournal({ store: damaged.store, kinds });
      const label = { labels: { team: "a" } };
      for (const key of ["r1", "r2"]) await journal.transact(key, () => ({ result: null, change: label }), { by });
      const good = await damaged.setState("r1", "{");
      const unreadable = { name: "JournalError", code: "unreadable" };
      await expect(journal.read("r1")).rejects.toMatchObject(unreadable);
      await expect(accept(journal, "r1", { kind: "work" })).rejects.toMatchObject(unreadable);
      await expect(accept(journal, "r1", { kind: "work" })).rejects.toMatchObject(unreadable);
      const found = await journal.find({ label: { name: "team", value: "a" } });
      expect(found.items.map(({ key }) => key)).toEqual(["r2"]);
      await damaged.setState("r1", good);
      const id = await accept(journal, "r1", { kind: "work" });
      expect(await outcomeOf(journal, "r1", id)).toMatchObject({ kind: "succeeded" });
    }));
}

async function setAside(events: readonly JournalEvent[], key: string): Promise<JournalEvent & { kind: "set aside" }> {
  return until(`${key} is set aside`, () =>
    events.find(
      (event): event is JournalEvent & { kind: "set aside" } => event.kind === "set aside" && event.key === key,
    ),
  );
}

describe("SQLite", () => {
  damageSuite(async (body) => {
    const path = await databasePath();
    const behind = <T>(look: (database: Database.Database) => T): T => {
      const database = new Database(path, { timeout: 5_000 });
      try {
        return look(database);
      } finally {
        database.close();
      }
    };
    const resource = "(select id from resource where key = ?)";
    const store = sqliteStore(path);
    await body({
      store,
      async setState(key, text) {
        const old = behind((database) => {
          const { state } = database.prepare("select state from resource where key = ?").get(key) as { state: string };
          database.prepare("update resource set state = ? where key = ?").run(text, key);
          return state;
        });
        // The store owns its file and remembers what it read last; this makes it look again.
        await store.reap("nobody");
        return old;
      },
      setEntry: async (key, seq, text) =>
        behind((database) => {
          const at = `where resource = ${resource} and seq = ?`;
          const { body: old } = database.prepare(`select body from entry ${at}`).get(key, seq) as { body: string };
          database.prepare(`update entry set body = ? ${at}`).run(text, key, seq);
          return old;
        }),
      takeEntry: async (key, seq) => {
        const at = `where resource = ${resource} and seq = ?`;
        const row = behind((database) => {
          const taken = database.prepare(`select * from entry ${at}`).get(key, seq) as Record<string, unknown>;
          database.prepare(`delete from entry ${at}`).run(key, seq);
          return taken;
        });
        const columns = Object.keys(row);
        const places = columns.map(() => "?").join(", ");
        const insert = `insert into entry (${columns.join(", ")}) values (${places})`;
        return async () => void behind((database) => database.prepare(insert).run(...Object.values(row)));
      },
    });
  });
});

describe.skipIf(postgresUrl === null)("PostgreSQL", () => {
  damageSuite((body) =>
    PostgresPlace.use(async (place) => {
      const { pool, schema } = place;
      const at = `where resource_id = (select id from ${schema}.resource where key = $1) and seq = $2`;
      const store = postgresStore(place.newPool(), { schema });
      place.atEnd(() => store.close());
      await body({
        store,
        async setState(key, text) {
          const { rows } = await pool.query(`select state from ${schema}.resource where key = $1`, [key]);
          await pool.query(`update ${schema}.resource set state = $2 where key = $1`, [key, text]);
          return rows[0].state as string;
        },
        async setEntry(key, seq, text) {
          const { rows } = await pool.query(`select body from ${schema}.entry ${at}`, [key, seq]);
          await pool.query(`update ${schema}.entry set body = $3 ${at}`, [key, seq, text]);
          return rows[0].body as string;
        },
        async takeEntry(key, seq) {
          const { rows } = await pool.query(`delete from ${schema}.entry ${at} returning *`, [key, seq]);
          const row = rows[0] as Record<string, unknown>;
          const places = Object.keys(row).map((_, index) => `$${index + 1}`);
          const insert = `insert into ${schema}.entry (${Object.keys(row).join(", ")}) values (${places.join(", ")})`;
          return async () => void (await pool.query(insert, Object.values(row)));
        },
      });
    }),
  );
});
