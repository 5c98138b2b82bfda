import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Service } from "@osbert/broker";
import {
  type BundleServices,
  bundleServices,
  openBundleSource,
  openProcessRunner,
  parseSources,
  RunnerError,
} from "@osbert/bundles";

export interface BundlesInFolder {
  /** A folder with a folder for each bundle. */
  readonly folder: string;
  /** For files of bundles, and for their runs. */
  readonly directory: string;
  /** Services in code that are offered beside them. */
  readonly services: readonly Service[];
}

/**
 * The bundles of a folder, as services for `createBroker`. Where they cannot be run here as they should be, in a sandbox, it says why.
 * `osbert serve` does all of it by its settings.
 */
export async function bundlesInFolder(
  options: BundlesInFolder,
): Promise<BundleServices | { readonly leftOut: string }> {
  const { folder, directory, services } = options;
  if (!process.execPath.startsWith("/usr/"))
    return { leftOut: "a sandbox sees programs in /usr, and Node.js is not there" };
  const runner = (files: Parameters<typeof openProcessRunner>[0]["files"]) =>
    openProcessRunner({ directory: join(directory, "runs"), files });
  try {
    await runner(async () => "");
  } catch (error) {
    if (error instanceof RunnerError) return { leftOut: error.message };
    throw error;
  }
  const parsed = parseSources({ sources: [{ name: "examples", type: "folder", path: folder, interval: "10s" }] });
  if (parsed.kind === "invalid") throw new Error(parsed.faults.map(({ message }) => message).join());
  const ports = {
    readFile: (path: string) => readFile(path, "utf8"),
    environment: (name: string) => process.env[name],
    pushed: { list: async () => [], read: async () => null, fetch: async () => undefined },
    folder,
  };
  const sources = await Promise.all(parsed.sources.map((config) => openBundleSource(config, ports)));
  return bundleServices({ sources, services, runner, mirror: join(directory, "files") });
}
