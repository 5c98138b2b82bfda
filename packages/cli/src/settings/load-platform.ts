import type { Fault, Place } from "@osbert/server/yaml";
import { checkServer } from "./check-server.js";
import { type PlatformSettings, platformTable } from "./platform-table.js";
import { type LoadedSettings, loadSettingsFile, type SettingsKind } from "./read-settings-file.js";
import type { System } from "./system.js";

/** Settings of a platform that hold, and where they come from. */
export type LoadedPlatform = LoadedSettings<PlatformSettings>;

/** Looked for where no file is named. */
export const usualPlatformFile = "osbert-platform.yaml";

/** What variables of the environment begin with: a broker beside it has its own. */
export const platformPrefix = "OSBERT_PLATFORM";

const kind: SettingsKind<typeof platformTable> = {
  table: platformTable,
  usualFile: usualPlatformFile,
  prefix: platformPrefix,
  checkTogether,
};

/** Throws a SettingsError with every fault. */
export function loadPlatformSettings(named: string | undefined, world: System): LoadedPlatform {
  return loadSettingsFile(kind, named, world);
}

/** Rules between settings, which no single one of them can tell. */
function checkTogether(settings: PlatformSettings, places: ReadonlyMap<string, Place>): readonly Fault[] {
  const faults: Fault[] = [];
  const fault = (key: string, message: string) =>
    faults.push({ place: places.get(key) ?? { kind: "default" }, key, message });
  const { credentials = [], tokens = [], tls } = settings;
  const granted = [
    ...credentials.map((each, index) => ({ key: `credentials[${index}]`, ...each })),
    ...tokens.map((each, index) => ({ key: `tokens[${index}]`, ...each })),
    ...(tls.clients ?? []).map((each, index) => ({ key: `tls.clients[${index}]`, ...each })),
  ];
  for (const { key, role, spaces } of granted)
    if (role === "operate" && spaces !== undefined)
      fault(`${key}.spaces`, "must be left out: operators have all spaces");
  tokens.forEach(({ issuer, spaces, spacesClaim, role }, index) => {
    if (tokens.findIndex((other) => other.issuer === issuer) < index)
      fault(`tokens[${index}].issuer`, "is there twice; leave one of them out");
    if (spacesClaim !== undefined && (spaces !== undefined || role === "operate"))
      fault(`tokens[${index}].spacesClaim`, "stands in place of spaces, for the roles see and change");
  });
  const said = (each: (typeof credentials)[number]) => JSON.stringify([each.role, each.spaces]);
  credentials.forEach((own, index) => {
    const first = credentials.find(({ username }) => username === own.username);
    if (first !== undefined && said(first) !== said(own))
      fault(`credentials[${index}]`, `is another one of ${own.username}, with another role or other spaces`);
  });
  return [...faults, ...checkServer(settings, places)];
}
