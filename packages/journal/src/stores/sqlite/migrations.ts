/**
 * The schema as numbered steps, append-only: one that was released is never edited. A step runs in a transaction
 * before anyone reads or writes, in the process that owns the file, so that what it "locks" is the time until that
 * process is ready. `schema.sql` is what they add up to; a test compares.
 *
 * Order is that of bytes everywhere: BINARY is SQLite's collation unless told otherwise, and its texts are UTF-8.
 */
export const migrations: readonly Migration[] = [
  {
    name: "resources with entries, parts and labels",
    locks: "nothing: the file is new",
    sql: `
      -- What belongs to a resource is clustered by its number, not by its key: what is new goes to the end of each
      -- table, and what is read together lies together, however many resources there are. Only "key" has to be found
      -- a place in the middle.
      create table resource (
        id integer primary key,
        key text not null unique,
        seq integer not null,
        epoch integer not null,
        lane text not null,
        due_at integer,
        lease_owner text,
        lease_until integer,
        state text not null
      ) strict;

      -- For claims: holds only what the engine must look at some time.
      create index resource_due on resource (lane, due_at) where due_at is not null;

      -- For reap: holds only what is leased now.
      create index resource_lease on resource (lease_owner) where lease_owner is not null;

      create table entry (
        resource integer not null,
        seq integer not null,
        at integer not null,
        kind text not null,
        operation text,
        token text not null,
        body text not null,
        primary key (resource, seq)
      ) strict, without rowid;

      create table part (
        resource integer not null,
        id text not null,
        body text not null,
        primary key (resource, id)
      ) strict, without rowid;

      -- The key is kept here too, so that the resources with a label are found in the order of their keys.
      create table label (
        resource integer not null,
        name text not null,
        value text not null,
        key text not null,
        primary key (resource, name, value)
      ) strict, without rowid;

      create index label_find on label (name, value, key);

      -- "clock": the newest time that was ever given out with a commit.
      create table meta (
        name text primary key,
        value integer not null
      ) strict, without rowid;

      insert into meta (name, value) values ('clock', 0);
    `,
  },
  {
    name: "ends of operations",
    locks: "the start, while all entries are read once: about a second for a million",
    sql: `
      -- For whoever asks what became of an operation: holds one row of each that ended.
      create index entry_settled on entry (resource, operation) where kind = 'settled';
    `,
  },
];

export interface Migration {
  readonly name: string;
  /** What others have to wait for while it runs. */
  readonly locks: string;
  readonly sql: string;
}
