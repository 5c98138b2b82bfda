import type { Tables } from "./tables.js";

export interface Migration {
  readonly id: number;
  readonly name: string;
  /** What it locks and for how long, for whoever runs it on a live system. */
  readonly locks: string;
  /** DDL commits by itself: each statement can be repeated after a crash in the middle. An index that is there already is passed over. */
  readonly statements: (tables: Tables) => readonly string[];
}

/** Append-only: what was released is never changed. The finished schema stands in schema.sql. */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: "resources with entries, parts, labels, lanes, owners and ids",
    locks: "nothing: the tables are new",
    statements: firstTables,
  },
  {
    id: 2,
    name: "ends of operations",
    locks: "nothing for longer than a moment: commits go on while all entries are read once",
    // For whoever asks what became of an operation. Its entries lie in the index in their order, and the end is the last of them.
    statements: ({ entry }) => [
      `alter table ${entry} add key by_operation (resource, operation), algorithm = inplace, lock = none`,
    ],
  },
];

export const newestMigration = migrations.reduce((newest, { id }) => Math.max(newest, id), 0);

/** Where it is written down what has been done. */
export function migrationTable({ migration }: Tables): string {
  return `create table if not exists ${migration} (
    id int not null primary key,
    name varchar(200) character set utf8mb4 collate utf8mb4_bin not null,
    at bigint not null
  ) engine = innodb row_format = dynamic`;
}

/**
 * Whatever is compared is VARBINARY: no collation means the same on MariaDB and MySQL, and most fold case or trailing spaces.
 * Bodies are only stored, so they stay texts that an operator can read.
 */
function firstTables({ resource, entry, part, label, lane, owner, sequence }: Tables): readonly string[] {
  const text = "character set utf8mb4 collate utf8mb4_bin";
  return [
    `create table if not exists ${resource} (
      id bigint not null primary key,
      \`key\` varbinary(512) not null,
      seq bigint not null,
      epoch bigint not null,
      lane varbinary(100) not null,
      due_at bigint not null comment '9007199254740992: not due',
      lease_owner varbinary(64) null,
      lease_until bigint null,
      state longtext ${text} not null,
      unique key by_key (\`key\`),
      key by_due (lane, due_at),
      key by_owner (lease_owner)
    ) engine = innodb row_format = dynamic`,
    `create table if not exists ${entry} (
      resource bigint not null,
      seq bigint not null,
      at bigint not null,
      token varchar(32) ${text} not null,
      kind varchar(64) ${text} not null,
      operation varchar(64) ${text} null,
      body longtext ${text} not null,
      primary key (resource, seq)
    ) engine = innodb row_format = dynamic`,
    `create table if not exists ${part} (
      resource bigint not null,
      id varbinary(512) not null,
      body longtext ${text} not null,
      primary key (resource, id)
    ) engine = innodb row_format = dynamic`,
    // The key stands here too, so that the resources of a label are read in its order without sorting.
    `create table if not exists ${label} (
      resource bigint not null,
      name varbinary(64) not null,
      value varbinary(256) not null,
      \`key\` varbinary(512) not null,
      primary key (resource, name, value),
      key by_value (name, value, \`key\`)
    ) engine = innodb row_format = dynamic`,
    // Every lane that was ever used. Neither server can be trusted to skip from lane to lane in an index by itself.
    `create table if not exists ${lane} (
      lane varbinary(100) not null primary key
    ) engine = innodb row_format = dynamic`,
    `create table if not exists ${owner} (
      name varbinary(64) not null primary key,
      lock_name varchar(64) character set ascii collate ascii_bin not null,
      server varchar(320) ${text} not null,
      seen_at bigint not null
    ) engine = innodb row_format = dynamic`,
    // The ids of resources, handed out in blocks. It has one row.
    `create table if not exists ${sequence} (
      row_id tinyint not null primary key,
      next_id bigint not null
    ) engine = innodb row_format = dynamic`,
    `insert into ${sequence} (row_id, next_id) values (1, 1) on duplicate key update next_id = next_id`,
  ];
}
