import { JournalError } from "../../errors.js";
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
  Woken,
} from "../../store.js";
import { type Batcher, batcher } from "../batch.js";
import { backlog } from "./backlog.js";
import { claim } from "./claim.js";
import { Commits } from "./commit.js";
import type { MysqlPool } from "./driver.js";
import { heldBy, release, renew } from "./leases.js";
import { checkSchema, migrate } from "./migrate.js";
import { checkFits, weightOf } from "./packet.js";
import { Presence } from "./presence.js";
import { findEntries, findParts, findRecords, findVersions } from "./queries.js";
import { type Reading, readAll } from "./reads.js";
import { gone, reap } from "./reap.js";
import { replaceTexts } from "./replace-texts.js";
import { lookAtServer, type Server } from "./server.js";
import { Sessions } from "./sessions.js";
import { int, serverNow } from "./sql.js";
import { type Tables, tablesOf } from "./tables.js";
import { remove, restore, setAside } from "./upkeep.js";

export interface Settings {
  readonly prefix: string;
  readonly clock?: () => number;
  readonly migrate: boolean;
  readonly writers: number;
  readonly connectWithinMs: number;
  readonly answerWithinMs: number;
}

/** What there is only while the store is open. */
interface Opened {
  readonly server: Server;
  readonly commits: Commits;
  readonly presence: Presence;
}

/** One change's end: what the caller is answered, or what only its own caller must be told. */
type End = CommitOutcome | { readonly kind: "failed"; readonly error: unknown };

/** From so many on, commits go as one batch a writer, so that what follows from one is made ready while the server is at the others. */
const fewestToAlternate = 16;

export class MysqlStore implements Store {
  readonly name = "mysql";
  readonly pace = { leaseMs: 30_000, pollMs: 500, reapMs: 500 };
  readonly #settings: Settings;
  readonly #tables: Tables;
  readonly #sessions: Sessions;
  readonly #committing: Batcher<Change, End>;
  readonly #reading: Batcher<Reading, StoredResource | undefined>;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #listeners = new Set<WakeListener>();
  #opened: Opened | undefined;

