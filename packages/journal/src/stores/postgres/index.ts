import type {
  BacklogRequest,
  Change,
  ClaimAnswer,
  ClaimRequest,
  CommitOutcome,
  EntryRange,
  Expected,
  Held,
  HeldPage,
  PartRange,
  Query,
  Release,
  Store,
  StoredBacklog,
  StoredEntry,
  StoredPart,
  StoredRecord,
  StoredResource,
  TextReplacement,
  WakeListener,
} from "../../store.js";
import { backlogOf, backlogStatements, countsValues } from "./backlog.js";
import { Commits, entriesBatcher, readBatcher } from "./batches.js";
import { checkSessions } from "./check-sessions.js";
import { claimAnswer, claimQuery, claimStatements, crowdedWalk } from "./claim.js";
import { clockStatement } from "./clock.js";
import { inLockOrder } from "./commit.js";
import { Dedicated } from "./dedicated.js";
import { type PostgresPool, tolerateBrokenClients } from "./driver.js";
import { DueFloors } from "./due-floors.js";
import {
  goneStatement,
  goneValues,
  heldByStatement,
  heldByValues,
  reapStatement,
  releaseStatement,
  releaseValues,
  renewStatement,
  renewValues,
} from "./leases.js";
import { entriesQuery, findQuery, listStatements, partsValues } from "./lists.js";
import { migrate } from "./migrate.js";
import { Presence } from "./presence.js";
import { versionsStatement, versionsValues } from "./read.js";
import { replaceTextsStatement, replaceTextsValues } from "./replace-texts.js";
import { entryOf, numberAt, recordOf, textAt } from "./rows.js";
import { type Schema, schemaOf } from "./schema.js";
import { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { removeStatement, restoreStatement, setAsideStatement } from "./upkeep.js";
import { Wake } from "./wake.js";

export type { PostgresClient, PostgresPool, PostgresQuery } from "./driver.js";

export interface PostgresStoreOptions {
  /** Where the tables are. Default "osbert". */
  readonly schema?: string;
  /** Whether `open` migrates the schema (default), or only checks it. */
  readonly migrate?: boolean;
  /**
   * How many connections the statements run over, at most. One more is held to be woken and to be known as alive.
   * Default 4.
   */
  readonly connections?: number;
  /**
   * How long to wait for a connection of the pool, and for an answer of the server, before the store counts as
   * unavailable. Default 10,000.
   */
  readonly timeoutMs?: number;
  /** For tests: the store's clock, in milliseconds since 1970, in place of the server's. */
  readonly clock?: () => number;
}

/**
 * Journals in PostgreSQL (tested with 15 and 18), for any number of processes on one database. The pool stays the
 * caller's, who ends it after the store was closed.
 */
export function postgresStore(pool: PostgresPool, options: PostgresStoreOptions = {}): Store {
  return new PostgresStore(pool, options);
}

class PostgresStore implements Store {
  readonly name = "postgres";
  readonly pace = { leaseMs: 30_000, pollMs: 5_000, reapMs: 500 };
  readonly #pool: PostgresPool;
  readonly #schema: Schema;
  readonly #mayMigrate: boolean;
  readonly #timeoutMs: number;
  readonly #now: () => number | null;
  readonly #statements: ReturnType<typeof statementsOf>;
  readonly #sessions: Sessions;
  readonly #commits: Commits;
  readonly #reads: ReturnType<typeof readBatcher>;
  readonly #entries: ReturnType<typeof entriesBatcher>;
  readonly #wake: Wake;
  readonly #presence: Presence;
  readonly #dedicated: Dedicated;
  readonly #dueFloors = new DueFloors();

  constructor(pool: PostgresPool, options: PostgresStoreOptions) {
    const { clock, connections = 4, migrate = true, schema = "osbert", timeoutMs = 10_000 } = options;
    this.#pool = pool;
    this.#schema = schemaOf(schema);
    this.#mayMigrate = migrate;
    this.#timeoutMs = timeoutMs;
    this.#now = () => clock?.() ?? null;
    this.#statements = statementsOf(this.#schema);
    this.#sessions = new Sessions(pool, { max: connections, timeoutMs });
    this.#commits = new Commits(this.#sessions, this.#schema, this.#now);
    this.#reads = readBatcher(this.#sessions, this.#schema);
    this.#entries = entriesBatcher(this.#sessions, this.#schema);
    this.#wake = new Wake(this.#schema);
    this.#presence = new Presence(this.#schema);
    this.#dedicated = new Dedicated({
      open: () => Session.open(pool, timeoutMs),
      up: async (session, again) => {
        await this.#wake.listen(session);
        // Whatever was told meanwhile was not heard.
        if (again) for (const what of ["work", "value"] as const) this.#wake.call(what);
      },
      down: () => this.#presence.lose(),
    });
  }

  async open(): Promise<void> {
    tolerateBrokenClients(this.#pool);
    await checkSessions(this.#pool, this.#timeoutMs);
    await migrate(this.#pool, this.#schema, this.#mayMigrate, this.#timeoutMs);
    await this.#dedicated.start();
  }

  async close(): Promise<void> {
    await Promise.all([this.#commits.idle(), this.#reads.idle(), this.#entries.idle()]);
    await Promise.all([this.#dedicated.stop(), this.#sessions.close()]);
  }

  async now(): Promise<number> {
    const [row] = await this.#sessions.run(this.#statements.clock, [this.#now()]);
    return numberAt(row, 0);
  }

  read(key: string, parts: readonly string[]): Promise<StoredResource | undefined> {
    return this.#reads.add({ key, parts });
  }

  async versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>> {
    const rows = await this.#sessions.run(this.#statements.versions, versionsValues(keys));
    return new Map(rows.map((row) => [textAt(row, 0), { seq: numberAt(row, 1), epoch: numberAt(row, 2) }]));
  }

  async commit(change: Change): Promise<CommitOutcome> {
    try {
      return await this.#commits.add(change);
    } finally {
      // Even if it failed: it may have been committed.
      if (change.dueAt === "keep") this.#dueFloors.add(change.lane);
      else if (change.dueAt !== null) this.#dueFloors.lower(change.lane, change.dueAt);
    }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const floors = this.#dueFloors.floors(request.rooms.keys());
    const { statement, values } = claimQuery(this.#statements.claims, request, floors, this.#now());
    const rows = await this.#sessions.run(statement, values);
    const answer = claimAnswer(rows, floors);
    const walk = crowdedWalk(rows, answer);
    if (walk !== undefined) this.#dueFloors.learn(walk);
    this.#dueFloors.passed(answer.now);
    return answer;
  }

  async renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    if (held.length === 0) return [];
    const values = renewValues(owner, inLockOrder(held), leaseMs, this.#now());
    const rows = await this.#sessions.run(this.#statements.renew, values);
    return rows.map((row) => textAt(row, 0));
  }

  async heldBy(owner: string, page: HeldPage): Promise<readonly string[]> {
    const rows = await this.#sessions.run(this.#statements.heldBy, heldByValues(owner, page));
    return rows.map((row) => textAt(row, 0));
  }

  async release(owner: string, held: readonly Release[]): Promise<void> {
    if (held.length === 0) return;
    try {
      await this.#sessions.run(this.#statements.release, releaseValues(owner, inLockOrder(held), this.#now()));
    } finally {
      for (const { dueAt } of held) if (typeof dueAt === "number") this.#dueFloors.lower(null, dueAt);
    }
  }

  async attend(owner: string, lost: () => void): Promise<void> {
    await this.#presence.attend(this.#dedicated.session, owner, lost);
  }

  leave(owner: string): Promise<void> {
    return this.#presence.leave(owner);
  }

  async reap(owner: string): Promise<number> {
    const [row] = await this.#sessions.run(this.#statements.reap, [this.#now(), owner]);
    return numberAt(row, 0);
  }

  async gone(owners: readonly string[]): Promise<readonly string[]> {
    if (owners.length === 0) return [];
    return (await this.#sessions.run(this.#statements.gone, goneValues(owners))).map((row) => textAt(row, 0));
  }

  async entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]> {
    if (range.kind === "numbers") return this.#entries.add({ key, seqs: range.seqs });
    const { statement, values } = entriesQuery(this.#statements.lists, key, range);
    return (await this.#sessions.run(statement, values)).map((row) => entryOf(row));
  }

  async parts(key: string, range: PartRange): Promise<readonly StoredPart[]> {
    const rows = await this.#sessions.run(this.#statements.lists.parts, partsValues(key, range));
    return rows.map((row) => ({ id: textAt(row, 0), body: textAt(row, 1) }));
  }

  async find(query: Query): Promise<readonly StoredRecord[]> {
    const { statement, values } = findQuery(this.#statements.lists, query);
    return (await this.#sessions.run(statement, values)).map((row) => recordOf(row));
  }

  async backlog(request: BacklogRequest): Promise<StoredBacklog> {
    const { counts, samples } = this.#statements.backlog;
    const counted = await this.#sessions.run(counts, countsValues(request, this.#now()));
    return backlogOf(counted, await this.#sessions.run(samples, [request.sample]));
  }

  async remove(key: string, { seq, epoch }: Expected): Promise<boolean> {
    const [row] = await this.#sessions.run(this.#statements.remove, [key, seq, epoch]);
    return numberAt(row, 0) === 1;
  }

  async setAside(key: string): Promise<void> {
    await this.#sessions.run(this.#statements.setAside, [key]);
  }

  async restore(key: string): Promise<void> {
    try {
      await this.#sessions.run(this.#statements.restore, [key, this.#now()]);
    } finally {
      // Its lane may be one in which nothing else is due: earlier than every floor.
      this.#dueFloors.lower(null, 0);
    }
  }

  async replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number> {
    if (replacements.length === 0) return 0;
    const [row] = await this.#sessions.run(this.#statements.replaceTexts, replaceTextsValues(key, replacements));
    return numberAt(row, 0);
  }

  onWake(listener: WakeListener): () => void {
    return this.#wake.on(listener);
  }
}

function statementsOf(schema: Schema) {
  return {
    clock: clockStatement,
    claims: claimStatements(schema),
    renew: renewStatement(schema),
    heldBy: heldByStatement(schema),
    release: releaseStatement(schema),
    reap: reapStatement(schema),
    gone: goneStatement(schema),
    lists: listStatements(schema),
    versions: versionsStatement(schema),
    backlog: backlogStatements(schema),
    remove: removeStatement(schema),
    setAside: setAsideStatement(schema),
    restore: restoreStatement(schema),
    replaceTexts: replaceTextsStatement(schema),
  };
}
