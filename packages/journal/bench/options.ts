import { parseArgs } from "node:util";
import { benchmarks } from "./benchmarks.js";
import { type StoreName, storeNames } from "./places.js";

export interface Options {
  readonly help: boolean;
  readonly quick: boolean;
  /** How many there are in the store, for the benchmark of that name. */
  readonly resources: number;
  /** Names of benchmarks; all if there are none. */
  readonly only: readonly string[];
  readonly stores: readonly StoreName[];
  readonly json: string;
}

/** Throws a sentence for the user if something is not known. */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      resources: { type: "string" },
      only: { type: "string", multiple: true, default: [] },
      store: { type: "string", multiple: true, default: [] },
      json: { type: "string", default: ".bench/journal.json" },
    },
  });
  const { help, quick, only, store, json } = values;
  const names = benchmarks.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`there is no benchmark "${unknown}"; there are ${names.join(", ")}`);
  const stores = storeNames.filter((name) => store.length === 0 || store.includes(name.toLowerCase()));
  if (stores.length < store.length) throw new Error("--store takes sqlite, postgresql or mariadb");
  const resources = Number(values.resources ?? (quick ? 20_000 : 1_000_000));
  if (!Number.isInteger(resources) || resources < 10_000) throw new Error("--resources takes a number from 10000 on");
  return { help, quick, resources, only, stores, json };
}

export function helpText(): string {
  const width = Math.max(...benchmarks.map(({ name }) => name.length));
  return `npm run bench:journal -- [options]

  --only <name>    this benchmark alone; may be given several times
  --store <name>   on this store alone (sqlite, postgresql, mariadb); may be given several times
  --resources <n>  so many in the benchmark of that name (default 1000000); ten millions take 20 GB and a quarter of an hour
  --quick          small sizes: shows in a minute that everything runs; its figures are rough
  --json <file>    where to write the figures (default .bench/journal.json)
  --help           this text

${benchmarks.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n")}`;
}
