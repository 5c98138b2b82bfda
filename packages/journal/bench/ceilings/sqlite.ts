import { randomUUID } from "node:crypto";
import Database from "better-sqlite3";
import type { Change } from "../operations.js";
import { makeTables, type SqlitePlace } from "../places.js";
import type { Ceiling } from "./ceiling.js";
import { type Stage, stagesOf } from "./stage.js";

export async function sqliteCeiling(place: SqlitePlace, changes: readonly Change[], group: number): Promise<Ceiling> {
  await makeTables(place);
  const database = new Database(place.path);
  database.pragma("journal_mode = wal");
  database.pragma("synchronous = full");
  database.pragma("cache_size = -32000");
  const stages = stagesOf(changes);
  const { begin, commit, insert, update, append } = prepare(database);

  const write = (stage: Stage, ids: number[], index: number) => {
    const { seq, epoch, lane, dueAt, owner, until, state, at, token } = stage;
    if (stage.isNew) {
      const added = insert.run(randomUUID(), seq, epoch, lane, dueAt, owner, until, state);
      ids[index] = Number(added.lastInsertRowid);
    } else update.run(seq, epoch, lane, dueAt, owner, until, state, ids[index]);
    for (const entry of stage.entries)
      append.run(ids[index], entry.seq, at, entry.kind, entry.operation, token, entry.body);
  };
  const run = async (ms: number, size: number) => {
    const started = performance.now();
    const ids: number[] = [];
    let done = 0;
    for (; performance.now() - started < ms; done += size) {
      for (const stage of stages) {
        begin.run();
        for (let index = 0; index < size; index++) write(stage, ids, index);
        commit.run();
      }
    }
    return (done * 1000) / (performance.now() - started);
  };
  return {
    grouped: { [`transactions of ${group}`]: (ms) => run(ms, group) },
    shared: {},
    ungrouped: (ms) => run(ms, 1),
    close: async () => void database.close(),
  };
}

function prepare(database: Database.Database) {
  return {
    begin: database.prepare("begin immediate"),
    commit: database.prepare("commit"),
    insert: database.prepare(
      "insert into resource (key, seq, epoch, lane, due_at, lease_owner, lease_until, state) values (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    update: database.prepare(
      "update resource set seq = ?, epoch = ?, lane = ?, due_at = ?, lease_owner = ?, lease_until = ?, state = ? where id = ?",
    ),
    append: database.prepare(
      "insert into entry (resource, seq, at, kind, operation, token, body) values (?, ?, ?, ?, ?, ?, ?)",
    ),
  };
}
