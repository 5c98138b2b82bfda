import { bundleSecretFaults } from "./bundle-secrets.js";
import { bundleSources } from "./bundle-sources.js";
import { checkTogether } from "./check.js";
import {
  type LoadedSettings,
  loadSettingsFile,
  type ReadSettings,
  readSettingsFile,
  type SettingsKind,
} from "./read-settings-file.js";
import type { System } from "./system.js";
import { type Settings, table } from "./table.js";

/** Settings of a broker that hold, and where they come from. */
export type Loaded = LoadedSettings<Settings>;

/** What was read, with what is wrong with it. A setting with a fault has no value, whatever its type says. */
export type SettingsRead = ReadSettings<Settings>;

/** Looked for where no file is named. */
export const usualFile = "osbert.yaml";

const kind: SettingsKind<typeof table> = {
  table,
  usualFile,
  prefix: "OSBERT",
  checkTogether,
  checkAlone: (settings, places) => [
    ...bundleSources(settings, places).faults,
    ...bundleSecretFaults(settings, places),
  ],
};

/** Throws a SettingsError with every fault. */
export function loadSettings(named: string | undefined, world: System): Loaded {
  return loadSettingsFile(kind, named, world);
}

/** The same for those who want to look at the rest, too. Throws only if the file cannot be read at all. */
export function readSettings(named: string | undefined, world: System): SettingsRead {
  return readSettingsFile(kind, named, world);
}
