import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import type { Store } from "../src/store.js";
import { Dedicated } from "../src/stores/postgres/dedicated.js";
import { postgresStore } from "../src/stores/postgres/index.js";
import { Session } from "../src/stores/postgres/session.js";
import { change, PostgresPlace, postgresUrl, Wire } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("PostgreSQL that goes away", () => {
  test("sessions killed under load: errors are store-unavailable, and what was acknowledged is there", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const load = startLoad(store);
      // A kill may meet sessions that have nothing to do just then.
      for (let kill = 0; kill < 5 || (load.errors.length === 0 && kill < 100); kill++) {
        await load.progress(200);
        expect(await place.terminateSessions()).toBeGreaterThan(0);
      }
      await load.progress(200);
      await load.stop();
      expect(load.errors.length).toBeGreaterThan(0);
      expectUnavailable(load.errors);
      await expectAcknowledged(store, load.acknowledged);
    }));

  test("a commit whose answer was lost can be told by its token", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const load = startLoad(store);
      await load.progress(500);
      await place.terminateSessions();
      await load.stop();
      // Each failed change is either there as a whole with its token, or not at all.
      for (const [key, token] of load.failed) {
        const found = await store.read(key, ["p"]);
        const [entry] = await store.entries(key, { kind: "numbers", seqs: [1] });
        expect([entry?.token, found?.parts.get("p")]).toEqual(
          found === undefined ? [undefined, undefined] : [token, token],
        );
      }
    }));

  test("a server that refuses connections for a while is used again when it is back", () =>
    PostgresPlace.use(async (place) => {
      const wire = await Wire.to(place.url);
      const store = await place.store({ timeoutMs: 5_000 }, place.newPool(wire.url));
      let [lost, woken] = [0, 0];
      await store.attend("owner", () => lost++);
      store.onWake(() => woken++);
      await store.commit(change("before", null));

      await wire.cut();
      const calls = [
        store.commit(change("meanwhile", null)),
        store.read("before", []),
        store.now(),
        store.claim({ owner: "owner", leaseMs: 1, limit: 1, laneRoom: 1, rooms: new Map() }),
        store.attend("owner", () => {}),
      ];
      const errors = await Promise.all(
        calls.map((call) => call.then(() => undefined).catch((error: unknown) => error)),
      );
      expectUnavailable(errors);
      for (const error of errors) expect(String(error)).not.toMatch(/127\.0\.0\.1|postgres:/);
      expect(lost).toBe(1);

      await wire.restore();
      expect((await store.read("before", []))?.record.seq).toBe(1);
      expect((await store.commit(change("after", null))).kind).toBe("committed");
      await until(() => woken > 0); // Once after it came back, for what it may have missed.
      await store.attend("owner", () => {});
      await store.commit(change("wakes", null, { wake: true }));
      await until(() => woken > 1);
      await store.close();
      await wire.cut();
    }));

  test("a server that falls silent is not waited for longer than the time-out", () =>
    PostgresPlace.use(async (place) => {
      const wire = await Wire.to(place.url);
      const store = await place.store({ timeoutMs: 300 }, place.newPool(wire.url));
      await store.commit(change("before", null));
      wire.fallSilent();
      const startedAt = performance.now();
      const errors = await Promise.all([
        store.commit(change("lost", null)).catch((error: unknown) => error),
        store.read("before", []).catch((error: unknown) => error),
      ]);
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      expectUnavailable(errors);
      await wire.cut();
      await wire.restore();
      await until(async () => (await store.read("before", []).catch(() => undefined)) !== undefined);
      expect((await store.commit(change("after", null))).kind).toBe("committed");
      await store.close();
      await wire.cut();
    }));

  test("a connection that falls silent before anyone is woken over it is given up, and owners come back over another", () =>
    PostgresPlace.use(async (place) => {
      const wire = await Wire.to(place.url);
      const store = await place.store({ timeoutMs: 2_000 }, place.newPool(wire.url));
      place.atEnd(() => wire.cut());
      await store.attend("before", () => undefined);
      wire.loseNext("listen ");
      await place.terminateSessions();
      await until(() => wire.hasLost);
      const isBack = async () => {
        await store.attend("after", () => undefined);
        return true;
      };
      await until(() => isBack().catch(() => false));
    }));

  test("a connection that falls silent while a store is opened does not hold it up for ever", () =>
    PostgresPlace.use(async (place) => {
      const wire = await Wire.to(place.url);
      const pool = place.newPool(wire.url);
      place.atEnd(() => wire.cut());
      wire.loseNext("osbert.session");
      const store = postgresStore(pool, { schema: place.schema, timeoutMs: 300 });
      expectUnavailable([await store.open().catch((error: unknown) => error)]);
    }));

  test("a connection that is being prepared while a store is closed does not stay open", () =>
    PostgresPlace.use(async (place) => {
      const pool = place.newPool();
      let [preparing, stopped] = [false, false];
      const dedicated = new Dedicated({
        open: () => Session.open(pool, 5_000),
        up: async (_, again) => {
          preparing = again;
          await until(() => !again || stopped);
        },
        down: () => undefined,
        random: () => 0,
      });
      await dedicated.start();
      await dedicated.session.end();
      await until(() => preparing);
      await dedicated.stop();
      stopped = true;
      await until(() => pool.totalCount === 0);
    }));

  test("a pool that is used up does not hold a call for ever", () =>
    PostgresPlace.use(async (place) => {
      const pool = new pg.Pool({ connectionString: place.url, max: 2 });
      const store = postgresStore(pool, { schema: place.schema, timeoutMs: 200 });
      await store.open();
      const taken = await pool.connect();
      expectUnavailable([await store.read("k", []).catch((error: unknown) => error)]);
      taken.release();
      expect(await store.read("k", [])).toBeUndefined();
      // With one connection for itself, a store gets by with one more.
      await Promise.all(Array.from({ length: 50 }, (_, index) => store.commit(change(`k${index}`, null))));
      await store.close();
      await pool.end();
    }));

  test("a server that cannot be reached is store-unavailable at open, without the address", async () => {
    const pool = new pg.Pool({ connectionString: "postgres://someone:secret@127.0.0.1:1/nowhere" });
    const store = postgresStore(pool);
    const error = await store.open().catch((reason: unknown) => reason);
    expectUnavailable([error]);
    expect((error as Error).message).toBe("PostgreSQL refused the connection; what was asked may be repeated");
    await store.close();
    await pool.end();
  });

  test("an idle connection that breaks does not end the process", () =>
    PostgresPlace.use(async (place) => {
      const pool = place.newPool();
      const store = await place.store({}, pool);
      await pool.query(`select '${place.schema}'`); // Leaves one in the pool that nobody holds.
      await store.commit(change("k", null));
      await sleep(20);
      await place.terminateSessions();
      await until(() => pool.idleCount === 0);
      await until(async () => (await store.read("k", []).catch(() => undefined)) !== undefined);
    }));

  // 1: the session is accepted. 2: it was set up. 3 and more: it answered what it was asked for.
  test.each([1, 2, 3, 4])(
    "a server that hangs up right behind its answer number %i does not end the process",
    (answer) =>
      PostgresPlace.use(async (place) => {
        const wire = await Wire.to(place.url);
        const child = startChild({ URL: wire.url, SCHEMA: place.schema });
        place.atEnd(async () => {
          child.kill();
          await child.gone;
          await wire.cut();
        });
        await until(() => child.committed > 50 || child.ended);
        wire.hangUpBehind(answer);
        await until(() => wire.hungUp > 20 || child.ended);
        wire.hangUpBehind(Number.POSITIVE_INFINITY);
        const before = child.committed;
        await until(() => child.committed > before + 50 || child.ended);
        expect([child.ended, child.errors()]).toEqual([false, ""]);
      }),
  );

  test("a refused change in a batch does not hurt the others", () =>
    PostgresPlace.use(async (place) => {
      const store = await place.store();
      const changes = ["a", "b", "c"].map((key) => change(key, null, { state: key === "b" ? "\0" : "1" }));
      const outcomes = await Promise.allSettled(changes.map((each) => store.commit(each)));
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect((await store.find({ after: null, limit: 9 })).map(({ key }) => key)).toEqual(["a", "c"]);
    }));
});

