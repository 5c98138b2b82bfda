import { report, severalProcesses, temporaryPostgres } from "@osbert/journal-suites/crash";
import { expect, inject, test } from "vitest";

const url = inject("postgresUrl");

test.skipIf(url === null)(
  "four engines on one PostgreSQL, one killed or frozen every second, run 5,000 operations in order and each step once",
  { timeout: 300_000 },
  async () => {
    const store = await temporaryPostgres(url ?? "");
    const result = await severalProcesses({ store: store.address });
    console.log(report("four engines on one PostgreSQL", result));
    expect(result.violations).toEqual([]);
    expect(result.outcomes).toEqual({ succeeded: 5_000 });
    expect(result.kills.atRandom).toBeGreaterThan(0);
    expect(result.freezes).toBeGreaterThan(0);
    await store.remove(); // Kept when it fails.
  },
);
