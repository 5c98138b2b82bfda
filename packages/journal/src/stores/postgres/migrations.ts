import type { Schema } from "./schema.js";

/** One step of the schema. It is never changed after a release: a further one is appended. */
export interface Migration {
  readonly name: string;
  /** What cannot go on while it runs, for whoever must choose the hour. */
  readonly locks: string;
  readonly sql: (schema: Schema) => string;
}

/** Number 1 is the first. Each runs in a transaction of its own. `schema.sql` shows what they come to. */
export const migrations: readonly Migration[] = [
  {
    name: "resources with their entries, parts and labels; owners",
    locks: "nothing: all tables are new",
    // A resource has a number besides its key, so that rows of its entries and parts are small and new ones lie
    // together. The number needs no index of its own: whoever looks for it comes with the key. The sequence goes on by
    // 256: each batch of commits gets a range.
    //
    // Texts compare by bytes (collate "C"), as in every store. No foreign keys: one statement writes or removes a
    // record with all that belongs to it under the record's lock, and the checks would cost a lookup a row.
    //
    // resource: one page keeps room (fillfactor) for new versions of its rows, so that a commit that moves neither
    // lane, due time nor owner touches no index. Vacuum comes early, as every claim leaves a dead row and dead index
    // entries.
    sql: ({ resource, resourceId, entry, part, label, owner }) => `
      create sequence ${resourceId} increment by 256;

      create table ${resource} (
        id bigint not null,
        seq bigint not null,
        epoch bigint not null,
        due_at bigint,
        lease_until bigint,
        key text collate "C" not null,
        lane text collate "C" not null,
        lease_owner text collate "C",
        state text not null,
        constraint resource_pkey primary key (key)
      ) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);
      alter sequence ${resourceId} owned by ${resource}.id;
      create index resource_due on ${resource} (lane, due_at) where due_at is not null;
      create index resource_lease on ${resource} (lease_owner) where lease_owner is not null;

      create table ${entry} (
        resource_id bigint not null,
        seq bigint not null,
        at bigint not null,
        kind text not null,
        operation text,
        token text not null,
        body text not null,
        constraint entry_pkey primary key (resource_id, seq)
      );

      create table ${part} (
        resource_id bigint not null,
        id text collate "C" not null,
        body text not null,
        constraint part_pkey primary key (resource_id, id)
      ) with (fillfactor = 90);

      create table ${label} (
        resource_id bigint not null,
        name text collate "C" not null,
        value text collate "C" not null,
        key text collate "C" not null,
        constraint label_pkey primary key (resource_id, name, value)
      );
      create index label_found on ${label} (name, value, key);

      create table ${owner} (
        id text collate "C" not null,
        lock_key bigint not null,
        constraint owner_pkey primary key (id)
      );
    `,
  },
  {
    name: "ends of operations",
    locks: "commits, while all entries are read once: about a second for a million. Reads go on",
    // For whoever asks what became of an operation: holds one row of each that ended.
    sql: ({ entry }) => `create index entry_settled on ${entry} (resource_id, operation) where kind = 'settled'`,
  },
];
