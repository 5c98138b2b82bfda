import { report, severalProcesses, temporaryPostgres } from "@osbert/journal-suites/crash";
import { expect, inject, test } from "vitest";

const url = inject("postgresUrl");

test.skipIf(url === null)(
  "four engines on one PostgreSQL, one killed or frozen every second, run 5,000 operations in order and each step once",
  { timeout: 300_000 },
  async () => {
    const store = await temporaryPostgres(url ?? "");
    const verdict = await severalProcesses({ store: store.address });
    console.log(report("four engines on one PostgreSQL", verdict));
    expect(verdict.violations).toEqual([]);
    expect(verdict.outcomes).toEqual({ succeeded: 5_000 });
    expect(verdict.kills.atRandom).toBeGreaterThan(0);
    expect(verdict.freezes).toBeGreaterThan(0);
    await store.remove(); // Kept when it fails.
  },
);
