import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import {
  type BundleServices,
  type BundleServicesOptions,
  type BundleSource,
  bundleServices,
  openBundleSource,
  openProcessRunner,
  parseSources,
} from "../src/index.js";

/** A folder that goes with the test. */
export async function bundleFolder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "osbert-bundles-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

interface FolderChoice {
  readonly guarded?: boolean;
  readonly change?: (source: BundleSource) => BundleSource;
}

/** The source `folder`: bundles in a folder. What is missing retires with the first reading, and nothing is held by the guard. */
export async function folderServices(
  bundles: string,
  options: Partial<BundleServicesOptions> & FolderChoice = {},
): Promise<BundleServices> {
  const { guarded = false, change = (source) => source, ...others } = options;
  const work = await bundleFolder();
  const parsed = parseSources({ sources: [{ name: "folder", type: "folder", path: bundles, interval: "10d" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const [config] = parsed.sources;
  if (config === undefined) throw new Error("no source");
  const ports = { readFile: (path: string) => readFile(path, "utf8"), environment: () => undefined, folder: bundles };
  const pushed = { list: async () => [], read: async () => null, fetch: async () => undefined };
  const opened = await openBundleSource(config, { ...ports, pushed });
  const guard = guarded ? {} : { least: 100, share: 1 };
  const rules = { ...opened.rules, missing: { runs: 1, ms: 0 }, guard: { ...opened.rules.guard, ...guard } };
  return bundleServices({
    sources: [change({ ...opened, rules })],
    runner: (files) => openProcessRunner({ directory: join(work, "jobs"), files, unsandboxed: true }),
    mirror: join(work, "mirror"),
    ...others,
  });
}

/** A bundle whose command is `sh ./run.sh`. */
export async function writeBundle(bundles: string, name: string, yaml: string, script: string): Promise<void> {
  await mkdir(join(bundles, name), { recursive: true });
  await writeFile(join(bundles, name, "osbert.yaml"), yaml);
  await writeFile(join(bundles, name, "run.sh"), script);
}
