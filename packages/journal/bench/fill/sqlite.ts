import Database from "better-sqlite3";
import type { SqlitePlace } from "../places.js";
import type { Settled } from "./settled.js";

/** All in one go, with nothing made durable on the way. */
export function fillSqlite({ path }: SqlitePlace, count: number, settled: Settled): void {
  const database = new Database(path);
  try {
    // From WAL there is no way to none but by this: a log as large as all of it would be written beside the file.
    database.pragma("journal_mode = delete");
    database.pragma("journal_mode = off");
    database.pragma("synchronous = off");
    database.pragma("cache_size = -1000000");
    database.exec("begin");
    const { seq, epoch, lane, dueAt, state, token } = settled;
    database
      .prepare(
        `with recursive each(random, nth) as (
           select lower(hex(randomblob(16))), 1 union all select lower(hex(randomblob(16))), nth + 1 from each where nth < @count
         )
         insert into resource (key, seq, epoch, lane, due_at, state)
         select ${uuid("random")}, @seq, @epoch, @lane, @dueAt + nth, @state from each`,
      )
      .run({ count, seq, epoch, lane, dueAt, state });
    for (const entry of settled.entries) {
      database
        .prepare(
          `insert into entry (resource, seq, at, kind, operation, token, body)
           select id, @seq, @at, @kind, @operation, @token, @body from resource`,
        )
        .run({ ...entry, at: Date.now(), token });
    }
    database.exec("commit");
  } finally {
    database.close();
  }
}

function uuid(hex: string): string {
  const cuts = [
    [1, 8],
    [9, 4],
    [13, 4],
    [17, 4],
    [21, 12],
  ];
  return cuts.map(([from, length]) => `substr(${hex}, ${from}, ${length})`).join(" || '-' || ");
}
