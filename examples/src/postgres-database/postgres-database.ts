import { randomBytes } from "node:crypto";
import { defineService, Failed } from "@osbert/broker";
import pg from "pg";
import type { AdminUrl } from "./connection.js";
import { createDatabase, createExtensions, dropDatabase, type Limits, setLimits, setPrivileges } from "./database.js";
import { bindingRole, databaseNames } from "./names.js";
import { createLogin, dropRole } from "./roles.js";

// Databases are cheap and servers are not, so both plans are databases on the same server; the plans differ in how much of it a database
// may take. "Dedicated" means a share of one's own, not a machine of one's own: for that, `admin` would have to be a function of the
// instance, and a first step would have to make a server.

const extensions = {
  type: "array",
  // The list is the promise: these can do nothing outside of their database.
  items: { enum: ["btree_gin", "citext", "fuzzystrmatch", "hstore", "ltree", "pg_trgm", "pgcrypto", "unaccent"] },
  uniqueItems: true,
} as const;
const connectionLimit = { type: "integer", minimum: 1, maximum: 80 } as const;
const bind = {
  type: "object",
  properties: {
    access: { enum: ["read-write", "read-only"] },
    expiresInSeconds: { type: "integer", minimum: 60, maximum: 31_536_000 },
  },
  additionalProperties: false,
} as const;
const expansion = { type: "object", properties: { extensions }, additionalProperties: false } as const;
const share = { type: "object", properties: { extensions, connectionLimit }, additionalProperties: false } as const;

/**
 * A PostgreSQL database for every instance, and a role with a password for every binding. Takes a server of version 14 or newer, and
 * the URL of a superuser on it.
 */
export function postgresDatabase(admin: AdminUrl) {
  return defineService({
    id: "c6a2b0de-52f0-4f0e-8a5b-7f6d3c1e9a20",
    name: "postgres-database",
    description: "A PostgreSQL database",
    tags: ["postgresql", "postgres", "sql"],
    planUpdateable: true,
    plans: {
      shared: {
        id: "c6a2b0de-52f0-4f0e-8a5b-7f6d3c1e9a21",
        description: "10 connections, 256 MB of temporary files each",
        bindingRotatable: true,
        provision: expansion,
        update: expansion,
        bind,
      },
      dedicated: {
        id: "c6a2b0de-52f0-4f0e-8a5b-7f6d3c1e9a22",
        description: "As many connections as you say, temporary files without limit",
        free: false,
        bindingRotatable: true,
        provision: share,
        update: share,
        bind,
      },
    },
    state: { type: "object", properties: { database: { type: "string" } }, required: ["database"] },
    // A server that does not answer is asked again and again; after so long the platform should hear of it.
    deadlineMs: { provision: 600_000, update: 600_000, bind: 600_000 },

    async provision(operation, { plan, parameters, instance }) {
      const names = databaseNames(instance);
      const limits = plan === "shared" ? sharedLimits : dedicatedLimits(parameters.connectionLimit);
      await operation.step("create the database", () => createDatabase(admin, names).then(done));
      await operation.step("set its privileges", () => setPrivileges(admin, names).then(done));
      await operation.step("set its limits", () => setLimits(admin, names.database, limits).then(done));
      const wanted = parameters.extensions ?? [];
      await operation.step("create its extensions", () =>
        createExtensions(admin, names.database, wanted).then(done, explain),
      );
      return { state: { database: names.database } };
    },

    // Both plans are on one server, so that a change of plan is a change of limits, and no data moves.
    async update(operation, { plan, parameters, previous, instance }) {
      const { database } = databaseNames(instance);
      const before = previous.parameters.connectionLimit;
      const limits =
        plan === "shared"
          ? sharedLimits
          : dedicatedLimits(parameters.connectionLimit ?? (typeof before === "number" ? before : undefined));
      await operation.step("set its limits", () => setLimits(admin, database, limits).then(done));
      const wanted = parameters.extensions ?? [];
      await operation.step("create its extensions", () =>
        createExtensions(admin, database, wanted).then(done, explain),
      );
    },

    async bind(operation, { parameters, instance, binding }) {
      const names = databaseNames(instance);
      const role = bindingRole(instance, binding.id);
      // Chosen in a step of its own: recorded before it is used, so that every attempt sets, and the answer tells, the same.
      const { password, expiresAt } = await operation.step("choose a password", () => ({
        password: randomBytes(24).toString("base64url"),
        expiresAt: parameters.expiresInSeconds === undefined ? null : Date.now() + parameters.expiresInSeconds * 1_000,
      }));
      const validUntil = expiresAt === null ? null : new Date(expiresAt);
      const access = parameters.access ?? "read-write";
      await operation.step("create the role", () =>
        createLogin(admin, names, { role, password, access, validUntil }).then(done),
      );

      // Nothing is said about a predecessor: a rotation makes another role beside it, with the parameters of the old one, and both are
      // valid until the platform unbinds the old one.
      const credentials = toCredentials(new URL(await admin()), names.database, role, password);
      const { host, port } = credentials;
      return {
        credentials,
        endpoints: [{ host, ports: [String(port)] }],
        ...(validUntil && {
          expiresAt: validUntil,
          renewBefore: renewal(validUntil, parameters.expiresInSeconds ?? 0),
        }),
      };
    },

    async unbind(operation, { instance, binding }) {
      const role = bindingRole(instance, binding.id);
      await operation.step("drop the role", () => dropRole(admin, role, databaseNames(instance)).then(done));
    },

    // Also after a provision that failed or was cancelled anywhere: what is not there is not dropped.
    async deprovision(operation, { instance }) {
      await operation.step("drop the database", () => dropDatabase(admin, databaseNames(instance)).then(done));
    },
  });
}

const sharedLimits: Limits = { connections: 10, temporaryMegabytes: 256 };

function dedicatedLimits(connections = 40): Limits {
  return { connections, temporaryMegabytes: null };
}

/** The step has nothing to record but that it was done. */
function done(): null {
  return null;
}

/** A server without the extension will not have it the next time either. */
function explain(error: unknown): never {
  const isMissing = error instanceof pg.DatabaseError && (error.code === "0A000" || error.code === "58P01");
  if (isMissing) throw new Failed("the server does not have one of these extensions", { cause: error });
  throw error;
}

/** When a fifth of the time is left. */
function renewal(expiresAt: Date, seconds: number): Date {
  return new Date(expiresAt.getTime() - seconds * 200);
}

function toCredentials(admin: URL, database: string, username: string, password: string) {
  const uri = new URL(`postgres://${username}:${password}@${admin.host}/${database}`);
  const sslmode = admin.searchParams.get("sslmode");
  if (sslmode !== null) uri.searchParams.set("sslmode", sslmode);
  return { uri: uri.href, host: admin.hostname, port: Number(admin.port || 5432), database, username, password };
}
