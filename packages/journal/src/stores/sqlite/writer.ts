import { ChangeWriter } from "./apply-change.js";
import { takeChange, type WrittenChange, weightOf } from "./change-cells.js";
import { Claimer } from "./claim.js";
import type { Connection } from "./connection.js";
import { concernsAll, failureOf } from "./failure.js";
import { Leases } from "./leases.js";
import type { FromWriter, OtherRequest, ToWriter, WriterAnswer, WriterSettings } from "./protocol.js";
import { Remover } from "./removal.js";
import { replacementsWeight, TextReplacer } from "./replace-texts.js";

type Batch = Extract<ToWriter, { kind: "batch" }>;
type Work = WrittenChange | OtherRequest;

const pageBytes = 4_096;

/** Carries out batches on the writing connection: one batch, one transaction, one durable write. */
export class Writer {
  readonly #database: Connection;
  readonly #settings: WriterSettings;
  readonly #changes: ChangeWriter;
  readonly #claimer: Claimer;
  readonly #leases: Leases;
  readonly #remover: Remover;
  readonly #replacer: TextReplacer;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #appended: (pages: number) => void;
  #transactions = 0;
  #flushMs = 0;

  constructor(database: Connection, settings: WriterSettings, appended: (pages: number) => void) {
    this.#appended = appended;
    this.#database = database;
    this.#settings = settings;
    this.#changes = new ChangeWriter(database);
    this.#claimer = new Claimer(database);
    this.#leases = new Leases(database);
    this.#remover = new Remover(database);
    this.#replacer = new TextReplacer(database);
    this.#statements = prepare(database);
  }

  /** The newest time that the file knows of. */
  clockMark(): number {
    return (this.#statements.mark.get() as readonly [number] | undefined)?.[0] ?? 0;
  }

  /**
   * Answers leave only after the transaction that they speak of is durable. If it fails, nothing of it counts,
   * whatever its requests were about to be told: also that one of them was refused may have been due to another one
   * that is now undone.
   */
  run({ items, now }: Batch): Extract<FromWriter, { kind: "done" }> {
    const works = workOf(items);
    this.#transactions = 0;
    const answers = this.#runTogether(works, now);
    return { kind: "done", answers, transactions: this.#transactions, flushMs: this.#flushMs };
  }

  #runTogether(works: readonly Work[], now: number): readonly WriterAnswer[] {
    try {
      return this.#transaction(works, now);
    } catch (error) {
      // Damage in the rows of one resource must not keep the others from being written.
      if (works.length > 1 && !concernsAll(error)) return works.flatMap((work) => this.#runTogether([work], now));
      const failed = failureOf(error, this.#settings.path);
      return works.map(() => ({ failed }));
    }
  }

  #transaction(works: readonly Work[], now: number): readonly WriterAnswer[] {
    const { begin, commit, rollback, setMark } = this.#statements;
    begin.run();
    try {
      const answers = works.map((work) => this.#carryOut(work, now));
      const hasChanged = answers.some(tellsOfChange);
      // With what it stamps, or the next start could go back behind a time that was already given out.
      if (hasChanged && this.#settings.marksClock) setMark.run(now, now);
      const before = performance.now();
      commit.run();
      if (hasChanged) {
        this.#flushMs = performance.now() - before;
        this.#transactions++;
        this.#appended(pagesOf(works));
      }
      return answers;
    } catch (error) {
      // SQLite may have rolled back by itself, as it does when there is no room.
      if (this.#database.inTransaction) rollback.run();
      throw error;
    }
  }

  #carryOut(work: Work, now: number): WriterAnswer {
    if (!("kind" in work)) return this.#changes.apply(work, now);
    switch (work.kind) {
      case "claim":
        return this.#claimer.claim(work, now);
      case "renew":
        return this.#leases.renew(work.owner, work.held, now + work.leaseMs);
      case "release":
        return this.#leases.release(work.owner, work.held, now);
      case "reap":
        return this.#leases.reap(new Set(work.living), now);
      case "remove":
        return this.#remover.remove(work.key, work.expected);
      case "set aside":
        return this.#remover.setAside(work.key);
      case "restore":
        return this.#remover.restore(work.key, now);
      case "replace texts":
        return this.#replacer.replace(work.key, work.replacements);
    }
  }
}

function workOf(items: Batch["items"]): readonly Work[] {
  const works: Work[] = [];
  for (let at = 0; at < items.length; ) {
    const item = items[at];
    if (typeof item === "object" && item !== null) {
      works.push(item);
      at++;
    } else {
      const { change, end } = takeChange(items, at);
      works.push(change);
      at = end;
    }
  }
  return works;
}

/**
 * A guess of how many pages of the database a transaction changed: some for itself, some for each resource, and room
 * for the texts.
 */
function pagesOf(works: readonly Work[]): number {
  let pages = 3;
  for (const work of works) pages += 1 + textBytesOf(work) / pageBytes;
  return pages;
}

function textBytesOf(work: Work): number {
  if (!("kind" in work)) return weightOf(work);
  return work.kind === "replace texts" ? replacementsWeight(work.replacements) : 0;
}

function tellsOfChange(answer: WriterAnswer): boolean {
  if (typeof answer !== "object") return Boolean(answer);
  if ("claimed" in answer) return answer.claimed.length > 0;
  return "length" in answer && answer.length > 0;
}

function prepare(database: Connection) {
  return {
    begin: database.prepare("begin immediate"),
    commit: database.prepare("commit"),
    rollback: database.prepare("rollback"),
    mark: database.prepare("select value from meta where name = 'clock'").raw(),
    setMark: database.prepare("update meta set value = ? where name = 'clock' and value < ?"),
  };
}
