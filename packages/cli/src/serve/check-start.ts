import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byPlace, type Fault } from "@osbert/server/yaml";
import type { SettingsRead } from "../settings/load.js";
import { SettingsError } from "../settings/settings-error.js";
import { UserError } from "../user-error.js";
import { catalogFaultsOf } from "./assemble.js";
import { credentialsOf, operatorCredentialsOf } from "./authentication.js";
import { loadModule } from "./load-module.js";
import { bundleFaultsOf } from "./open-bundles.js";
import { checkTls } from "./tls.js";

/**
 * All that `osbert serve` would refuse before it opens the store, at once. The module is loaded and its services are offered to nobody.
 * What needs a setting that is wrong is not looked at.
 */
export async function startFaults(read: SettingsRead): Promise<readonly Fault[]> {
  const areRight = (...sections: readonly string[]) =>
    !read.faults.some(({ key }) => sections.some((section) => key === section || key.startsWith(`${section}.`)));
  const found = [
    areRight("tls") ? faultsOf(() => checkTls(read)) : [],
    areRight("credentials", "tokens", "tls") ? faultsOf(() => credentialsOf(read)) : [],
    areRight("admin", "metrics") ? faultsOf(() => operatorCredentialsOf(read)) : [],
    areRight("module", "data", "catalog") ? await moduleFaults(read) : [],
    areRight("bundles") ? await bundleFaultsOf(read) : [],
  ];
  return [...read.faults, ...found.flat()].sort(byPlace);
}

async function moduleFaults(read: SettingsRead): Promise<readonly Fault[]> {
  const { module, data } = read.settings;
  const place = read.places.get("module") ?? { kind: "default" };
  if (module === undefined) return catalogFaultsOf(read, []);
  if (!existsSync(module)) return [{ place, key: "module", message: `there is no file ${module}` }];
  // A check leaves no folder behind that was not there.
  const made = existsSync(data) ? undefined : await mkdtemp(join(tmpdir(), "osbert-config-"));
  try {
    return catalogFaultsOf(read, await loadModule(module, { data: made ?? data }));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return [{ place, key: "module", message: error.message }];
  } finally {
    if (made !== undefined) await rm(made, { recursive: true, force: true });
  }
}

function faultsOf(check: () => unknown): readonly Fault[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.faults;
    throw error;
  }
}
