import type { Write } from "./decide-commit.js";
import type { MysqlValue } from "./driver.js";
import { Insertion } from "./rows-at-once.js";
import type { Server } from "./server.js";
import type { Session } from "./session.js";
import { bytes, chunks, int, serverNow } from "./sql.js";
import type { Tables } from "./tables.js";

/** Where the time is in a row of an entry. */
const atColumn = 2;

/** In one statement of text. */
const mostConditions = 200;

/** What lies beside the records: entries, parts and labels. Whoever has a record locked is alone with these rows of it. */
export class TablesBeside {
  readonly #tables: Tables;
  readonly #statementBytes: number;
  readonly #insertingEntries: Insertion;
  readonly #puttingParts: Insertion;

  constructor(tables: Tables, { statementBytes }: Server) {
    this.#tables = tables;
    this.#statementBytes = statementBytes;
    this.#insertingEntries = new Insertion(tables.entry, [
      "resource",
      "seq",
      ["at", `coalesce(?, last_insert_id(${serverNow}))`],
      "token",
      "kind",
      "operation",
      "body",
    ]);
    this.#puttingParts = new Insertion(
      tables.part,
      ["resource", "id", "body"],
      "on duplicate key update body = values(body)",
    );
  }

  /**
   * Statements only for what there is. Answers the time that the entries are stamped with: `at`, or else the server's clock when it
   * inserted the first of them.
   */
  async write(session: Session, writes: readonly Write[], at: number | undefined): Promise<number> {
    await this.#delete(session, writes.filter(deletes));
    const stampedAt = await this.#insertEntries(session, writes, at);
    const parts = writes.flatMap(({ id, change }) =>
      change.putParts.map((part) => [id, Buffer.from(part.id), part.body]),
    );
    await this.#puttingParts.run(session, parts, this.#statementBytes);
    await this.#addLabels(
      session,
      writes.filter(({ change }) => change.addLabels.length > 0),
    );
    return stampedAt;
  }

  /** `last_insert_id` brings the time back with the answer, which saves asking for it; but not where the table has a trigger. */
  async #insertEntries(session: Session, writes: readonly Write[], at: number | undefined): Promise<number> {
    let stampedAt = at ?? null;
    const rows: MysqlValue[][] = [];
    for (const { id, change, firstSeq } of writes) {
      change.entries.forEach(({ kind, operation, body }, index) => {
        rows.push([id, firstSeq + index, stampedAt, change.token, kind, operation, body]);
      });
    }
    await this.#insertingEntries.run(session, rows, this.#statementBytes, async (lastInsertId) => {
      const first = writes.find(({ change }) => change.entries.length > 0);
      if (stampedAt !== null || first === undefined) return;
      stampedAt = lastInsertId > 0 ? lastInsertId : await this.#timeOf(session, first);
      for (const row of rows) row[atColumn] = stampedAt;
    });
    // Changes without entries alone.
    return stampedAt ?? (await this.#now(session));
  }

  async #now(session: Session): Promise<number> {
    const [row] = await session.rows(`select ${serverNow} as at`);
    return Number(row?.at);
  }

  async #timeOf(session: Session, { id, firstSeq }: Write): Promise<number> {
    const [row] = await session.rows(
      `select at from ${this.#tables.entry} where resource = ${int(id)} and seq = ${int(firstSeq)}`,
    );
    if (row === undefined) throw new TypeError("the server did not tell when it inserted the entries");
    return Number(row.at);
  }

  async #delete(session: Session, writes: readonly Write[]): Promise<void> {
    await this.#deleteFrom(session, this.#tables.entry, writes.flatMap(entriesToDelete));
    await this.#deleteFrom(session, this.#tables.part, writes.flatMap(partsToDelete));
    await this.#deleteFrom(session, this.#tables.label, writes.flatMap(labelsToRemove));
  }

  /** The index is forced for the same reason as for records. A DELETE of one table takes no such hint, hence this form. */
  async #deleteFrom(session: Session, table: string, conditions: readonly string[]): Promise<void> {
    for (const some of chunks(conditions, mostConditions)) {
      await session.change(`delete gone from ${table} as gone force index (primary) where ${some.join(" or ")}`);
    }
  }

  async #addLabels(session: Session, writes: readonly Write[]): Promise<void> {
    const rows = writes.flatMap(({ id, change }) =>
      change.addLabels.map(({ name, value }) => `(${int(id)}, ${bytes(name)}, ${bytes(value)}, ${bytes(change.key)})`),
    );
    for (const some of chunks(rows, mostConditions)) {
      await session.change(
        `insert into ${this.#tables.label} (resource, name, value, \`key\`) values ${some.join(", ")}
         on duplicate key update \`key\` = values(\`key\`)`,
      );
    }
  }
}

function deletes({ change }: Write): boolean {
  return change.deleteEntries.length + change.deleteParts.length + change.removeLabels.length > 0;
}

function entriesToDelete({ id, change }: Write): readonly string[] {
  return change.deleteEntries.map((seq) => `(resource = ${int(id)} and seq = ${int(seq)})`);
}

function partsToDelete({ id, change }: Write): readonly string[] {
  return change.deleteParts.map((part) => `(resource = ${int(id)} and id = ${bytes(part)})`);
}

function labelsToRemove({ id, change }: Write): readonly string[] {
  return change.removeLabels.map(
    ({ name, value }) => `(resource = ${int(id)} and name = ${bytes(name)} and value = ${bytes(value)})`,
  );
}
