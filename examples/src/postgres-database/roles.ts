import pg from "pg";
import { type AdminUrl, onServer, type Query } from "./connection.js";
import type { DatabaseNames } from "./names.js";
import { scramVerifier } from "./scram-verifier.js";

/** What a binding may do. */
export type Access = "read-write" | "read-only";

/** What somebody logs in with. */
export interface Login {
  readonly role: string;
  readonly password: string;
  readonly access: Access;
  /** After this the password is refused. A session that is open by then stays. */
  readonly validUntil: Date | null;
}

const quote = pg.escapeIdentifier;

/** `create role` knows no `if not exists`. Only one step at a time makes a role, so nobody comes in between. */
export async function ensureRole(query: Query, role: string): Promise<void> {
  const found = await query("select 1 from pg_roles where rolname = $1", [role]);
  if (found.length === 0) await query(`create role ${quote(role)} nologin`);
}

/** Lets somebody log in to a database. The second time it says the same again: the password, too, if it is given the same one. */
export async function createLogin(
  admin: AdminUrl,
  { database, owner, reader }: DatabaseNames,
  login: Login,
): Promise<void> {
  const role = quote(login.role);
  const verifier = pg.escapeLiteral(await scramVerifier(login.password));
  const until = pg.escapeLiteral(login.validUntil?.toISOString() ?? "infinity");
  await onServer(admin, async (query) => {
    await ensureRole(query, login.role);
    // A writer acts as the owner from the moment it logs in. What it creates then belongs to the instance and not to the binding: the
    // next binding can change it, and this one can go.
    const membership =
      login.access === "read-write"
        ? `grant ${quote(owner)} to ${role}; alter role ${role} in database ${quote(database)} set role to ${quote(owner)};`
        : `grant ${quote(reader)} to ${role};`;
    // One transaction; until it commits, nobody can log in.
    await query(`${membership} alter role ${role} login password ${verifier} valid until ${until};`);
  });
}

/**
 * Drops a role and ends its sessions. What it owns in the heir's database goes to the heir; what it owns elsewhere on the server (every
 * role may leave something in the database `postgres`) goes with it. In this order: no new sessions, none left, nothing owned, gone.
 */
export async function dropRole(admin: AdminUrl, role: string, heir?: DatabaseNames): Promise<void> {
  const databases = await onServer(admin, async (query) => {
    const [found] = await query<{ oid: number }>("select oid from pg_roles where rolname = $1", [role]);
    if (found === undefined) return [];
    await query(`alter role ${quote(role)} nologin`);
    await query("select pg_terminate_backend(pid, 10000) from pg_stat_activity where usesysid = $1", [found.oid]);
    const owning = await query<{ datname: string }>(
      `select datname from pg_database where datallowconn and oid in
        (select dbid from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = $1)`,
      [found.oid],
    );
    return owning.map(({ datname }) => datname);
  });
  for (const database of databases) {
    const bequeath = heir?.database === database ? `reassign owned by ${quote(role)} to ${quote(heir.owner)};` : "";
    await onServer(admin, (query) => query(`${bequeath} drop owned by ${quote(role)};`), database);
  }
  await onServer(admin, (query) => query(`drop role if exists ${quote(role)}`));
}
