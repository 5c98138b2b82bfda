import type { Journal, Store } from "@osbert/journal";
import { timeOf } from "../../../../tools/bench/callers.js";
import { inTurn } from "../../../../tools/bench/rounds.js";
import { median, medianRatio, ratioSpread } from "../../../../tools/bench/statistics.js";
import type { Benchmark, Task } from "../benchmark.js";
import { micros } from "../figure.js";
import { fill } from "../fill/fill.js";
import { acceptNew, openBench } from "../operations.js";
import { bytesOf, type Connected, connect, newPlace, type PostgresPlace, type SqlitePlace } from "../places.js";

const callers = 64;
const few = 1_000;

export const resources: Benchmark = {
  name: "resources",
  about:
    "what accept, claim and read cost with 1,000,000 resources in the store, in times of what they cost with 1,000; their size, and a start",
  stores: ["SQLite", "PostgreSQL"],
  longestMs: 240_000,
  async run(task) {
    for (const store of task.stores) await compare(task, store === "SQLite" ? "SQLite" : "PostgreSQL");
  },
};

async function compare({ ground, quick, resources, tell }: Task, store: "SQLite" | "PostgreSQL"): Promise<void> {
  const many = resources;
  const rounds = quick ? 4 : 15;
  const small = await populate(newPlace(ground, store), few);
  const large = await populate(newPlace(ground, store), many);
  // Accepted first, claimed next, so that a claim always finds as many as were accepted.
  const results = await inTurn(rounds, {
    "accept, few": small.accept,
    "accept, many": large.accept,
    "claim, few": small.claim,
    "claim, many": large.claim,
    "read, few": small.read,
    "read, many": large.read,
  });
  await small.close();
  await large.close();
  const shown = many.toLocaleString("en");
  for (const what of ["accept", "claim", "read"] as const) {
    const [withFew, withMany] = [results[`${what}, few`], results[`${what}, many`]];
    tell({
      what: `${what} ${words[what]}, ${shown} resources`,
      store,
      value: medianRatio(withMany, withFew),
      spread: ratioSpread(withMany, withFew),
      unit: "times",
      target: { kind: "at most", value: many > 1_000_000 ? 1.5 : 1.3 },
      beside: `${micros(median(withMany))} each with ${shown}, ${micros(median(withFew))} with ${few.toLocaleString("en")}`,
      details: { resources: many, withMany, withFew },
    });
  }
  const { bytes, startMs } = large;
  tell({
    what: `start with ${shown} resources, until the engine runs`,
    store,
    value: startMs,
    unit: "ms",
    target: null,
    beside: `${Math.round(small.startMs)} ms with ${few.toLocaleString("en")}; each takes ${Math.round(bytes / many).toLocaleString("en")} bytes on disk, with two entries and all indexes`,
    details: { resources: many, bytes, startMs },
  });
}

const words = { accept: `by ${callers} callers`, claim: `of ${callers}`, read: "one after the other" };

/** Costs in milliseconds for one. */
interface Populated {
  readonly accept: () => Promise<number>;
  readonly claim: () => Promise<number>;
  readonly read: () => Promise<number>;
  /** Of all there was when it was opened. */
  readonly bytes: number;
  /** From opening the store to an engine that runs. */
  readonly startMs: number;
  close(): Promise<void>;
}

/** So few at a time that a thousand resources stay about a thousand. */
const accepts = 4 * callers;
const reads = 500;

async function populate(place: SqlitePlace | PostgresPlace, count: number): Promise<Populated> {
  await fill(place, count);
  const bytes = await bytesOf(place);
  const startMs = await startTime(place);
  const connected = connect(place);
  const { journal } = await openBench(connected.store);
  const keys = await someKeys(journal);
  return {
    accept: async () => (await timeOf(callers, accepts, () => acceptNew(journal, "no step"))) / accepts,
    claim: () => claimAll(connected.store),
    async read() {
      let nth = 0;
      const read = async () => journal.read(keys[nth++ % keys.length] ?? "");
      return (await timeOf(1, reads, read)) / reads;
    },
    bytes,
    startMs,
    close: () => close(journal, connected),
  };
}

async function startTime(place: SqlitePlace | PostgresPlace): Promise<number> {
  const connected = connect(place);
  const started = performance.now();
  const { journal } = await openBench(connected.store);
  await journal.start();
  const took = performance.now() - started;
  await close(journal, connected);
  return took;
}

/** Keys from all over the place. */
async function someKeys(journal: Journal): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let nth = 0; nth < 4096; nth++) {
    const after = Math.floor(Math.random() * 0xffff)
      .toString(16)
      .padStart(4, "0");
    const [found] = (await journal.find({ after, limit: 1 })).items;
    if (found !== undefined) keys.push(found.key);
  }
  return keys;
}

/** The mean of the claims that take all there is. They stay claimed. */
async function claimAll(store: Store): Promise<number> {
  const claim = () =>
    store.claim({ owner: "bench", leaseMs: 3_600_000, limit: callers, laneRoom: callers, rooms: new Map() });
  const started = performance.now();
  for (let claimed = 0; claimed < accepts; ) {
    const answer = await claim();
    if (answer.claimed.length === 0) throw new Error(`only ${claimed} of ${accepts} were there to claim`);
    claimed += answer.claimed.length;
  }
  return (performance.now() - started) / (accepts / callers);
}

async function close(journal: Journal, connected: Connected): Promise<void> {
  await journal.stop();
  await connected.end();
}
