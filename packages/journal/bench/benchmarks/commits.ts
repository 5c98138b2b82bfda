import type { Store } from "@osbert/journal";
import type { SqliteStore } from "@osbert/journal/sqlite";
import { interposedStore } from "@osbert/journal/testing";
import { timeOf } from "../../../../tools/bench/callers.js";
import type { Benchmark } from "../benchmark.js";
import { openBench } from "../operations.js";
import { connect, newPlace } from "../places.js";

const targets = { "no step": 2, "one step": 3 };

export const commits: Benchmark = {
  name: "commits",
  about:
    "calls that write durably for one whole operation, counted at the store while the engine runs in the same process",
  stores: ["SQLite", "PostgreSQL", "MariaDB"],
  longestMs: 60_000,
  async run({ ground, stores, quick, tell }) {
    const operations = quick ? 128 : 640;
    for (const store of stores) {
      for (const kind of ["no step", "one step"] as const) {
        for (const callers of [1, 64]) {
          const connected = connect(newPlace(ground, store));
          const counts = { commit: 0, claim: 0, "claim of nothing": 0, renew: 0, release: 0 };
          const { journal, lifecycle } = await openBench(counting(connected.store, counts));
          await journal.start();
          const before = transactionsOf(connected.store);
          await timeOf(callers, operations, () => lifecycle(kind));
          const transactions = transactionsOf(connected.store) - before;
          await journal.stop();
          await connected.end();
          const writes = counts.commit + counts.claim + counts.renew + counts.release;
          const shared = Number.isNaN(transactions)
            ? ""
            : `; they shared ${(transactions / operations).toFixed(2)} transactions an operation`;
          tell({
            what: `${kind}, ${callers} ${callers === 1 ? "caller" : "callers"}`,
            store,
            value: writes / operations,
            unit: "commits",
            target: { kind: "at most", value: targets[kind] },
            beside: `${operations} operations: ${list(counts)}${shared}`,
            details: { operations, ...counts, ...(Number.isNaN(transactions) ? {} : { transactions }) },
          });
        }
      }
    }
  },
};

type Counts = Record<"commit" | "claim" | "claim of nothing" | "renew" | "release", number>;

/** Counts what writes. A claim that finds nothing writes nothing. */
function counting(store: Store, counts: Counts): Store {
  return interposedStore(store, async ({ method }, go) => {
    const answer = await go();
    if (method === "claim") {
      const { claimed } = answer as { readonly claimed: readonly unknown[] };
      counts[claimed.length > 0 ? "claim" : "claim of nothing"]++;
    } else if (method === "commit" || method === "renew" || method === "release") counts[method]++;
    return answer;
  });
}

/** Of the stores, SQLite's counts its transactions. */
function transactionsOf(store: Store): number {
  return store.name === "sqlite" ? (store as SqliteStore).stats().transactions : Number.NaN;
}

function list(counts: Counts): string {
  const entries = Object.entries(counts).filter(([, count]) => count > 0);
  return entries.map(([name, count]) => `${name} ${count}`).join(", ");
}
