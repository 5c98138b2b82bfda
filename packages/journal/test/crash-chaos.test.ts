import {
  chaosSuite,
  report,
  type TemporaryStore,
  temporaryMysql,
  temporaryPostgres,
  temporarySqlite,
} from "@osbert/journal-suites/crash";
import { describe, expect, onTestFinished, test } from "vitest";
import { type LeftOut, type RunningServer, startMariadb, startPostgres } from "../../../tools/servers.js";

// Two minutes in all, the same storms each time: with this seed they hold everything that can be done to a store.
// `npm run test:crash -- --chaos` has other ones, and more.
const seed = 15;
const rounds = [
  { leases: "short", forMs: 12_000 },
  { leases: "usual", forMs: 8_000 },
] as const;
const timeout = 5 * 60_000;

describe("engines that are killed, frozen, cut off and lied to lose nothing, do nothing twice and sleep over nothing", () => {
  test("on SQLite", { timeout }, () => survives("SQLite", temporarySqlite));

  test("on PostgreSQL", { timeout }, async ({ skip }) => {
    const server = await startedHere(startPostgres());
    if ("leftOut" in server) return skip(server.leftOut);
    await survives("PostgreSQL", async () => restartable(await temporaryPostgres(server.url), server));
  });

  test("on MariaDB", { timeout }, async ({ skip }) => {
    const server = await startedHere(startMariadb());
    if ("leftOut" in server) return skip(server.leftOut);
    await survives("MariaDB", async () => restartable(await temporaryMysql(server.url), server));
  });
});

async function survives(name: string, open: () => Promise<TemporaryStore>): Promise<void> {
  let done = 0;
  for (const round of rounds) {
    const store = await open();
    const result = await chaosSuite({ store, seed, ...round });
    console.log(report(`${name}, ${round.leases} leases`, result));
    expect(result.violations).toEqual([]);
    done += result.kills.atRandom + Object.keys(result.disturbances).length;
    await store.remove(); // Kept when it fails.
  }
  // How many of the storm's disturbances fit into its time depends on how quick the machine is.
  expect(done).toBeGreaterThan(0);
}

/** A server of this test's own: others would not like to see theirs restarted. */
async function startedHere(starting: Promise<RunningServer | LeftOut>): Promise<RunningServer | LeftOut> {
  const server = await starting;
  if (!("leftOut" in server)) onTestFinished(() => server.stop());
  return server;
}

function restartable(store: TemporaryStore, { restart }: RunningServer): TemporaryStore {
  if (store.server === undefined || restart === undefined) return store;
  return { ...store, server: { ...store.server, restart } };
}
