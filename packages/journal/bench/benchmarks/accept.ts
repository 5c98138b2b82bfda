import { ratePerSecond } from "../../../../tools/bench/callers.js";
import { againstCeiling } from "../against-ceiling.js";
import type { Benchmark } from "../benchmark.js";
import { ceilingOf } from "../ceilings/ceiling-of.js";
import { acceptNew, changesOfAccept, openBench } from "../operations.js";
import { connect, newPlace } from "../places.js";

const callers = 64;
const targets = { SQLite: 0.6, PostgreSQL: 0.6, MariaDB: 0.4 };

export const accept: Benchmark = {
  name: "accept",
  about: "operations accepted a second, each on a new resource, 64 callers; ceiling: the raw driver in groups of 64",
  stores: ["SQLite", "PostgreSQL", "MariaDB"],
  longestMs: 180_000,
  async run({ ground, stores, quick, tell }) {
    const [rounds, ms] = quick ? [3, 150] : [7, 600];
    for (const store of stores) {
      const ceiling = await ceilingOf(newPlace(ground, store), await changesOfAccept(), callers);
      const connected = connect(newPlace(ground, store));
      const { journal } = await openBench(connected.store);
      const ours = (forMs: number) => ratePerSecond(callers, forMs, () => acceptNew(journal, "no step"));
      const result = await againstCeiling({ ceiling, ours, rounds, ms });
      await journal.stop();
      await connected.end();
      await ceiling.close();
      const unit = "of the ceiling";
      tell({
        what: `${callers} callers`,
        store,
        value: result.share,
        spread: result.spread,
        unit,
        target: { kind: "at least", value: targets[store] },
        beside: result.beside,
        details: result.details,
      });
      if (result.shareOfShared === undefined) continue;
      // Callers that wait for their answers can never have more under way; the best grouping above has.
      tell({
        what: `the same, ceiling with ${callers} under way`,
        store,
        value: result.shareOfShared,
        spread: result.spreadOfShared,
        unit,
        target: null,
        beside: result.besideShared,
        details: {},
      });
    }
  },
};
