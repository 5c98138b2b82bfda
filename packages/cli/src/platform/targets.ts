import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isJsonObject } from "@osbert/protocol";
import { CommandError } from "../client/exit-status.js";
import type { Surroundings } from "../client/surroundings.js";

/** A platform that is known by a name. The login is in a file of its own. */
export interface Target {
  readonly url: string;
  readonly space: string | null;
  /** A file. */
  readonly ca: string | null;
}

export interface Targets {
  readonly current: string | null;
  readonly targets: Readonly<Record<string, Target>>;
}

/** The folder that targets and logins are kept in. */
export function targetsFolder(env: Surroundings["env"]): string {
  const { OSBERT_CONFIG_HOME: own, XDG_CONFIG_HOME: config, HOME: home } = env;
  if (own) return own;
  if (config) return join(config, "osbert");
  if (home) return join(home, ".config", "osbert");
  throw new CommandError("usage", "there is no place to keep targets in; set OSBERT_CONFIG_HOME");
}

export async function readTargets(folder: string): Promise<Targets> {
  const file = join(folder, "targets.json");
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new CommandError("usage", `${file} cannot be read (${error.code})`);
  });
  if (text === undefined) return { current: null, targets: {} };
  try {
    const { current, targets } = JSON.parse(text) as Partial<Targets>;
    if (!isJsonObject(targets)) throw new TypeError("no targets");
    for (const target of Object.values(targets))
      if (typeof target.url !== "string") throw new TypeError("a target without an address");
    return { current: typeof current === "string" ? current : null, targets };
  } catch {
    throw new CommandError("usage", `${file} is not as it was written; remove it, and add your targets again`);
  }
}

/** `null`: it has none. */
export async function readTargetLogin(folder: string, name: string): Promise<string | null> {
  const file = loginFile(folder, name);
  try {
    // Whoever could read it could be you; it is not used until that is mended.
    if (process.platform !== "win32" && ((await stat(file)).mode & 0o077) !== 0)
      throw new CommandError("usage", `others can read ${file}; change that with chmod 600, and then the password`);
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new CommandError("usage", `${file} cannot be read (${code})`);
  }
}

/**
 * Adds or replaces a target, and makes it the current one. The login comes first: a kill in between leaves a login without a target, which
 * nothing uses, and never a target with the login of another platform.
 */
export async function saveTarget(folder: string, name: string, target: Target, login: string | null): Promise<void> {
  checkTargetName(name);
  const { targets } = await readTargets(folder);
  if (login === null) await rm(loginFile(folder, name), { force: true });
  else await writePrivate(loginFile(folder, name), login);
  await writeTargets(folder, { current: name, targets: { ...targets, [name]: target } });
}

export async function useTarget(folder: string, name: string): Promise<void> {
  const { targets } = await readTargets(folder);
  targetNamed(targets, name);
  await writeTargets(folder, { current: name, targets });
}

/** The target first: what is left after a kill is a login that nothing uses. */
export async function removeTarget(folder: string, name: string): Promise<void> {
  const { current, targets } = await readTargets(folder);
  targetNamed(targets, name);
  const { [name]: _, ...others } = targets;
  await writeTargets(folder, { current: current === name ? null : current, targets: others });
  await rm(loginFile(folder, name), { force: true });
}

export function targetNamed(targets: Targets["targets"], name: string): Target {
  const target = Object.hasOwn(targets, name) ? targets[name] : undefined;
  if (target !== undefined) return target;
  const known = Object.keys(targets).join(", ") || "none";
  throw new CommandError("usage", `there is no target ${JSON.stringify(name)}; there are: ${known}`);
}

function checkTargetName(name: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw new CommandError("usage", "a target's name has letters, digits, dots, hyphens and underscores, at most 64");
}

function loginFile(folder: string, name: string): string {
  checkTargetName(name);
  return join(folder, "logins", name);
}

function writeTargets(folder: string, targets: Targets): Promise<void> {
  return writePrivate(join(folder, "targets.json"), `${JSON.stringify(targets, null, 2)}\n`);
}

/** Nobody but the owner reads it, not even for a moment; and a kill leaves the old one or the new one. */
async function writePrivate(file: string, text: string): Promise<void> {
  const folder = join(file, "..");
  const unfinished = `${file}.${process.pid}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(unfinished, text, { mode: 0o600 });
    // A file that a kill left there has the mode that it had.
    await chmod(unfinished, 0o600);
    await rename(unfinished, file);
  } catch (error) {
    throw new CommandError("usage", `${file} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}
