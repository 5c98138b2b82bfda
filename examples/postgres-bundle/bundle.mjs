// A database for each instance, a role for each binding. The account on the server is given by the operator, as secrets for bundles: host, port
// (5432), user, password and database (postgres). Every statement may run twice. They go to psql by its standard input, and the account
// by its environment: no password is on a command line.
import { spawnSync } from "node:child_process";
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

const input = JSON.parse(readFileSync(0, "utf8"));
const server = { port: "5432", database: "postgres", ...input.secrets };
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
// Ids come from outside and may be any text; a name of this form needs no quotes.
const nameOf = (kind, ...ids) =>
  `${kind}_${createHash("sha256").update(JSON.stringify(ids)).digest("hex").slice(0, 40)}`;

const instanceIds = [input.instance.platform, input.instance.id];
const database = nameOf("db", ...instanceIds);
const connections = input.plan.name === "large" ? 100 : 10;

const actions = {
  provision() {
    say({ state: { database } }); // before it is made: a deprovision knows of it, whatever happens next
    say({ progress: "making the database" });
    // The role without a login owns all that is made, so that a binding's role can be removed at any time.
    run(`
      select 'create role ${database} nologin' where not exists (select from pg_roles where rolname = '${database}') \\gexec
      select 'create database ${database} owner ${database}' where not exists (select from pg_database where datname = '${database}') \\gexec
      revoke all on database ${database} from public;
      alter database ${database} connection limit ${connections};`);
  },
  update() {
    run(`alter database ${database} connection limit ${connections};`);
  },
  bind() {
    const username = nameOf("user", ...instanceIds, input.binding.id);
    const password = randomBytes(24).toString("hex");
    // A second run gives the role another password: the last credentials that were said are those that count.
    run(`
      select 'create role ${username}' where not exists (select from pg_roles where rolname = '${username}') \\gexec
      grant ${database} to ${username};
      alter role ${username} login password '${scramVerifier(password)}';
      alter role ${username} set role to ${database};`);
    const { host, port } = server;
    const uri = `postgresql://${username}:${password}@${host}:${port}/${database}`;
    say({ credentials: { uri, host, port: Number(port), database, username, password } });
  },
  unbind() {
    const username = nameOf("user", ...instanceIds, input.binding.id);
    run(`
      select 'alter role ${username} nologin' from pg_roles where rolname = '${username}' \\gexec
      select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '${username}';
      drop role if exists ${username};`);
  },
  deprovision() {
    run(`
      drop database if exists ${database} with (force);
      drop role if exists ${database};`);
  },
};

/** Runs statements, up to the first that fails. A server that cannot be reached is tried again later. */
function run(statements) {
  const { status, stderr, error } = spawnSync("psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1"], {
    input: statements,
    encoding: "utf8",
    env: {
      ...{ PATH: process.env.PATH, PGCONNECT_TIMEOUT: "10", PGHOST: server.host, PGPORT: server.port },
      ...{ PGUSER: server.user, PGPASSWORD: server.password, PGDATABASE: server.database },
    },
  });
  if (error !== undefined) throw error;
  if (status === 0) return;
  process.stderr.write(stderr);
  const isUnreachable = status === 2;
  if (isUnreachable) say({ retryAfterSeconds: 10 });
  process.exit(isUnreachable ? 75 : 1);
}

/** What the server keeps of a password: so the password itself is in no statement, and in no log of the server. */
function scramVerifier(password) {
  const [salt, iterations] = [randomBytes(16), 4096];
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const keyOf = (text) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(keyOf("Client Key")).digest("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${keyOf("Server Key").toString("base64")}`;
}

const act = actions[process.argv.at(-1)];
if (act === undefined) process.exit(8); // an action that is not known
for (const key of ["host", "user", "password"])
  if (server[key] === undefined) throw new Error(`the operator has to give this bundle the secret ${key}`);
act();
