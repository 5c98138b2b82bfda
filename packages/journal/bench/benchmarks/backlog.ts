import { bestOf, inTurn } from "../../../../tools/bench/rounds.js";
import { median, medianRatio } from "../../../../tools/bench/statistics.js";
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
  const [left, drained, rounds] = quick ? [100 * keys, 500, 5] : [3_000 * keys, 5_000, 25];
  const [long, short, rawPlace] = [newPlace(ground, store), newPlace(ground, store), newPlace(ground, store)];
  await queue(long, keys, (left + drained) / keys);
  await queue(short, keys, 1);

  const rate = await drain(long, drained);
  const settles = await changesOfDraining();
  const ceiling = await ceilingOf(rawPlace, settles, keys);
  const ways = Object.keys(ceiling.grouped);
  // Each resource is created by its first change and drained by the others.
  const rawRate = async (way: string) =>
    ((await ceiling.grouped[way]?.(quick ? 150 : 600)) ?? 0) * (settles.length - 1);
  const raw = await inTurn(2, Object.fromEntries(ways.map((way) => [way, () => rawRate(way)])));
  await ceiling.close();
  const best = bestOf(raw, ways);
  tell({
    what: `${drained.toLocaleString("en")} drained, ${left.toLocaleString("en")} more queued`,
    store,
    value: rate / median(raw[best] ?? []),
    unit: "of the ceiling",
    target: null,
    beside: `${perSecond(rate)} of ${perSecond(median(raw[best] ?? []))} raw, ${best}`,
    details: { rate, best, ...raw },
  });

  const [withBacklog, without] = [await openClaims(long, keys), await openClaims(short, keys)];
  const claims = await inTurn(rounds, { withBacklog: withBacklog.claim, without: without.claim });
  await withBacklog.close();
  await without.close();
  tell({
    what: `claim of ${keys}, ${left.toLocaleString("en")} queued`,
    store,
    value: medianRatio(claims.withBacklog, claims.without),
    unit: "times",
    target: { kind: "at most", value: 1.3 },
    beside: `${micros(median(claims.withBacklog))} with, ${micros(median(claims.without))} with one operation each`,
    details: { queued: left, ...claims },
  });
}
