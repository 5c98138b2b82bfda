import type { MysqlValue } from "./driver.js";
import type { Row, Session } from "./session.js";

/**
 * Prepared statements for many rows at once. They are a quarter faster than the same in text, which the server would parse each time.
 *
 * They exist for so many rows only, so that a connection keeps few of them: the server allows 16,382 for all its clients together.
 * Any number up to the largest takes two statements at most.
 */
const sizes: readonly number[] = [...Array.from({ length: 16 }, (_, index) => index + 1), 24, 32, 40, 48, 56, 64];
const largestSize = 64;

export type Values = readonly MysqlValue[];

/** Inserts rows into a table. */
export class Insertion {
  readonly #head: string;
  readonly #row: string;
  readonly #rest: string;
  readonly #texts = new Map<number, string>();

  /** `columns`: their names, or name → SQL of its value. `rest` comes after the rows. */
  constructor(into: string, columns: readonly (string | readonly [string, string])[], rest = "") {
    const names = columns.map((column) => (typeof column === "string" ? column : column[0]));
    this.#head = `insert into ${into} (${names.join(", ")}) values `;
    this.#row = `(${columns.map((column) => (typeof column === "string" ? "?" : column[1])).join(", ")})`;
    this.#rest = ` ${rest}`;
  }

  /**
   * With as few statements as possible, each within `mostBytes` unless a single row is larger. `told` is given what each of them gave to
   * `last_insert_id`, before the values of the next are taken from the rows.
   */
  async run(
    session: Session,
    rows: readonly Values[],
    mostBytes: number,
    told?: (lastInsertId: number) => Promise<void>,
  ): Promise<void> {
    for (let from = 0; from < rows.length; ) {
      const count = countWithin(rows, from, mostBytes);
      const values: MysqlValue[] = [];
      for (const row of rows.slice(from, from + count)) values.push(...row);
      const lastInsertId = await session.preparedInsert(this.#text(count), values);
      await told?.(lastInsertId);
      from += count;
    }
  }

  #text(count: number): string {
    let text = this.#texts.get(count);
    if (text === undefined) {
      text = this.#head + Array.from({ length: count }, () => this.#row).join(", ") + this.#rest;
      this.#texts.set(count, text);
    }
    return text;
  }
}

/** Selects the rows whose key is one of many: `head` goes before the list of keys, `rest` after it. */
export async function selectByKeys(
  session: Session,
  head: string,
  keys: readonly Buffer[],
  rest: string,
): Promise<readonly Row[]> {
  const found: Row[] = [];
  for (let from = 0; from < keys.length; from += largestSize) {
    const some = keys.slice(from, from + largestSize);
    const size = sizes.find((each) => each >= some.length) ?? largestSize;
    // A key may stand in the list twice, so one is repeated until there is a statement for so many.
    const values: MysqlValue[] = Array.from(
      { length: size },
      (_, index) => some[Math.min(index, some.length - 1)] ?? null,
    );
    found.push(...(await session.preparedRows(`${head} (${placeholders(size)}) ${rest}`, values)));
  }
  return found;
}

/** At most what a row takes on the wire. Cheap, not exact: a code unit has up to three bytes of UTF-8. */
export function bytesAtMost(row: Values): number {
  let bytes = 0;
  for (const value of row) {
    if (typeof value === "string") bytes += 3 * value.length;
    else if (Buffer.isBuffer(value)) bytes += value.length;
    bytes += 12;
  }
  return bytes;
}

function countWithin(rows: readonly Values[], from: number, mostBytes: number): number {
  let count = 0;
  for (let bytes = 0; count < largestSize; count++) {
    const row = rows[from + count];
    if (row === undefined) break;
    bytes += bytesAtMost(row);
    if (count > 0 && bytes > mostBytes) break;
  }
  return sizes.findLast((size) => size <= count) ?? 1;
}

function placeholders(count: number): string {
  return Array.from({ length: count }, () => "?").join(", ");
}
