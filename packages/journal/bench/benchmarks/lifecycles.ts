import { ratePerSecond } from "../../../../tools/bench/callers.js";
import { againstCeiling } from "../against-ceiling.js";
import type { Benchmark, Task } from "../benchmark.js";
import { ceilingOf } from "../ceilings/ceiling-of.js";
import { changesOfLifecycle, type Kind, openBench } from "../operations.js";
import { connect, newPlace, type StoreName } from "../places.js";

const callers = 64;

export const lifecycles: Benchmark = {
  name: "lifecycles",
  about:
    "operations accepted, run and settled a second, 64 callers; ceiling: the raw driver doing the same commits in groups of 64",
  stores: ["SQLite", "PostgreSQL", "MariaDB"],
  longestMs: 180_000,
  async run(task) {
    for (const store of task.stores) {
      await measure(task, store, "no step");
      await measure(task, store, "one step");
    }
  },
};

async function measure({ ground, quick, tell }: Task, store: StoreName, kind: Kind): Promise<void> {
  const [rounds, ms] = quick ? [3, 150] : [5, 600];
  const changes = await changesOfLifecycle(kind);
  const ceiling = await ceilingOf(newPlace(ground, store), changes, callers);
  const connected = connect(newPlace(ground, store));
  const { journal, lifecycle } = await openBench(connected.store);
  await journal.start();
  const ours = (forMs: number) => ratePerSecond(callers, forMs, () => lifecycle(kind));
  const { share, spread, beside, details } = await againstCeiling({ ceiling, ours, rounds, ms });
  await journal.stop();
  await connected.end();
  await ceiling.close();
  tell({
    what: `${kind}, ${changes.length} commits each`,
    store,
    value: share,
    spread,
    unit: "of the ceiling",
    target: null,
    beside,
    details,
  });
}
