import type { Store } from "@osbert/journal";
import type { Logger } from "pino";
import type { Changes } from "../settings/changes.js";
import type { LoadedSettings } from "../settings/read-settings-file.js";
import { realSystem, type System } from "../settings/system.js";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import type { GeneratedCredential } from "./generated-credential.js";
import { boundHeapGrowth } from "./heap-growth.js";
import { createLog } from "./log.js";
import { makeFolder } from "./make-folder.js";
import { chooseStore, storeTrouble } from "./open-store.js";
import { reloader } from "./reload.js";
import { watchFiles } from "./watch.js";

/** What every server has settings for. */
export type ServerSettings = Pick<Settings, "data" | "store" | "database" | "keys" | "listen" | "log" | "reload">;

/** A server that the program can run. */
export interface ServerProgram<Values extends ServerSettings, Prepared> {
  /** What brings its store up to date. */
  readonly migrateCommand: string;
  load(file: string | undefined, system: System): LoadedSettings<Values>;
  /** What another reading would change. */
  changes(before: LoadedSettings<Values>, after: LoadedSettings<Values>): Changes;
  /** Before a store is chosen. */
  prepare(loaded: LoadedSettings<Values>): Promise<Prepared>;
  /** Resolves when it answers; has left nothing behind if it rejects. */
  start(loaded: LoadedSettings<Values>, parts: ServerParts<Prepared>): Promise<RunningServer<Values>>;
}

export interface ServerParts<Prepared> {
  readonly prepared: Prepared;
  readonly store: Store;
  readonly log: Logger;
}

export interface RunningServer<Values> {
  /** Where it answers, and with what: the end of a sentence. */
  readonly answers: string;
  /** Made because the settings name none. */
  readonly made: GeneratedCredential | null;
  /** Applies what can be changed while it runs. Throws, and has changed nothing, if it is refused. */
  apply(next: LoadedSettings<Values>): Promise<void>;
  close(): Promise<void>;
}

/** Runs a server by its settings until it is told to stop. */
export async function runServer<Values extends ServerSettings, Prepared>(
  program: ServerProgram<Values, Prepared>,
  file: string | undefined,
): Promise<void> {
  const hangUps = signals("SIGHUP");
  outliveReaders();
  const system = realSystem();
  const started = program.load(file, system);
  const { settings } = started;
  const log = createLog(settings.log);
  await makeData(settings.data);
  const prepared = await program.prepare(started);
  const { store, address, release } = await chooseStore(settings, { migrate: settings.database.migrate });
  const server = await program.start(started, { prepared, store, log }).catch(async (error: unknown) => {
    await release();
    throw portTrouble(error, settings) ?? storeTrouble(error, address, program.migrateCommand);
  });
  // Only now: what a start makes nearly all stays, and to look through it again and again would only take time.
  boundHeapGrowth();

  const reloading = reloader({
    started,
    load: () => program.load(started.file ?? file, system),
    changes: (before, after) => program.changes(before, after),
    apply: (next) => server.apply(next),
    log,
  });
  const reload = async (cause: string) => {
    await reloading.request(cause);
    // Which files are named may have changed, too.
    if (settings.reload.watch) watching.follow(reloading.files);
  };
  const watching = watchFiles({
    system,
    changed: () => void reload("a file changed"),
    failed: (folder) => log.warn(`${folder} cannot be watched; send SIGHUP after a change`),
  });
  if (settings.reload.watch) watching.follow(started.files);
  hangUps.listen(() => void reload("SIGHUP"));

  // Whoever waits for this line may send signals at once: it comes after all of the above.
  const stopped = untilStopped();
  process.stdout.write(`${madeLine(server.made)}${server.answers}; its journal is in ${address}\n`);
  const signal = await stopped;
  process.stdout.write(`${signal}: stopping; once more stops at once\n`);
  hangUps.listen(() => undefined);
  watching.close();
  // First the server, so that nothing new comes; then the operations; the pool when nobody uses it any more.
  await server.close();
  await release();
}

/** Whoever reads what is printed may go away: that is no reason to stop. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // Other commands end when nobody reads what they print.
    stream.removeAllListeners("error");
    stream.on("error", () => undefined);
  }
}

/** Hears a signal from now on, and tells it, also one that came before anyone listened: unheard it would end the process. */
function signals(signal: NodeJS.Signals) {
  let missed = false;
  let listener = () => {
    missed = true;
  };
  process.on(signal, () => listener());
  return {
    listen(next: () => void) {
      listener = next;
      if (missed) next();
      missed = false;
    },
  };
}

async function makeData(folder: string): Promise<void> {
  await makeFolder(folder).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(
      `the folder ${folder} cannot be made (${error.code}); write another one as data: in the settings`,
    );
  });
}

function madeLine(made: GeneratedCredential | null): string {
  if (made === null) return "";
  const { password, file, credential } = made;
  return password === null
    ? `No credentials are set: ${credential.username} and the password of the first start are valid; remove ${file} for another one\n`
    : `No credentials are set, so this one was made; it is shown only now: ${credential.username}:${password}\n`;
}

/** The first signal to stop. A second one ends the process at once; the journal is made for that. */
function untilStopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let signalled = false;
    const stop = (signal: NodeJS.Signals) => {
      if (signalled) process.exit(signal === "SIGINT" ? 130 : 143);
      signalled = true;
      resolve(signal);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
  });
}

function portTrouble(error: unknown, { listen: { host, port } }: ServerSettings): UserError | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const tell = (why: string) => new UserError(`cannot listen on ${host}, port ${port}: ${why}`, { cause: error });
  if (code === "EADDRINUSE") return tell("it is in use; set listen.port or PORT to another one");
  if (syscall !== "listen" && syscall !== "getaddrinfo") return undefined;
  if (code === "EACCES") return tell("this user may not; take a port above 1023");
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return tell("this machine has no such address; set listen.host");
  return tell(String(code));
}
