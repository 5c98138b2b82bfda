import pg from "pg";
import { type AdminUrl, onServer } from "./connection.js";
import type { DatabaseNames } from "./names.js";
import { dropRole, ensureRole } from "./roles.js";

// Everything here may be cut off between any two statements and run again: each looks first, or says the same thing twice.

/** What keeps one database from taking all of the server. */
export interface Limits {
  readonly connections: number;
  /** Temporary files of one session, for sorting and joining. `null`: as much as it takes. */
  readonly temporaryMegabytes: number | null;
}

const quote = pg.escapeIdentifier;

/**
 * The two groups and the database. It stays the administrator's, and what is in it becomes the owner's: who owns a database may lift its
 * limits, and drop it.
 */
export function createDatabase(admin: AdminUrl, { database, owner, reader }: DatabaseNames): Promise<void> {
  return onServer(admin, async (query) => {
    await ensureRole(query, owner);
    await ensureRole(query, reader);
    const found = await query("select 1 from pg_database where datname = $1", [database]);
    if (found.length === 0) {
      // From template0, which has nothing in it that somebody added to the server's template.
      await query(`create database ${quote(database)} template template0`);
    }
    // By default everyone on the server may connect.
    await query(`revoke all on database ${quote(database)} from public`);
    await query(`grant connect on database ${quote(database)} to ${quote(reader)}`);
    await query(`grant connect, create, temporary on database ${quote(database)} to ${quote(owner)}`);
  });
}

/** Whom what belongs to, inside the database, now and for what will be created later. */
export function setPrivileges(admin: AdminUrl, { database, owner, reader }: DatabaseNames): Promise<void> {
  const creates = `alter default privileges for role ${quote(owner)}`;
  return onServer(
    admin,
    async (query) => {
      // Several statements in one query are one transaction.
      await query(`
        alter schema public owner to ${quote(owner)};
        revoke all on schema public from public;
        grant usage on schema public to ${quote(reader)};
        ${creates} grant usage on schemas to ${quote(reader)};
        ${creates} grant select on tables to ${quote(reader)};
        ${creates} grant select on sequences to ${quote(reader)};
      `);
    },
    database,
  );
}

/** Extensions are made by the administrator; the owner may use, but not change them. */
export function createExtensions(admin: AdminUrl, database: string, extensions: readonly string[]): Promise<void> {
  return onServer(
    admin,
    async (query) => {
      for (const extension of extensions) {
        await query(`create extension if not exists ${quote(extension)} with schema public`);
      }
    },
    database,
  );
}

/** For sessions that begin from now on. Both are limits that only a superuser lifts; a statement_timeout would be a mere suggestion. */
export function setLimits(admin: AdminUrl, database: string, limits: Limits): Promise<void> {
  const temporary = limits.temporaryMegabytes === null ? "-1" : `${limits.temporaryMegabytes}MB`;
  return onServer(admin, async (query) => {
    await query(`
      alter database ${quote(database)} with connection limit ${Math.trunc(limits.connections)};
      alter database ${quote(database)} set temp_file_limit = ${pg.escapeLiteral(temporary)};
    `);
  });
}

/** Ends every session in the database and drops it, then the groups, which own nothing any more. */
export async function dropDatabase(admin: AdminUrl, { database, owner, reader }: DatabaseNames): Promise<void> {
  await onServer(admin, (query) => query(`drop database if exists ${quote(database)} with (force)`));
  await dropRole(admin, reader);
  await dropRole(admin, owner);
}
