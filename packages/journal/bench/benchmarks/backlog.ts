import { bestOf, inTurn } from "../../../../tools/bench/rounds.js";
import { median, medianRatio, ratioSpread } from "../../../../tools/bench/statistics.js";
import type { Benchmark, Task } from "../benchmark.js";
import { ceilingOf } from "../ceilings/ceiling-of.js";
import { micros, perSecond } from "../figure.js";
import { newPlace, type StoreName } from "../places.js";
import { changesOfDraining, drain, openClaims, queue } from "../queues.js";

const keys = 50;

export const backlog: Benchmark = {
  name: "backlog",
  about:
    "150,000 operations queued on 50 resources: what a claim costs in times of one without a backlog, and how fast it drains",
  stores: ["SQLite", "PostgreSQL", "MariaDB"],
  longestMs: 180_000,
  async run(task) {
    for (const store of task.stores) await measure(task, store);
  },
};

async function measure({ ground, quick, tell }: Task, store: StoreName): Promise<void> {
  const [left, drained, drains, rounds] = quick ? [100 * keys, 100, 3, 5] : [3_000 * keys, 1_000, 5, 25];
  const [long, short, rawPlace] = [newPlace(ground, store), newPlace(ground, store), newPlace(ground, store)];
  // One round more than counts: the first only warms up.
  await queue(long, keys, (left + drained * (drains + 1)) / keys);
  await queue(short, keys, 1);

  const settles = await changesOfDraining();
  const ceiling = await ceilingOf(rawPlace, settles, keys);
  const ways = Object.keys(ceiling.grouped);
  // Each resource is created by its first change and drained by the others.
  const rawRate = async (way: string) =>
    ((await ceiling.grouped[way]?.(quick ? 150 : 600)) ?? 0) * (settles.length - 1);
  const results = await inTurn<string>(drains, {
    ...Object.fromEntries(ways.map((way) => [way, () => rawRate(way)])),
    journal: () => drain(long, drained),
  });
  await ceiling.close();
  const best = bestOf(results, ways);
  const [rate, raw] = [results.journal ?? [], results[best] ?? []];
  tell({
    what: `${(drained * drains).toLocaleString("en")} drained, ${left.toLocaleString("en")} more queued`,
    store,
    value: medianRatio(rate, raw),
    spread: ratioSpread(rate, raw),
    unit: "of the ceiling",
    target: null,
    beside: `${perSecond(median(rate))} of ${perSecond(median(raw))} raw, ${best}`,
    details: { best, ...results },
  });

  const [withBacklog, without] = [await openClaims(long, keys), await openClaims(short, keys)];
  const claims = await inTurn(rounds, { withBacklog: withBacklog.claim, without: without.claim });
  await withBacklog.close();
  await without.close();
  tell({
    what: `claim of ${keys}, ${left.toLocaleString("en")} queued`,
    store,
    value: medianRatio(claims.withBacklog, claims.without),
    spread: ratioSpread(claims.withBacklog, claims.without),
    unit: "times",
    target: { kind: "at most", value: 1.3 },
    beside: `${micros(median(claims.withBacklog))} with, ${micros(median(claims.without))} with one operation each`,
    details: { queued: left, ...claims },
  });
}
