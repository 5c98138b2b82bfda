import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Run } from "./checks/evidence.js";
import { crashSuite } from "./crash-suite.js";
import { pointTable, report } from "./report.js";
import { type TemporaryStore, temporaryPostgres, temporarySqlite } from "./store-addresses.js";

const help = `usage: npm run test:crash -- [--kills N] [--store sqlite|postgres] [--seed N]

Runs an engine in a process of its own, kills it again and again with SIGKILL, and checks that nothing was lost.

  --kills N     how often to kill, for each store (default 200)
  --store NAME  sqlite or postgres (default: both); postgres needs OSBERT_TEST_POSTGRES_URL, which
                tools/with-servers.ts sets
  --module URL  a store module of your own, with --config JSON for its openStore
  --seed N      repeats a plan (default: by chance)
  --help        this text

Ends with 1 if a promise was broken or a crash point was never reached.`;

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
    store: { type: "string" },
    module: { type: "string" },
    config: { type: "string", default: "null" },
    seed: { type: "string" },
    help: { type: "boolean", default: false },
  } as const;
  return parseArgs({ args: [...args], options }).values;
}

async function main(args: Arguments): Promise<number> {
  if (args.help) {
    console.log(help);
    return 0;
  }
  const kills = wholeNumber("--kills", args.kills);
  const seed = args.seed === undefined ? undefined : wholeNumber("--seed", args.seed);
  let failed = false;
  for (const [name, open] of storesToTest(args)) {
    const store = await open();
    let evidence: Run | undefined;
    const keep = (run: Run) => {
      evidence = run;
    };
    const log = (line: string) => process.stderr.write(`${name}: ${line}\n`);
    const options = { store: store.address, kills, log, evidence: keep, ...(seed !== undefined && { seed }) };
    const verdict = await crashSuite(options);
    console.log(`${report(name, verdict)}\n  killed at\n${pointTable(verdict).replaceAll(/^/gm, "  ")}`);
    const broken = verdict.violations.length + verdict.neverReached.length > 0;
    if (broken) {
      const file = join(tmpdir(), `osbert-crash-${name.replaceAll(/[^a-z]/g, "")}-${verdict.seed}.json`);
      writeFileSync(file, JSON.stringify(evidence));
      console.log(`  kept: the evidence in ${file}, the store at ${JSON.stringify(store.address.config)}`);
    } else await store.remove();
    failed ||= broken;
  }
  return failed ? 1 : 0;
}

function storesToTest(args: Arguments): readonly (readonly [string, () => Promise<TemporaryStore>])[] {
  if (args.module !== undefined) {
    const address = { module: args.module, config: JSON.parse(args.config) };
    return [[args.module, async () => ({ address, remove: async () => undefined })]];
  }
  const url = process.env.OSBERT_TEST_POSTGRES_URL;
  const postgres = () => {
    if (url === undefined)
      throw new Error("OSBERT_TEST_POSTGRES_URL is not set; run this through tools/with-servers.ts");
    return temporaryPostgres(url);
  };
  const stores = { sqlite: temporarySqlite, postgres };
  if (args.store === undefined) return Object.entries(stores);
  if (args.store !== "sqlite" && args.store !== "postgres")
    throw new Error(`--store is sqlite or postgres, not ${JSON.stringify(args.store)}`);
  return [[args.store, stores[args.store]]];
}

function wholeNumber(name: string, text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new Error(`${name} is a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}
