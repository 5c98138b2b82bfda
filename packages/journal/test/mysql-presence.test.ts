import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { newRecord } from "@osbert/journal-suites/conformance";
import { describe, expect, test } from "vitest";
import type { Store } from "../src/store.js";
import { MysqlPlace, mysqlUrl } from "./mysql-fixture.js";

describe.skipIf(mysqlUrl === null)("mysql: owners that live and die", () => {
  test("the leases of a process that was killed with SIGKILL are freed at once", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      await store.attend("reaper", () => {});
      for (let index = 0; index < 20; index++) await store.commit(newRecord(`k${index}`, { dueAt: 0 }));
      const child = startOwner(place.prefix, "doomed");
      expect(await told(child)).toBe("20 claimed\n");
      expect(await store.reap("reaper")).toBe(0);

      child.kill("SIGKILL");
      await once(child, "exit");
      const killedAt = performance.now();
      expect(await freed(store)).toBe(20);
      expect(performance.now() - killedAt).toBeLessThan(2_000);
      for (const record of await store.find({ after: null, limit: 100 })) {
        expect(record).toMatchObject({ lease: null, epoch: 2 });
        expect(record.dueAt).toBeLessThanOrEqual(await store.now());
      }
      expect(await place.rows(`select name from \`${place.prefix}owner\``)).toHaveLength(1);
    }));

  test("an owner without leases leaves no row behind", () =>
    MysqlPlace.use(async (place) => {
      const store = await place.opened();
      await store.attend("owner", () => {});
      await store.leave("owner");
      expect(await place.rows(`select name from \`${place.prefix}owner\``)).toEqual([]);
    }));

  test("an owner that is known to another server of a cluster is left alone until it is long gone", () =>
    MysqlPlace.use(async (place) => {
      let now = 10_000_000;
      const store = await place.opened({ clock: () => now });
      await store.attend("reaper", () => {});
      await store.commit(newRecord("k", { epoch: 1, lease: { owner: "elsewhere", until: now + 30_000 }, dueAt: now }));
      await place.admin.query(
        `insert into \`${place.prefix}owner\` (name, lock_name, server, seen_at) values ('elsewhere', 'osbert:x', 'other:3306:2', ${now})`,
      );
      now += 3_600_000;
      expect(await store.reap("reaper")).toBe(0);
      expect(await place.rows(`select name from \`${place.prefix}owner\``)).toHaveLength(2);
      now += 1;
      // Its row is forgotten, and what it left is free.
      expect(await store.reap("reaper")).toBe(1);
      expect(await place.rows(`select name from \`${place.prefix}owner\``)).toHaveLength(1);
    }));

  test("stores with other prefixes on the same server do not vouch for each other's owners", () =>
    MysqlPlace.use((place) =>
      MysqlPlace.use(async (elsewhere) => {
        const [store, other] = [await place.opened(), await elsewhere.opened()];
        await other.attend("owner", () => {});
        await store.attend("owner", () => {});
        await store.attend("reaper", () => {});
        await store.commit(newRecord("k", { epoch: 1, lease: { owner: "owner", until: 9e15 }, dueAt: 9e15 }));
        await store.leave("owner");
        expect(await store.reap("reaper")).toBe(1);
      }),
    ));

  test("the session that vouches for owners is not ended by the server for being idle", () =>
    MysqlPlace.use(async (place) => {
      const pool = place.pool();
      const idle: number[] = [];
      pool.on("connection", (connection) => {
        idle.push(connection.threadId);
        void connection.query("set session wait_timeout = 1");
      });
      const store = await place.opened({}, pool);
      let lost = 0;
      await store.attend("owner", () => lost++);
      await store.now();
      const [holder] = await place.rows(`select is_used_lock(lock_name) as id from \`${place.prefix}owner\``);
      await until(async () => {
        const sessions = await place.rows("select id from information_schema.processlist");
        const left = sessions.map(({ id }) => Number(id)).filter((id) => idle.includes(id));
        return left.length === 1 && left[0] === Number(holder?.id);
      });
      expect(lost).toBe(0);
      expect(await store.reap("other")).toBe(0);
    }));
});

function startOwner(prefix: string, owner: string): ChildProcess {
  const script = fileURLToPath(new URL("mysql-owner-process.ts", import.meta.url));
  return spawn(process.execPath, ["--import", "tsx", script, mysqlUrl ?? "", prefix, owner], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

async function told(child: ChildProcess): Promise<string> {
  const [text] = await once(child.stdout ?? child, "data");
  return String(text);
}

/** The server notices that the session is gone when the kernel tells it. */
async function freed(store: Store): Promise<number> {
  let count = 0;
  await until(async () => {
    count = await store.reap("reaper");
    return count > 0;
  });
  return count;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error("waited 10 s in vain");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