/** A process that commits until it is killed. */
function startChild(env: Readonly<Record<string, string>>) {
  const child = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      "--conditions=@osbert/source",
      fileURLToPath(new URL("postgres-outage-child.ts", import.meta.url)),
    ],
    { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] },
  );
  let [committed, errors] = [0, ""];
  child.stdout.on("data", (data) => {
    committed += String(data).split("\n").length - 1;
  });
  child.stderr.on("data", (data) => {
    errors += data;
  });
  return {
    get committed() {
      return committed;
    },
    get ended() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    errors: () => errors,
    gone: once(child, "close"),
    kill: () => child.kill("SIGKILL"),
  };
}

/** 32 callers that create records until they are stopped. */
function startLoad(store: Store) {
  const acknowledged: string[] = [];
  const failed = new Map<string, string>();
  const errors: unknown[] = [];
  let [stopped, made] = [false, 0];
  const callers = Array.from({ length: 32 }, async () => {
    while (!stopped) {
      const key = `k${made++}`;
      const token = `token ${key}`;
      try {
        const { kind } = await store.commit(change(key, null, { token, putParts: [{ id: "p", body: token }] }));
        expect(kind).toBe("committed");
        acknowledged.push(key);
      } catch (error) {
        errors.push(error);
        failed.set(key, token);
      }
    }
  });
  return {
    acknowledged,
    failed,
    errors,
    progress: (count: number) => {
      const goal = acknowledged.length + count;
      return until(() => acknowledged.length >= goal);
    },
    async stop() {
      stopped = true;
      await Promise.all(callers);
    },
  };
}

async function expectAcknowledged(store: Store, keys: readonly string[]): Promise<void> {
  const found = await Promise.all(keys.map(async (key) => [key, await store.read(key, ["p"])] as const));
  for (const [key, resource] of found) expect([key, resource?.parts.get("p")]).toEqual([key, `token ${key}`]);
}

function expectUnavailable(errors: readonly unknown[]): void {
  for (const error of errors) {
    expect(error).toBeInstanceOf(JournalError);
    expect(error).toMatchObject({ code: "store-unavailable" });
  }
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}
