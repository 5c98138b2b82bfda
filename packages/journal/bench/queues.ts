import { randomUUID } from "node:crypto";
import { type Journal, type JournalEvent, openJournal, type Store } from "@osbert/journal";
import { by, type Change, input, kinds, recording } from "./operations.js";
import { connect, type Place } from "./places.js";

const kind = "no step";
/** Operations that are accepted with one decision. */
const together = 500;

/** Accepts so many operations on each of so many new resources. */
export async function queue(place: Place, keys: number, each: number): Promise<void> {
  const connected = connect(place);
  const journal = await openJournal({ store: connected.store, kinds, timeoutMs: 60_000 });
  await Promise.all(Array.from({ length: keys }, () => acceptMany(journal, each)));
  await journal.stop();
  await connected.end();
}

/** Runs what is queued until so many have ended. Answers how many did a second. */
export async function drain(place: Place, operations: number): Promise<number> {
  const connected = connect(place);
  const journal = await openUntilSettled(connected.store, operations);
  const started = performance.now();
  await journal.start();
  await journal.enough;
  const took = performance.now() - started;
  await journal.stop();
  await connected.end();
  return (operations * 1000) / took;
}

/** What is committed while a queue is drained: the first change makes it, each of the others ends one operation. */
export async function changesOfDraining(): Promise<readonly Change[]> {
  const changes: Change[] = [];
  const journal = await openUntilSettled(recording(changes), 40);
  await acceptMany(journal.journal, 200);
  await journal.start();
  await journal.enough;
  await journal.stop();
  const [made, ...settled] = changes;
  if (made === undefined) throw new Error("nothing was committed");
  return [{ ...made, entries: made.entries.slice(0, 1) }, ...settled];
}

export interface Claims {
  /** How long a claim of all resources takes, in milliseconds. They are given back afterwards. */
  readonly claim: () => Promise<number>;
  close(): Promise<void>;
}

export async function openClaims(place: Place, keys: number): Promise<Claims> {
  const { store, end } = connect(place);
  const owner = "bench";
  await store.open();
  return {
    async claim() {
      const started = performance.now();
      const request = { owner, leaseMs: 60_000, limit: keys, laneRoom: keys, rooms: new Map() };
      const { claimed } = await store.claim(request);
      const took = performance.now() - started;
      if (claimed.length !== keys) throw new Error(`${claimed.length} were claimed, not ${keys}`);
      await store.release(
        owner,
        claimed.map(({ key, epoch, seq }) => ({ key, epoch, seq, dueAt: "now" })),
      );
      return took;
    },
    async close() {
      await store.close();
      await end();
    },
  };
}

async function acceptMany(journal: Journal, operations: number): Promise<void> {
  const key = randomUUID();
  for (let left = operations; left > 0; left -= together) {
    const accept = Array.from({ length: Math.min(left, together) }, () => ({ kind, input }));
    await journal.transact(key, () => ({ result: null, change: { accept } }), { by, timeoutMs: 60_000 });
  }
}

async function openUntilSettled(store: Store, operations: number) {
  let left = operations;
  let isEnough = (): void => undefined;
  const enough = new Promise<void>((resolve) => {
    isEnough = resolve;
  });
  const observe = ({ kind: event }: JournalEvent) => {
    if (event === "settled" && --left === 0) isEnough();
  };
  const journal = await openJournal({ store, kinds, observe });
  return { journal, enough, start: () => journal.start(), stop: () => journal.stop({ drainMs: 1_000 }) };
}
