import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  type CrashResult,
  chaosSuite,
  crashSuite,
  pointTable,
  type Run,
  report,
  type TemporaryStore,
  temporaryMysql,
  temporaryPostgres,
  temporarySqlite,
} from "../packages/journal-suites/src/crash/index.js";
import { type LeftOut, type RunningServer, startMariadb, startPostgres } from "./servers.js";

const help = `usage: npm run test:crash -- [--kills N] [--store NAME] [--seed N]
       npm run test:crash -- --chaos [--minutes N] [--store NAME] [--seed N]

Runs an engine in a process of its own, kills it again and again with SIGKILL, and checks that nothing was lost. With --chaos
there are several engines, which are killed, frozen and cut off, on servers that end sessions, restart and lose answers.

  --kills N     how often to kill, for each store (default 200)
  --chaos       disturbs in every way instead, in rounds on a new store each
  --minutes N   for so long, for each store (default 10)
  --store NAME  sqlite, postgres or mysql (default: all)
  --module URL  a store module of your own, with --config JSON for its openStore; without --chaos
  --seed N      repeats a scenario (default: by chance); a round of chaos tells its own
  --help        this text

Ends with 1 if a promise was broken or a crash point was never reached.`;

/** A round of chaos disturbs for so long; what is left to do, and the checks, take some seconds more. */
const roundMs = 40_000;

try {
  process.exitCode = await main(argumentsOf(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}

type Arguments = ReturnType<typeof argumentsOf>;

function argumentsOf(args: readonly string[]) {
  const options = {
    kills: { type: "string", default: "200" },
    chaos: { type: "boolean", default: false },
    minutes: { type: "string", default: "10" },
    store: { type: "string" },
    module: { type: "string" },
    config: { type: "string", default: "null" },
    seed: { type: "string" },
    help: { type: "boolean", default: false },
  } as const;
  return parseArgs({ args: [...args], options }).values;
}

/** A store to test: each round gets a new one. */
interface Subject {
  readonly name: string;
  readonly open: () => Promise<TemporaryStore>;
  readonly stop: () => Promise<void>;
}

async function main(args: Arguments): Promise<number> {
  if (args.help) {
    console.log(help);
    return 0;
  }
  const kills = wholeNumber("--kills", args.kills);
  const minutes = wholeNumber("--minutes", args.minutes);
  const seed = args.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber("--seed", args.seed);
  let kept = true;
  for (const start of subjects(args)) {
    const subject = await start();
    const isKept = args.chaos ? await chaos(subject, minutes, seed) : await crash(subject, kills, seed);
    await subject.stop();
    kept &&= isKept;
  }
  return kept ? 0 : 1;
}

async function crash(subject: Subject, kills: number, seed: number): Promise<boolean> {
  const result = await round(subject, (store, common) => crashSuite({ ...common, store: store.address, kills, seed }));
  console.log(`  killed at\n${pointTable(result).replaceAll(/^/gm, "  ")}`);
  return result.violations.length + result.neverReached.length === 0;
}

async function chaos(subject: Subject, minutes: number, seed: number): Promise<boolean> {
  const until = performance.now() + minutes * 60_000;
  let kept = true;
  const sums = new Map<string, number>();
  const add = (what: string, n: number) => sums.set(what, (sums.get(what) ?? 0) + n);
  for (let next = seed; performance.now() < until; next++) {
    // By the seed alone, so that it repeats a round.
    const leases = next % 2 === 0 ? "short" : "usual";
    const result = await round(subject, (store, common) =>
      chaosSuite({ ...common, store, leases, forMs: roundMs, seed: next }),
    );
    add("rounds", 1);
    add("operations", result.operations);
    add("kills", result.kills.atPoints + result.kills.atRandom);
    add("freezes", result.freezes);
    for (const [kind, { times, hit }] of Object.entries(result.disturbances)) {
      add(kind, times);
      if (hit !== times) add(`${kind}, hit`, hit);
    }
    add("violations", result.violations.length);
    kept &&= result.violations.length === 0;
  }
  console.log(`${subject.name} in all\n${[...sums].map(([what, n]) => `  ${what} ${n}`).join("\n")}`);
  return kept;
}

interface Common {
  readonly log: (line: string) => void;
  readonly evidence: (run: Run) => void;
}

async function round(
  { name, open }: Subject,
  suite: (store: TemporaryStore, common: Common) => Promise<CrashResult>,
): Promise<CrashResult> {
  const store = await open();
  let evidence: Run | undefined;
  const result = await suite(store, {
    log: (line) => process.stderr.write(`${name}: ${line}\n`),
    evidence: (run) => {
      evidence = run;
    },
  });
  console.log(report(name, result));
  if (result.violations.length > 0) {
    const file = join(tmpdir(), `osbert-crash-${name.replaceAll(/[^a-z]/g, "")}-${result.seed}.json`);
    writeFileSync(file, JSON.stringify(evidence));
    console.log(`  kept: the evidence in ${file}`);
  } else await store.remove();
  return result;
}

function subjects(args: Arguments): readonly (() => Promise<Subject>)[] {
  if (args.module !== undefined) {
    const { module } = args;
    if (args.chaos) throw new Error("--chaos needs a new store for each round; call chaosSuite with yours");
    const address = { module, config: JSON.parse(args.config) };
    const open = async () => ({ address, remove: async () => undefined });
    return [async () => ({ name: module, open, stop: async () => undefined })];
  }
  const stores: Readonly<Record<string, () => Promise<Subject>>> = {
    sqlite: async () => ({ name: "sqlite", open: temporarySqlite, stop: async () => undefined }),
    postgres: async () => onServer("postgres", await startPostgres(), temporaryPostgres),
    mysql: async () => onServer("mysql", await startMariadb(), temporaryMysql),
  };
  if (args.store === undefined) return Object.values(stores);
  const chosen = stores[args.store];
  if (chosen === undefined)
    throw new Error(`--store is ${Object.keys(stores).join(", ")}, not ${JSON.stringify(args.store)}`);
  return [chosen];
}

function onServer(
  name: string,
  running: RunningServer | LeftOut,
  open: (url: string) => Promise<TemporaryStore>,
): Subject {
  if ("leftOut" in running) throw new Error(running.leftOut);
  return { name, open: async () => withRestart(await open(running.url), running), stop: () => running.stop() };
}

/** Who started the server can also restart it. */
function withRestart(store: TemporaryStore, { restart }: RunningServer): TemporaryStore {
  if (restart === undefined || store.server === undefined) return store;
  return { ...store, server: { ...store.server, restart } };
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new Error(`${name} is a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}
