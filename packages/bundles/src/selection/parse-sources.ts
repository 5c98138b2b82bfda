import { parseOwnSource } from "./parse-own-source.js";
import { parseRegistryBlock } from "./parse-registry-block.js";
import { SettingFaults } from "./setting-reader.js";
import type { ParsedSources, SourceConfig } from "./source-config.js";

/** What stands in a file of settings, read as YAML or JSON and not looked at any further. */
export interface SourceSettings {
  /** As the Ansible Service Broker took it. */
  readonly registry?: unknown;
  /** Osbert's own form. */
  readonly sources?: unknown;
}

/** Checks the settings of all sources. With a fault in them nothing of them counts, and all faults are told at once. */
export function parseSources(settings: SourceSettings): ParsedSources {
  const faults = new SettingFaults();
  const found = [
    ...itemsOf(settings.registry, "registry", faults, parseRegistryBlock),
    ...itemsOf(settings.sources, "sources", faults, parseOwnSource),
  ];
  checkNames(found, faults);
  checkPushes(found, faults);
  if (faults.faults.length > 0) return { kind: "invalid", faults: faults.faults };
  return { kind: "valid", sources: found.map(({ source }) => source), advice: faults.advice };
}

interface Found {
  readonly path: string;
  readonly source: SourceConfig;
}

function itemsOf(
  list: unknown,
  path: string,
  faults: SettingFaults,
  parse: (value: unknown, path: string, faults: SettingFaults) => SourceConfig | undefined,
): readonly Found[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) return faults.fault(path, "must be a list") ?? [];
  if (list.length > mostSources) return faults.fault(path, `must have at most ${mostSources} items`) ?? [];
  return list.flatMap((value, at) => {
    const source = parse(value, `${path}[${at}]`, faults);
    return source === undefined ? [] : [{ path: `${path}[${at}]`, source }];
  });
}

const mostSources = 1_000;

/** F5-25: two sources of one name, now or earlier, would be one to everything that is kept. */
function checkNames(found: readonly Found[], faults: SettingFaults): void {
  const taken = new Map<string, string>();
  const take = (name: string, path: string) => {
    const other = taken.get(name);
    if (other === undefined) taken.set(name, path);
    else faults.fault(path, `${name} is already the name at ${other}; every source needs one of its own`);
  };
  for (const { path, source } of found) take(source.name, `${path}.name`);
  for (const { path, source } of found)
    source.previousNames.forEach((name, at) => take(name, `${path}.previousNames[${at}]`));
}

/** What is pushed is kept once, for all. */
function checkPushes(found: readonly Found[], faults: SettingFaults): void {
  const [first, ...others] = found.filter(({ source }) => source.connection.kind === "push");
  for (const { path } of others)
    faults.fault(`${path}.type`, `push is the type of ${first?.path} already; one is enough`);
}
