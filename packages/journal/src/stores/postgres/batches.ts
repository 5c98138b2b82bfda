import { JournalError } from "../../errors.js";
import type { Change, CommitOutcome, StoredEntry, StoredResource } from "../../store.js";
import { type Batcher, batcher } from "../batch.js";
import { commitOutcomes, commitQuery, commitStatements, inLockOrder, maxChanges } from "./commit.js";
import {
  type EntriesRequest,
  entriesAnswers,
  entriesStatement,
  entriesValues,
  type ReadRequest,
  readAnswers,
  readQuery,
  readStatements,
} from "./read.js";
import type { Schema } from "./schema.js";
import type { Sessions } from "./sessions.js";

/** Batches under way at a time: while one is being flushed to disk the next is prepared. */
const inFlight = 2;
/** From so many on, commits go as two batches, so that what follows from one is made ready while the server is at the other. */
const fewestToAlternate = 16;
const maxReads = 128;
/** Letters of all texts of a batch, so that large changes do not hold small ones up. */
const maxLetters = 1_000_000;

/** J12: commits at the same time share a statement, and so a transaction and a flush. */
export class Commits {
  readonly #sessions: Sessions;
  readonly #statements;
  readonly #clock: () => number | null;
  readonly #batcher: Batcher<Change, CommitOutcome>;

  constructor(sessions: Sessions, schema: Schema, clock: () => number | null) {
    this.#sessions = sessions;
    this.#statements = commitStatements(schema);
    this.#clock = clock;
    this.#batcher = batcher({
      run: (changes) => this.#commit(changes),
      maxItems: maxChanges,
      inFlight,
      keyOf: ({ key }) => key,
      weightOf: letters,
      maxWeight: maxLetters,
      isOfOne,
      alternates: (ready) => ready >= fewestToAlternate,
    });
  }

  add(change: Change): Promise<CommitOutcome> {
    return this.#batcher.add(change);
  }

  idle(): Promise<void> {
    return this.#batcher.idle();
  }

  async #commit(changes: readonly Change[]): Promise<readonly CommitOutcome[]> {
    const sorted = inLockOrder(changes);
    const { statement, values } = commitQuery(this.#statements, sorted, this.#clock());
    const outcomes = commitOutcomes(sorted, await this.#sessions.run(statement, values));
    const byKey = new Map(sorted.map(({ key }, index) => [key, outcomes[index]]));
    return changes.map(({ key }) => byKey.get(key) ?? { kind: "conflict" });
  }
}

/** Reads at the same time share a statement. */
export function readBatcher(sessions: Sessions, schema: Schema): Batcher<ReadRequest, StoredResource | undefined> {
  const statements = readStatements(schema);
  return batcher({
    async run(requests: readonly ReadRequest[]) {
      const { statement, values } = readQuery(statements, requests);
      return readAnswers(requests, await sessions.run(statement, values));
    },
    maxItems: maxReads,
    inFlight,
    isOfOne,
  });
}

/** Reads of entries by number at the same time share a statement. */
export function entriesBatcher(sessions: Sessions, schema: Schema): Batcher<EntriesRequest, readonly StoredEntry[]> {
  const statement = entriesStatement(schema);
  return batcher({
    run: async (requests: readonly EntriesRequest[]) =>
      entriesAnswers(requests, await sessions.run(statement, entriesValues(requests))),
    maxItems: maxReads,
    inFlight,
    isOfOne,
  });
}

/** One of them holds what PostgreSQL refuses, or is damaged, and nothing was done. The others must not suffer for it. */
function isOfOne(error: unknown): boolean {
  return !(error instanceof JournalError && error.code !== "unreadable");
}

function letters(change: Change): number {
  let sum = change.state.length;
  for (const { body } of change.entries) sum += body.length;
  for (const { body } of change.putParts) sum += body.length;
  return sum;
}
