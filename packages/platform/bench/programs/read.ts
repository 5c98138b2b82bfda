import { join } from "node:path";
import { sqliteStore } from "@osbert/journal/sqlite";
import { type OpenedPlatform, openPlatform } from "@osbert/platform";
import { timeOf } from "../../../../tools/bench/callers.js";
import { fill } from "../../../../tools/bench/fill.js";
import { inTurn } from "../../../../tools/bench/rounds.js";
import { timesOf } from "../figure.js";
import { asking, type InstantBroker, laneOfBroker, openBench, space, startBroker, wanted } from "../open-bench.js";
import { measure } from "../program.js";

const reads = 500;
/** Its journal is as long as it is to be, and something is queued: a read tells what will become of it. */
const known = { space, name: "known" };
/** What all others are copies of: one that was created, and no more. */
const plain = { space, name: "plain" };
const queued = 2;

await measure(async ({ folder, quick }) => {
  const [many, entries, rounds] = quick ? [50_000, 1_000, 5] : [1_000_000, 10_000, 15];
  const [few, fewEntries] = [1_000, 10];
  const broker = await startBroker();
  const small = await populate(join(folder, "few.db"), broker, few, fewEntries);
  const large = await populate(join(folder, "many.db"), broker, many, entries);
  const results = await inTurn(rounds, {
    few: () => read(small, () => known.name),
    many: () => read(large, () => known.name),
    "others of few": () => read(small, () => copyOf(few)),
    "others of many": () => read(large, () => copyOf(many)),
  });
  broker.end();
  const than = `against ${few.toLocaleString("en")} with ${fewEntries}`;
  return [
    timesOf(
      `the one read of an instance with ${entries.toLocaleString("en")} entries among ${many.toLocaleString("en")} instances, ${than}`,
      ...([results.many, results.few, 1.3] as const),
    ),
    timesOf(
      "the same, each of another instance, in no order",
      ...([results["others of many"], results["others of few"], null] as const),
    ),
  ];
});

/** A platform that plays nothing, on a store with so many instances. */
async function populate(
  path: string,
  broker: InstantBroker,
  instances: number,
  entries: number,
): Promise<OpenedPlatform> {
  const { platform, until } = await openBench(sqliteStore(path), broker);
  const [, created] = [await platform.instances.create(plain, wanted, asking), until(2)];
  await platform.instances.create(known, wanted, asking);
  await created;
  let length = await lengthOf(platform);
  for (let diskGb = 1; length < entries - queued; diskGb++) {
    const ended = until(1);
    await platform.instances.update(known, { parameters: JSON.stringify({ diskGb: 1 + (diskGb % 1_000) }) }, asking);
    await ended;
    if (diskGb % 100 === 1 || length > entries - 100) length = await lengthOf(platform);
  }
  platform.journal.pauseLanes(new Set([laneOfBroker]));
  for (let version = 0; version < queued; version++)
    await platform.instances.update(known, { parameters: JSON.stringify({ version: `${version}` }) }, asking);
  await platform.stop();
  fill(path, `instance/${plain.space}/${plain.name}`, instances);
  return openPlatform({ store: sqliteStore(path) });
}

async function lengthOf({ instances }: OpenedPlatform): Promise<number> {
  const [last] = await instances.journal(known, { before: Number.MAX_SAFE_INTEGER, limit: 1 });
  return last?.seq ?? 0;
}

/** Milliseconds for one. */
async function read({ instances }: OpenedPlatform, name: () => string): Promise<number> {
  const one = async () => {
    const view = await instances.read({ space, name: name() });
    if (view?.phase === undefined) throw new Error("the instance is not there");
  };
  return (await timeOf(1, reads, one)) / reads;
}

function copyOf(instances: number): string {
  return `${plain.name}-${Math.floor(Math.random() * instances)}`;
}
