create table entry (
  resource bigint not null,
  seq bigint not null,
  at bigint not null,
  token varchar(32) collate utf8mb4_bin not null,
  kind varchar(64) collate utf8mb4_bin not null,
  operation varchar(64) collate utf8mb4_bin null,
  body longtext collate utf8mb4_bin not null,
  key by_operation (resource, operation),
  primary key (resource, seq)
) engine = innodb, row_format = dynamic;

create table label (
  resource bigint not null,
  name varbinary(64) not null,
  value varbinary(256) not null,
  key varbinary(512) not null,
  key by_value (name, value, key),
  primary key (resource, name, value)
) engine = innodb, row_format = dynamic;

create table lane (
  lane varbinary(100) not null,
  primary key (lane)
) engine = innodb, row_format = dynamic;

create table migration (
  id int not null,
  name varchar(200) collate utf8mb4_bin not null,
  at bigint not null,
  primary key (id)
) engine = innodb, row_format = dynamic;

create table owner (
  name varbinary(64) not null,
  lock_name varchar(64) collate ascii_bin not null,
  server varchar(320) collate utf8mb4_bin not null,
  seen_at bigint not null,
  primary key (name)
) engine = innodb, row_format = dynamic;

create table part (
  resource bigint not null,
  id varbinary(512) not null,
  body longtext collate utf8mb4_bin not null,
  primary key (resource, id)
) engine = innodb, row_format = dynamic;

create table resource (
  id bigint not null,
  key varbinary(512) not null,
  seq bigint not null,
  epoch bigint not null,
  lane varbinary(100) not null,
  due_at bigint not null comment '9007199254740992: not due',
  lease_owner varbinary(64) null,
  lease_until bigint null,
  state longtext collate utf8mb4_bin not null,
  key by_due (lane, due_at),
  unique key by_key (key),
  key by_owner (lease_owner),
  primary key (id)
) engine = innodb, row_format = dynamic;

create table sequence (
  row_id tinyint not null,
  next_id bigint not null,
  primary key (row_id)
) engine = innodb, row_format = dynamic;
