import { serve } from "@osbert/broker/http";
import { type Loaded, loadSettings } from "../settings/load.js";
import { realSystem } from "../settings/system.js";
import type { Settings } from "../settings/table.js";
import { placeName } from "../settings/value-node.js";
import { UserError } from "../user-error.js";
import { assemble, type Parts } from "./assemble.js";
import type { GeneratedCredential } from "./generated-credential.js";
import { loadModule } from "./load-module.js";
import { createLog } from "./log.js";
import { makeFolder } from "./make-folder.js";
import { chooseStore, storeTrouble } from "./open-store.js";
import { reloader } from "./reload.js";
import { watchFiles } from "./watch.js";

/** `osbert serve`: runs a broker until it is told to stop. */
export async function run(file: string | undefined): Promise<void> {
  const hangUps = signals("SIGHUP");
  outliveReaders();
  const system = realSystem();
  const started = loadSettings(file, system);
  const { settings } = started;
  const log = createLog(settings.log);
  await makeData(settings.data);
  const services = await loadModule(settings.module, { data: settings.data });
  const { store, address, release } = await chooseStore(settings, { migrate: settings.database.migrate });
  const { broker, served, made, apply, endTraces } = await startBroker(started, { services, store, log }).catch(
    async (error: unknown) => {
      await release();
      throw portTrouble(error, settings) ?? storeTrouble(error, address);
    },
  );
  if (settings.authentication === "none") log.warn("authentication is none: anyone who reaches this broker may ask");
  for (const key of ["credentials", "admin.credentials"]) {
    // The client commands may take theirs from the same variable; who has it set may not mean this broker.
    const place = started.places.get(key);
    if (place !== undefined && place.kind !== "file" && place.kind !== "default")
      log.info(`${key} are those of ${placeName(place)}`);
  }

  const reloading = reloader({
    started,
    load: () => loadSettings(started.file ?? file, system),
    apply: (next) => apply(next, served),
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
  announce(served.url, made, address, broker.catalog.services.size);
  const signal = await stopped;
  process.stdout.write(`${signal}: stopping; once more stops at once\n`);
  hangUps.listen(() => undefined);
  watching.close();
  // First the server, so that nothing new comes; then the operations; the pool when nobody uses it any more.
  await served.close({ drainMs: settings.limits.drain });
  await endTraces();
  await release();
}

async function startBroker(started: Loaded, parts: Parts) {
  const { serveOptions, ...assembled } = await assemble(started, parts);
  const served = await serve(assembled.broker, serveOptions);
  try {
    await assembled.made?.keep();
  } catch (error) {
    await served.close({ drainMs: 0 });
    throw error;
  }
  return { ...assembled, served };
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

function announce(url: string, made: GeneratedCredential | null, address: string, services: number): void {
  const count = `${services} service${services === 1 ? "" : "s"}`;
  process.stdout.write(`${madeLine(made)}osbert answers at ${url} with ${count}; its journal is in ${address}\n`);
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

function portTrouble(error: unknown, { listen: { host, port } }: Settings): UserError | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const tell = (why: string) => new UserError(`cannot listen on ${host}, port ${port}: ${why}`, { cause: error });
  if (code === "EADDRINUSE") return tell("it is in use; set listen.port or PORT to another one");
  if (syscall !== "listen" && syscall !== "getaddrinfo") return undefined;
  if (code === "EACCES") return tell("this user may not; take a port above 1023");
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return tell("this machine has no such address; set listen.host");
  return tell(String(code));
}
