import Database from "better-sqlite3";

/**
 * Puts so many copies of a resource into a store that nobody has open, with all that belongs to it. Straight into the tables, because making them one
 * by one would take longer than everything that is measured. A copy has the key with its number behind it, and is due so many milliseconds later.
 */
export function fill(path: string, key: string, copies: number): void {
  const database = new Database(path);
  // Nothing is made durable on the way, nor written twice: who is interrupted throws the file away.
  database.pragma("journal_mode = delete");
  database.pragma("journal_mode = off");
  database.pragma("synchronous = off");
  database.pragma("cache_size = -500000");
  const { id } = database.prepare("select id from resource where key = ?").get(key) as { id: number };
  const copied = "resource.id > @known";
  database.transaction(() => {
    const known = (database.prepare("select max(id) as id from resource").get() as { id: number }).id;
    database
      .prepare(
        `with recursive copy(number) as (select 0 union all select number + 1 from copy where number + 1 < @copies)
         insert into resource (key, seq, epoch, lane, due_at, lease_owner, lease_until, state)
         select key || '-' || number, seq, epoch, lane, due_at + number, null, null, state from copy, resource where id = @id`,
      )
      .run({ copies, id });
    database
      .prepare(
        `insert into entry (resource, seq, at, kind, operation, token, body)
         select resource.id, entry.seq, at, kind, operation, token, body from resource, entry
         where ${copied} and entry.resource = @id`,
      )
      .run({ known, id });
    database
      .prepare(
        `insert into part (resource, id, body)
         select resource.id, part.id, body from resource, part where ${copied} and part.resource = @id`,
      )
      .run({ known, id });
    database
      .prepare(
        `insert into label (resource, name, value, key)
         select resource.id, name, value, resource.key from resource, label where ${copied} and label.resource = @id`,
      )
      .run({ known, id });
  })();
  database.pragma("journal_mode = wal");
  database.close();
}
