/**
 * Values in SQL text. There are only two kinds, numbers and bytes in hexadecimal: nothing is ever escaped, so neither the SQL mode nor
 * the character set of a connection can change what a text means. Long texts travel beside prepared statements instead.
 */
export function int(value: number): string {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number that the store can keep`);
  return String(value);
}

export function bytes(text: string | Buffer): string {
  return `x'${(typeof text === "string" ? Buffer.from(text) : text).toString("hex")}'`;
}

export function listOf<Item>(items: readonly Item[], sql: (item: Item) => string): string {
  return `(${items.map(sql).join(", ")})`;
}

/** For `limit`, which takes no more than the server counts to. */
export function limitOf(limit: number): string {
  return int(Math.max(0, Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER)));
}

/**
 * A column that starts with `prefix` and lies after `after`, as ranges of bytes. LIKE would look for meaning in them.
 * The last byte of a UTF-8 text is below 0xf5, so that there is always a next one.
 */
export function within(column: string, prefix: string, after: string | null): string {
  const bounds = after === null ? [] : [`${column} > ${bytes(after)}`];
  if (prefix !== "") {
    const end = Buffer.from(prefix);
    end.writeUInt8(end.readUInt8(end.length - 1) + 1, end.length - 1);
    bounds.push(`${column} >= ${bytes(prefix)}`, `${column} < ${bytes(end)}`);
  }
  return bounds.length === 0 ? "true" : bounds.join(" and ");
}

/**
 * Stands for "no due time" in `due_at`: one more than the largest due time there can be. It sorts last, so that the earliest due row of a
 * lane is the first one of its index range; as NULL, millions of idle resources would come before it.
 */
export const never = 2 ** 53;

export function dueAtSql(dueAt: number | null): string {
  return dueAt === null ? String(never) : int(dueAt);
}

/** The server's clock in milliseconds since 1970. Of the UTC time: local times come twice in the night when summer time ends. */
export const serverNow = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000";

export function chunks<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
