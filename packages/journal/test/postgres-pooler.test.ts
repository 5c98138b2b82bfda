import { describe, expect, type TestContext, test } from "vitest";
import { startPgbouncer } from "../../../tools/servers.js";
import { change, PostgresPlace, postgresUrl } from "./postgres-support.js";

describe.skipIf(postgresUrl === null)("PostgreSQL behind pgbouncer", () => {
  test("in transaction mode, where advisory locks would outlive their owner, is refused at open with what to do", (context) =>
    PostgresPlace.use(async (place) => {
      const pool = place.newPool(await bouncer(context, place, "transaction"));
      await expect(place.store({}, pool)).rejects.toThrow(/share its sessions.*pool_mode = session/);
    }));

  test("in session mode is used like PostgreSQL itself", (context) =>
    PostgresPlace.use(async (place) => {
      const pool = place.newPool(await bouncer(context, place, "session"));
      const store = await place.store({}, pool);
      expect((await store.commit(change("k", null))).kind).toBe("committed");
    }));
});

/** Left out where there is no pgbouncer, as the servers are. */
async function bouncer(context: TestContext, place: PostgresPlace, mode: "session" | "transaction"): Promise<string> {
  const running = await startPgbouncer(place.url, mode);
  if ("leftOut" in running) {
    if (process.env.OSBERT_TEST_REQUIRE === "all") throw new Error(running.leftOut);
    return context.skip(running.leftOut);
  }
  place.atEnd(() => running.stop());
  return running.url;
}
