import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Store } from "../src/store.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("processes that know of each other through PostgreSQL", () => {
  test("J11: the leases of a killed process are freed at once", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      await store.attend("reaper", () => {});
      const child = await startChild(place, "holds");
      expect(await leases(store)).toEqual(["child", "child", "child"]);
      expect(await store.reap("reaper")).toBe(0);

      const killedAt = performance.now();
      child.kill("SIGKILL");
      let freed = 0;
      while (freed === 0) freed = await store.reap("reaper");
      expect([freed, await leases(store)]).toEqual([3, [null, null, null]]);
      expect(performance.now() - killedAt).toBeLessThan(1_000);
      const { claimed } = await store.claim({ ...wide, owner: "reaper" });
      expect(claimed.map(({ key, epoch }) => [key, epoch])).toEqual([
        ["due", 3],
        ["not due", 3],
        ["pulled in", 3],
      ]);
      expect(await owners(place)).toEqual(["reaper"]);
    }));

  test("J5: a process is woken by a commit of another", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const woken = new Promise<void>((resolve) => store.onWake(() => resolve()));
      const child = await startChild(place, "wakes");
      await woken;
      child.kill("SIGKILL");
    }));

  test("an owner whose session broke is told, and can attend again", () =>
    PostgresPlace.use(async (place) => {
      const [store, other] = [await place.store(), await place.store()];
      await other.attend("other", () => {});
      const lost = new Promise<void>((resolve) => void store.attend("mine", resolve));
      await store.commit(change("k", null, { dueAt: 0 }));
      while (!(await owners(place)).includes("mine")) await store.now();
      await store.claim({ ...wide, owner: "mine" });
      await place.pool.query(`
        select pg_terminate_backend(l.pid)
        from pg_locks as l join ${place.schema}.owner as o on (l.classid::bigint << 32) | l.objid::bigint = o.lock_key
        where l.locktype = 'advisory' and o.id = 'mine'`);
      await lost;
      expect(await other.reap("other")).toBe(1);
      const attends = () =>
        store
          .attend("mine", () => {})
          .then(
            () => true,
            () => false,
          );
      while (!(await attends())) await sleep(10);
      await store.claim({ ...wide, owner: "mine" });
      expect(await other.reap("other")).toBe(0);
    }));

  test("an owner that leaves with nothing in its hands leaves nothing behind", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      let lost = 0;
      await store.attend("mine", () => lost++);
      await store.attend("mine", () => lost++); // Again is no harm.
      expect(await owners(place)).toEqual(["mine"]);
      const { rows } = await place.pool.query(`select lock_key from ${place.schema}.owner`);
      await store.leave("mine");
      const locks = await place.pool.query(
        "select from pg_locks where locktype = 'advisory' and (classid::bigint << 32) | objid::bigint = $1",
        [rows[0].lock_key],
      );
      expect([await owners(place), locks.rowCount]).toEqual([[], 0]);
      await store.close();
      expect(lost).toBe(0);
    }));
});

const wide = { leaseMs: 600_000, limit: 100, laneRoom: 100, rooms: new Map() };

/** A process of its own on the same schema, which says when it has done what it is for. */
async function startChild(place: PostgresPlace, deed: keyof typeof deeds) {
  const code = `
    import pg from "pg";
    import { postgresStore } from "@osbert/journal/postgres";
    import { change } from "./packages/journal/test/postgres-change.ts";
    const store = postgresStore(new pg.Pool({ connectionString: process.env.URL }), { schema: process.env.SCHEMA });
    await store.open();
    ${deeds[deed]}
    console.log("done");`;
  const child = spawn(
    process.execPath,
    ["--import", "tsx", "--conditions=@osbert/source", "--input-type=module", "-e", code],
    {
      cwd: fileURLToPath(new URL("../../..", import.meta.url)),
      env: { ...process.env, URL: place.url, SCHEMA: place.schema },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  place.atEnd(async () => child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  expect(String(said)).toBe("done\n");
  return child;
}

const deeds = {
  holds: `
    await store.attend("child", () => {});
    for (const key of ["due", "not due", "pulled in"]) await store.commit(change(key, null, { dueAt: 0 }));
    const { claimed } = await store.claim({ owner: "child", leaseMs: 600_000, limit: 10, laneRoom: 10, rooms: new Map() });
    for (const record of claimed) {
      if (record.key === "not due") await store.commit(change(record.key, record, { dueAt: null }));
      if (record.key === "pulled in") await store.commit(change(record.key, record, { dueAt: 1 }));
    }`,
  wakes: `
    await store.commit(change("k", null, { wake: true, dueAt: 0 }));`,
};

async function leases(store: Store): Promise<(string | null)[]> {
  return (await store.find({ after: null, limit: 10 })).map(({ lease }) => lease?.owner ?? null);
}

async function owners(place: PostgresPlace): Promise<string[]> {
  const { rows } = await place.pool.query(`select id from ${place.schema}.owner order by id`);
  return rows.map(({ id }) => id);
}
