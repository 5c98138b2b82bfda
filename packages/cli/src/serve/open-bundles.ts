import { readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { BrokerError, type Service } from "@osbert/broker";
import {
  type BundleServices,
  type BundleSource,
  bundleServices,
  credentialsProblem,
  openBundleSource,
  PushedStore,
  RunnerError,
  SignatureKeyError,
  type SourceConfig,
  type SourcePorts,
} from "@osbert/bundles";
import type { BundleObserver } from "@osbert/bundles/watch";
import { type Fault, faultLine } from "@osbert/server/yaml";
import type { Logger } from "pino";
import { bundleSecrets } from "../settings/bundle-secrets.js";
import { bundleSources } from "../settings/bundle-sources.js";
import { type Loaded, loadSettings } from "../settings/load.js";
import { SettingsError } from "../settings/settings-error.js";
import { realSystem } from "../settings/system.js";
import type { Settings } from "../settings/table.js";
import { UserError } from "../user-error.js";
import { openImageStreams } from "./open-image-streams.js";
import { openRunner } from "./open-runner.js";

/** Who is told of what happens. */
export interface Told {
  readonly log: Logger;
  readonly observe: readonly BundleObserver[];
}

/**
 * The sources of bundles that the settings name, as services of a broker, beside those in code. `undefined`: they name none. Nothing is
 * asked of a registry before the broker starts.
 */
export async function openBundles(
  loaded: Loaded,
  services: readonly Service[],
  { log, observe }: Told,
): Promise<OpenedBundles | undefined> {
  const pushed = new PushedStore();
  const opened = await openSources(loaded, pushed);
  if (opened.sources === undefined) return undefined;
  if (opened.faults.length > 0) throw new SettingsError(opened.faults);
  for (const advice of opened.advice) log.warn(faultLine(advice));
  const { bundles, data } = loaded.settings;
  if (bundles.unsandboxed) log.warn("bundles.unsandboxed is true: bundles can do all that this program's user can");
  const directory = bundles.directory ?? join(data, "bundles");
  const offered = bundleServices({
    services,
    pushed,
    sources: opened.sources,
    mirror: join(directory, "files"),
    mirroring: bundles.mirror,
    limits: limitsOf(bundles),
    secrets: bundleSecrets(loaded.settings),
    observe,
    settings: (name) => nextSources(loaded, name, pushed),
    runner: (files) => openRunner(loaded.settings, directory, files, log).catch(runnerTrouble(directory)),
  });
  let secrets = bundleSecrets(loaded.settings);
  return {
    services: offered,
    async configure(next) {
      const { sources, faults, advice } = await openSources(next, pushed);
      if (faults.length > 0) throw new SettingsError(faults);
      // The sources last: they are written to the store, which may not answer.
      const others = bundleSecrets(next.settings);
      await offered.exchangeSecrets(others);
      try {
        // Named no more at all, they stay until the restart that this needs.
        if (sources !== undefined) await offered.configure(sources);
      } catch (error) {
        await offered.exchangeSecrets(secrets);
        throw error;
      }
      secrets = others;
      for (const each of advice) log.warn(faultLine(each));
    },
  };
}

/** The sources of another file beside the broker's settings: to be looked at, and not used. */
async function nextSources({ file }: Loaded, name: string, pushed: PushedStore): Promise<readonly BundleSource[]> {
  try {
    const { sources = [], faults } = await openSources(
      loadSettings(join(dirname(file ?? "."), name), realSystem()),
      pushed,
    );
    if (faults.length > 0) throw new SettingsError(faults);
    return sources;
  } catch (error) {
    if (!(error instanceof UserError || error instanceof SettingsError)) throw error;
    throw new BrokerError("bad-request", error.message, { cause: error });
  }
}

/** Services of bundles, and how their sources and secrets become others while the broker runs. */
export interface OpenedBundles {
  readonly services: BundleServices;
  /** Throws, and everything stays as it was, if the settings are wrong, or the store does not answer. */
  configure(next: Loaded): Promise<void>;
}

/** What works, but not as the writer of the settings may think. */
export async function bundleAdviceOf(loaded: Loaded): Promise<readonly Fault[]> {
  return (await openSources(loaded, new PushedStore())).advice;
}

/** What is wrong with the sources beyond how they are written, such as a file that is not there. */
export async function bundleFaultsOf(loaded: Loaded): Promise<readonly Fault[]> {
  return (await openSources(loaded, new PushedStore())).faults;
}

interface Opened {
  readonly sources: readonly BundleSource[] | undefined;
  readonly faults: readonly Fault[];
  readonly advice: readonly Fault[];
}

async function openSources({ settings, places, file }: Loaded, pushed: PushedStore): Promise<Opened> {
  const { sources, advice } = bundleSources(settings, places);
  const ports = {
    readFile: (path: string) => readFile(path, "utf8"),
    environment: (name: string) => process.env[name],
    folder: resolve(dirname(file ?? ".")),
    pushed,
    imageStreams: openImageStreams(settings),
  };
  // Classic bundles of runtime 2 need a namespace of their own to write to.
  const { runner, jobs } = settings.bundles;
  const runsRuntime2 = runner === "kubernetes" && jobs.sandbox !== "never";
  const faults: Fault[] = [];
  const opened: BundleSource[] = [];
  const missing: Fault[] = [];
  for (const { config, key, place } of sources ?? []) {
    const problem = await missingNow(config, ports);
    if (problem !== null) missing.push({ place, key, message: problem });
    try {
      opened.push(await openBundleSource(config, ports, { runsRuntime2 }));
    } catch (error) {
      if (error instanceof SignatureKeyError) {
        faults.push({ place, key: `${key}.signatures.keys`, message: error.message });
        continue;
      }
      if (error instanceof UserError && config.connection.kind === "image streams") {
        faults.push({ place, key: `${key}.type`, message: `reads image streams of a cluster, and ${error.message}` });
        continue;
      }
      const { code, path } = error as NodeJS.ErrnoException;
      if (code === undefined || path === undefined) throw error;
      faults.push({ place, key, message: `the file ${path} cannot be read (${code})` });
    }
  }
  return { sources: sources === undefined ? undefined : opened, faults, advice: [...advice, ...missing] };
}

/** It may be there before it is needed, and a broker must start while it is not: what is stored of the source is offered all the same. */
async function missingNow({ connection }: SourceConfig, ports: SourcePorts): Promise<string | null> {
  if (connection.kind === "folder") {
    const path = resolve(ports.folder, connection.path);
    const found = await stat(path).catch(() => null);
    return found?.isDirectory() ? null : `there is no folder ${path} now; the source is read when there is`;
  }
  const problem = await credentialsProblem(connection, ports);
  return problem === null ? null : `its credentials cannot be had now: ${problem}`;
}

function limitsOf({ limits, network }: Settings["bundles"]) {
  const mebibyte = 1_048_576;
  return {
    timeoutMs: limits.time,
    cpuSeconds: Math.ceil(limits.cpu / 1_000),
    memoryBytes: limits.memory * mebibyte,
    processes: limits.processes,
    outputBytes: limits.output * mebibyte,
    network,
  };
}

function runnerTrouble(directory: string): (error: unknown) => never {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof UserError) throw error;
    if (error instanceof RunnerError) throw new UserError(`bundles cannot be run: ${error.message}`, { cause: error });
    if (code === undefined) throw error;
    throw new UserError(`the folder ${directory} cannot be used (${code}); set bundles.directory to another one`, {
      cause: error,
    });
  };
}