  constructor(pool: MysqlPool, settings: Settings) {
    this.#settings = settings;
    this.#tables = tablesOf(settings.prefix);
    this.#sessions = new Sessions(pool, settings);
    this.#committing = batcher({
      run: (changes) => this.#commitAll(changes),
      maxItems: 128,
      inFlight: settings.writers,
      alternates: (ready) => ready >= fewestToAlternate,
      keyOf: ({ key }) => key,
      weightOf,
      maxWeight: 4 * 1024 * 1024,
    });
    this.#reading = batcher({
      run: (readings) => readAll(this.#sessions, this.#tables, readings),
      maxItems: 32,
      inFlight: 2,
      weightOf: ({ parts }) => 1 + parts.length,
      maxWeight: 500,
    });
  }

  async open(): Promise<void> {
    const server = await lookAtServer(this.#sessions);
    if (this.#settings.migrate) await migrate(this.#sessions, this.#tables, server.database);
    else await checkSchema(this.#sessions, this.#tables);
    const commits = new Commits(this.#sessions, this.#tables, this.#settings.clock, server);
    await commits.open();
    this.#opened = {
      server,
      commits,
      presence: new Presence(this.#sessions, this.#tables, server.database, () => this.#now()),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#committing.idle(), this.#reading.idle(), Promise.allSettled(this.#underWay)]);
    await this.#opened?.presence.close();
    await this.#sessions.close();
    this.#opened = undefined;
  }

  async now(): Promise<number> {
    const { clock } = this.#settings;
    if (clock !== undefined) return clock();
    const rows = await this.#during(this.#sessions.use((session) => session.rows(`select ${serverNow} as now_ms`)));
    return Number(rows[0]?.now_ms);
  }

  read(key: string, parts: readonly string[]): Promise<StoredResource | undefined> {
    return this.#reading.add({ key, parts });
  }

  async versions(keys: readonly string[]): Promise<ReadonlyMap<string, Expected>> {
    return keys.length === 0 ? new Map() : this.#during(findVersions(this.#sessions, this.#tables, keys));
  }

  async commit(change: Change): Promise<CommitOutcome> {
    checkFits(change, this.#open().server.packetBytes);
    const end = await this.#committing.add(change);
    if (end.kind === "failed") throw end.error;
    if (end.kind === "committed" && change.wake) this.#wake("work");
    if (end.kind === "committed" && change.followed) this.#wake("value", change.key);
    return end;
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.#during(claim(this.#sessions, this.#tables, this.#settings.clock, request));
  }

  renew(owner: string, held: readonly Held[], leaseMs: number): Promise<readonly string[]> {
    return this.#during(renew(this.#sessions, this.#tables, this.#now(), owner, held, leaseMs));
  }

  heldBy(owner: string, page: HeldPage): Promise<readonly string[]> {
    return this.#during(heldBy(this.#sessions, this.#tables, owner, page));
  }

  release(owner: string, held: readonly Release[]): Promise<void> {
    return this.#during(release(this.#sessions, this.#tables, this.#now(), owner, held));
  }

  async attend(owner: string, lost: () => void): Promise<void> {
    await this.#during(this.#open().presence.attend(owner, lost));
  }

  async leave(owner: string): Promise<void> {
    await this.#during(this.#open().presence.leave(owner));
  }

  reap(): Promise<number> {
    return this.#during(reap(this.#sessions, this.#tables, this.#now()));
  }

  gone(owners: readonly string[]): Promise<readonly string[]> {
    return this.#during(gone(this.#sessions, this.#tables, owners));
  }

  entries(key: string, range: EntryRange): Promise<readonly StoredEntry[]> {
    return this.#during(findEntries(this.#sessions, this.#tables, key, range));
  }

  parts(key: string, range: PartRange): Promise<readonly StoredPart[]> {
    return this.#during(findParts(this.#sessions, this.#tables, key, range));
  }

  find(query: Query): Promise<readonly StoredRecord[]> {
    return this.#during(findRecords(this.#sessions, this.#tables, query));
  }

  backlog(request: BacklogRequest): Promise<StoredBacklog> {
    return this.#during(backlog(this.#sessions, this.#tables, this.#settings.clock, request));
  }

  remove(key: string, expected: Expected): Promise<boolean> {
    return this.#during(remove(this.#sessions, this.#tables, key, expected));
  }

  setAside(key: string): Promise<void> {
    return this.#during(setAside(this.#sessions, this.#tables, key));
  }

  restore(key: string): Promise<void> {
    return this.#during(restore(this.#sessions, this.#tables, this.#now(), key));
  }

  async replaceTexts(key: string, replacements: readonly TextReplacement[]): Promise<number> {
    if (replacements.length === 0) return 0;
    return this.#during(replaceTexts(this.#sessions, this.#tables, this.#open().server, key, replacements));
  }

  /** MySQL cannot tell other processes: they find work and values when they poll. */
  onWake(listener: WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #wake(what: Woken, key?: string): void {
    for (const listener of this.#listeners) queueMicrotask(() => listener(what, key));
  }

  /** The store's clock in SQL. */
  #now(): string {
    const { clock } = this.#settings;
    return clock === undefined ? serverNow : int(clock());
  }

  #open(): Opened {
    if (this.#opened === undefined) throw new JournalError("stopped", "the store is not open");
    return this.#opened;
  }

  async #commitAll(changes: readonly Change[]): Promise<readonly End[]> {
    const { commits } = this.#open();
    try {
      return await commits.run(changes);
    } catch (error) {
      if (changes.length === 1 || (error instanceof JournalError && error.code === "store-unavailable")) throw error;
    }
    // The server found fault with one of them, and took none. Alone, only that one fails.
    const ends: End[] = [];
    for (const change of changes) {
      ends.push(...(await commits.run([change]).catch((error) => [{ kind: "failed" as const, error }])));
    }
    return ends;
  }

  /** `close` waits for it. */
  async #during<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
  }
}
