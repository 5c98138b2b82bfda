import { access } from "node:fs/promises";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Service, ServiceFunctions } from "@osbert/broker";
import { UserError } from "../user-error.js";

/** What a module's default function is given. */
export interface ModuleContext {
  /** The folder for what services keep in files. It exists. */
  readonly data: string;
}

/** A service, or functions that the settings make services of. */
export type Exported = Service | ServiceFunctions;

/**
 * Loads the services of a module: its export `services`, or what its default function returns. TypeScript is run as it is.
 *
 * The loader for TypeScript is registered for the whole process, not for this import alone: an isolated import would load
 * `@osbert/broker` a second time, and the engine would not know the errors that the module throws.
 */
export async function loadModule(path: string, context: ModuleContext): Promise<readonly Exported[]> {
  await access(path).catch(() => {
    throw new UserError(`the module ${path} is not there; write its path as module: in the settings`);
  });
  if (/^\.[cm]?tsx?$/.test(extname(path))) {
    const { register } = await import("tsx/esm/api");
    register();
  }
  const exported = await run(`the module ${path} cannot be loaded`, path, () => import(pathToFileURL(path).href));
  const { services, default: made } = exported as { readonly services?: unknown; readonly default?: unknown };
  const found =
    services ??
    (typeof made === "function"
      ? await run(`the default function of ${path} failed`, path, () => made(context))
      : made);
  return checked(found, path);
}

function checked(found: unknown, path: string): readonly Exported[] {
  const advice = 'write `export const services = [defineService({ … })]`, with defineService from "@osbert/broker"';
  if (!Array.isArray(found)) throw new UserError(`${path} must export a list of services; ${advice}`);
  found.forEach((service: unknown, index) => {
    const { id, name, plans } = (service ?? {}) as Readonly<Partial<Record<"id" | "name" | "plans", unknown>>>;
    // What has an id is meant for the catalog; functions without one are for the settings to use.
    const isFunctions = id === undefined && plans === undefined;
    if (typeof name !== "string" || !(isFunctions || (typeof plans === "object" && plans !== null)))
      throw new UserError(`item ${index + 1} of the services that ${path} exports is not a service; ${advice}`);
  });
  return found as readonly Exported[];
}

/** The author's error, with the line of the module that it came from, without the loader's own stack. */
async function run<T>(what: string, path: string, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { message, stack } = cause instanceof Error ? cause : new Error(String(cause));
    const line = stack?.split("\n").find((text) => /^\s+at /.test(text) && text.includes(path));
    const where = line === undefined ? "" : `\n${line}`;
    // Node's own words for it are of a cycle that nobody has written.
    if ((cause as { readonly code?: unknown }).code === "ERR_REQUIRE_CYCLE_MODULE")
      throw new UserError(`${what}: it is taken for a CommonJS module; write "type": "module" into its package.json`, {
        cause,
      });
    throw new UserError(`${what}: ${message}${where}`, { cause });
  }
}
