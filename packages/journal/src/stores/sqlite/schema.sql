CREATE TABLE entry (
  resource integer not null,
  seq integer not null,
  at integer not null,
  kind text not null,
  operation text,
  token text not null,
  body text not null,
  primary key (resource, seq)
) strict, without rowid;

CREATE INDEX entry_settled on entry (resource, operation) where kind = 'settled';

CREATE TABLE label (
  resource integer not null,
  name text not null,
  value text not null,
  key text not null,
  primary key (resource, name, value)
) strict, without rowid;

CREATE INDEX label_find on label (name, value, key);

CREATE TABLE meta (
  name text primary key,
  value integer not null
) strict, without rowid;

CREATE TABLE part (
  resource integer not null,
  id text not null,
  body text not null,
  primary key (resource, id)
) strict, without rowid;

CREATE TABLE resource (
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

CREATE INDEX resource_due on resource (lane, due_at) where due_at is not null;

CREATE INDEX resource_lease on resource (lease_owner) where lease_owner is not null;
