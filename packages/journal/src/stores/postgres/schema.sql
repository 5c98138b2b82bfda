-- What the migrations come to. Made by postgres-schema.test.ts from the catalog.

create sequence resource_id increment by 256;

create table entry (
  resource_id bigint not null,
  seq bigint not null,
  at bigint not null,
  kind text not null,
  operation text,
  token text not null,
  body text not null,
  constraint entry_pkey PRIMARY KEY (resource_id, seq)
);

create table label (
  resource_id bigint not null,
  name text collate "C" not null,
  value text collate "C" not null,
  key text collate "C" not null,
  constraint label_pkey PRIMARY KEY (resource_id, name, value)
);

create table migration (
  version integer not null,
  name text not null,
  at timestamp with time zone not null default now(),
  constraint migration_pkey PRIMARY KEY (version)
);

create table owner (
  id text collate "C" not null,
  lock_key bigint not null,
  constraint owner_pkey PRIMARY KEY (id)
);

create table part (
  resource_id bigint not null,
  id text collate "C" not null,
  body text not null,
  constraint part_pkey PRIMARY KEY (resource_id, id)
) with (fillfactor=90);

create table resource (
  id bigint not null,
  seq bigint not null,
  epoch bigint not null,
  due_at bigint,
  lease_until bigint,
  key text collate "C" not null,
  lane text collate "C" not null,
  lease_owner text collate "C",
  state text not null,
  constraint resource_pkey PRIMARY KEY (key)
) with (fillfactor=75, autovacuum_vacuum_scale_factor=0.05);

CREATE INDEX entry_settled ON entry USING btree (resource_id, operation) WHERE (kind = 'settled'::text);

CREATE INDEX label_found ON label USING btree (name, value, key);

CREATE INDEX resource_due ON resource USING btree (lane, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX resource_lease ON resource USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);
