import { newRecord } from "@osbert/journal-suites/conformance";
import { createPool } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import type { Store } from "../src/store.js";
import { mysqlStore } from "../src/stores/mysql/index.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

describe.skipIf(mysqlUrl === null)("mysql: sessions that break", () => {
  test("sessions killed under load lose nothing that was acknowledged, and fail as store-unavailable only", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      const acknowledged: string[] = [];
      const failures: unknown[] = [];
      const end = performance.now() + 3_000;
      const callers = Array.from({ length: 32 }, async (_, caller) => {
        for (let round = 0; performance.now() < end; round++) {
          const key = `k ${caller} ${round}`;
          await store.commit(newRecord(key, { entries: [{ kind: "noted", operation: null, body: key }] })).then(
            () => acknowledged.push(key),
            (failure) => failures.push(failure),
          );
        }
      });
      while (performance.now() < end) {
        await place.killSessions();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await Promise.all(callers);

      expect(failures.length).toBeGreaterThan(0);
      for (const failure of failures)
        expect(failure).toMatchObject({ name: "JournalError", code: "store-unavailable" });
      expect(acknowledged.length).toBeGreaterThan(100);
      const kept = new Set(await allKeys(store));
      expect(acknowledged.filter((key) => !kept.has(key))).toEqual([]);
      const [entries] = await place.rows(`select count(*) as count from \`${place.prefix}entry\``);
      expect(Number(entries?.count)).toBe(kept.size);
    }));

  test("the store works again after every one of its sessions was killed", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      await store.commit(newRecord("before"));
      await place.killSessions();
      await works(async () => store.commit(newRecord("after")));
      expect((await store.read("before", []))?.record.key).toBe("before");
    }));

  test("an owner is told when the session that vouches for it is killed, and may attend again", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      let told = 0;
      await store.attend("owner", () => told++);
      await place.killSessions();
      await works(async () => expect(told).toBe(1));
      await works(() => store.attend("owner", () => told++));
      expect(told).toBe(1);
      expect(await store.reap("owner")).toBe(0);
    }));

  test("an owner whose session is killed while it comes is refused at once, or attended and told", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      for (let round = 0; round < 30; round++) {
        let told = 0;
        const startedAt = performance.now();
        const attending = store
          .attend(`owner ${round}`, () => told++)
          .then(
            () => "attended",
            (error: JournalError) => error.code,
          );
        await new Promise((resolve) => setTimeout(resolve, round / 10));
        await place.killSessions();
        const outcome = await attending;
        expect(performance.now() - startedAt).toBeLessThan(5_000);
        if (outcome === "attended") {
          await place.killSessions(); // It may have come over a connection that was not there yet.
          await works(async () => expect(told).toBe(1));
        } else expect([outcome, told]).toEqual(["store-unavailable", 0]);
      }
    }));

  test("a server that refuses connections is store-unavailable, with no secret in the sentence", async () => {
    const pool = createPool({ host: "127.0.0.1", port: 1, user: "someone", password: "hunter2", database: "d" });
    const failure = await mysqlStore(pool)
      .open()
      .catch((error: unknown) => error);
    await pool.end();
    expect(failure).toBeInstanceOf(JournalError);
    expect(failure).toMatchObject({
      code: "store-unavailable",
      message: "the MySQL server refused the connection; what was asked may be repeated",
      cause: { code: "ECONNREFUSED" },
    });
  });

  test("a password that the server refuses is told as such", () =>
    MysqlPlace.use(async (place) => {
      const failure = await place
        .store({}, place.pool({ password: "wrong" }))
        .open()
        .catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "store-unavailable" });
      expect(String(failure)).toContain("refused the credentials");
      expect(String(failure)).not.toContain("wrong");
    }));

  test("the wait for a connection of a pool that is used up is bounded", () =>
    MysqlPlace.use(async (place) => {
      const pool = place.pool({ connectionLimit: 1 });
      const store = await place.opened({ connectWithinMs: 200 }, pool);
      const taken = await pool.getConnection();
      await expect(store.commit(newRecord("k"))).rejects.toMatchObject({
        code: "store-unavailable",
        message: expect.stringContaining("the pool gave no connection to the MySQL server within 200 ms"),
      });
      taken.release();
      expect((await store.commit(newRecord("k"))).kind).toBe("committed");
    }));

  test("a server that does not answer is not waited for without end", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened({ answerWithinMs: 300 });
      await store.commit(newRecord("k"));
      const locker = await place.admin.getConnection();
      await locker.query(`lock tables \`${place.prefix}resource\` write`);
      await expect(store.commit(newRecord("other"))).rejects.toMatchObject({
        code: "store-unavailable",
        message: expect.stringContaining("did not answer in time"),
      });
      await locker.query("unlock tables");
      locker.release();
      await works(() => store.commit(newRecord("another")));
    }));

  test("a small pool serves reads while commits keep it busy", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened({ connectWithinMs: 2_000 }, place.pool({ connectionLimit: 2 }));
      await store.attend("owner", () => {});
      const end = performance.now() + 1_000;
      const writers = Array.from({ length: 16 }, async (_, writer) => {
        for (let round = 0; performance.now() < end; round++) await store.commit(newRecord(`k ${writer} ${round}`));
      });
      let reads = 0;
      while (performance.now() < end) {
        await store.read("k 0 0", []);
        reads++;
      }
      await Promise.all(writers);
      expect(reads).toBeGreaterThan(2);
    }));
});

async function allKeys(store: Store): Promise<readonly string[]> {
  const keys: string[] = [];
  for (;;) {
    const page = await store.find({ after: keys.at(-1) ?? null, limit: 1_000 });
    if (page.length === 0) return keys;
    keys.push(...page.map(({ key }) => key));
  }
}

/** A pool notices that a connection is gone when it is told, or when it is used: a first try may fail. */
async function works<T>(what: () => Promise<T>): Promise<T> {
  const end = performance.now() + 5_000;
  for (;;) {
    try {
      return await what();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
