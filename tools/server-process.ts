import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A server program that runs in a directory of its own. */
export interface ServerProcess {
  /** Resolves with the last lines of the server's log once the server is gone, however it ended. */
  readonly gone: Promise<string>;
  /** Ends the server and removes its directory; resolves when both are done. */
  stop(): Promise<void>;
  /** Ends the server where it stands and starts it again, on what it has written; resolves when a new process runs. */
  restart(): Promise<void>;
}

/** A new empty directory for a server's data, and the account that owns it and runs the server. */
export interface ServerHome {
  readonly directory: string;
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * Makes a directory for a server. PostgreSQL and MariaDB refuse to run as root, so for root it belongs to the first of
 * `users` that exists on this machine.
 */
export function makeServerHome(name: string, users: readonly string[]): ServerHome {
  const owner = process.getuid?.() === 0 ? findAccount(users) : undefined;
  const directory = mkdtempSync(join(tmpdir(), `osbert-${name}-`));
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  return { directory, owner };
}

/**
 * Runs a server under a small supervisor that lives as long as its standard input is open. That is closed by `stop()`, and
 * by the kernel when this process ends in any way, SIGKILL included: no server and no directory outlives its test run.
 *
 * `script` is shell, ends with `exec SERVER`, and finds `args` as "$1", "$2" and so on. At a restart it is run again.
 */
export function runServer(home: ServerHome, script: string, args: readonly string[], endSignal: string): ServerProcess {
  const guard = findProgram("setpriv") === undefined ? [] : ["setpriv", "--pdeathsig", "KILL"];
  const command = [...guard, "sh", "-ec", script, "server", ...args];
  const supervisor = spawn("sh", ["-c", supervise, "supervisor", home.directory, endSignal, ...command], {
    cwd: home.directory,
    // A process group of its own: Ctrl-C in the terminal reaches the test run, which then ends the server in its own time.
    detached: true,
    env: { PATH: searchPath().join(delimiter), LC_ALL: "C", TZ: "UTC" },
    stdio: ["pipe", "pipe", "ignore"],
    ...home.owner,
  });
  let log = "";
  supervisor.stdout.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const gone = new Promise<string>((resolve) => {
    supervisor.once("error", (error) => resolve(error.message));
    supervisor.once("close", () => resolve(log.trim()));
  });
  supervisor.stdin.on("error", () => {}); // EPIPE: the supervisor ended first, which `gone` tells.
  const handles = [supervisor, supervisor.stdin as Socket, supervisor.stdout as Socket];
  for (const handle of handles) handle.unref();
  return {
    gone,
    async stop() {
      for (const handle of handles) handle.ref();
      supervisor.stdin.end();
      await gone;
    },
    async restart() {
      const pid = pidIn(home);
      writeFileSync(join(home.directory, "again"), "");
      process.kill(pid, `SIG${endSignal}`);
      for (let waits = 0; pidIn(home) === pid; waits++) {
        if (waits === 1_500) throw new Error(`process ${pid} does not end`);
        await sleep(20);
      }
    },
  };
}

// $1: directory, $2: signal that ends the server, the rest: the server's command line. The signal is repeated because a shell
// that still prepares the data ignores some of them; what such a shell started is in this process group, which goes last.
const supervise = `
directory=$1 signal=$2
shift 2
exec 3<&0
( read -r _ <&3; while kill -s "$signal" "$(cat "$directory/server.pid")"; do sleep 0.2; done ) 2>/dev/null &
while :; do
  "$@" >>"$directory/server.log" 2>&1 </dev/null 3<&- &
  server=$!
  echo "$server" >"$directory/server.new"
  mv "$directory/server.new" "$directory/server.pid"
  wait "$server"
  rm "$directory/again" 2>/dev/null || break
done
trap '' TERM
kill -s TERM 0
tail -n 20 "$directory/server.log"
cd /
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$directory" 2>/dev/null && break; sleep 0.2; done
`;

function pidIn({ directory }: ServerHome): number {
  return Number(readFileSync(join(directory, "server.pid"), "utf8"));
}

/** Where a program is, looking also in the system folders that an ordinary user's PATH leaves out. */
export function findProgram(name: string): string | undefined {
  return searchPath()
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/** A port of the loopback interface that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        if (address !== null && typeof address === "object") resolve(address.port);
        else reject(new Error("the loopback interface gave no port"));
      });
    });
  });
}

function searchPath(): readonly string[] {
  const usual = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return [...new Set([...(process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== ""), ...usual])];
}

function findAccount(users: readonly string[]): { uid: number; gid: number } {
  for (const user of [...users, "nobody"]) {
    try {
      return { uid: numberFromId("-u", user), gid: numberFromId("-g", user) };
    } catch {
      // No such user on this machine.
    }
  }
  throw new Error(`none of the users ${users.join(", ")} or nobody exists, and a server must not run as root`);
}

function numberFromId(flag: "-u" | "-g", user: string): number {
  return Number(execFileSync("id", [flag, user], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
}
