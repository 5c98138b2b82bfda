import { instanceKey, type Service } from "@osbert/broker";
import type { Attribution, Journal } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { AskedInstance, BundleAdminPorts } from "../admin/bundle-admin.js";
import { readView } from "../admin/read-view.js";
import type { PreviewView } from "../admin/views.js";
import { parseBundle } from "../formats/parse-bundle.js";
import type { AdminDecision } from "../reconcile/admin-decisions.js";
import type { StoredSource } from "../reconcile/records.js";
import type { Runner } from "../runners/runner.js";
import { askForReading, readingState } from "./ask-for-reading.js";
import { bundlePushes, type PushSource } from "./bundle-pushes.js";
import type { BundleServicesOptions } from "./bundle-services-options.js";
import type { BundleSource } from "./bundle-source.js";
import type { ConfiguredSources } from "./configured-sources.js";
import { danglingInstances, whyDangling } from "./dangling-instances.js";
import { instanceJobs } from "./instance-jobs.js";
import { lookAtTag } from "./look-at-tag.js";
import type { OfferedCatalog } from "./offered-catalog.js";
import type { SourceCopies } from "./source-copies.js";
import type { SourceReadings } from "./source-readings.js";
import { sourceEvents, sourceRun, sourceRuns } from "./source-runs.js";

/** What the admin API of bundles is made of. */
export interface AdministeredBundles {
  readonly journal: () => Journal;
  readonly options: Pick<BundleServicesOptions, "settings" | "pushed">;
  readonly services: Pick<BundleAdminPorts, "refresh" | "decide" | "collectable"> & {
    preview(sources: readonly BundleSource[]): Promise<readonly PreviewView[]>;
  };
  /** A service at a revision. `undefined`: no source that this process knows has it. */
  readonly find: (serviceId: string, revision: string) => Promise<Service | undefined>;
  readonly copies: SourceCopies;
  readonly configured: ConfiguredSources;
  readonly readings: SourceReadings;
  readonly catalog: OfferedCatalog;
  readonly runner: () => Runner;
  /** Carries out a decision about the source of a key. */
  readonly decide: (
    key: string,
    decision: (stored: StoredSource) => AdminDecision,
    by: Attribution,
  ) => Promise<AdminDecision | undefined>;
}

/** What the routes of the admin API ask and do, of the sources that this process has copies of, and of its runner. */
export function bundleAdminPorts(bundles: AdministeredBundles): BundleAdminPorts {
  const { journal, options, services, copies, configured, readings, catalog } = bundles;
  /** `undefined`: there is no source of this name. */
  const ofSource = async <T>(name: string, ask: (key: string) => Promise<T>): Promise<T | undefined> => {
    const key = copies.keyOf(name);
    return key === undefined ? undefined : ask(key);
  };
  return {
    sources() {
      const known = [...copies.allStored()].map(([key, stored]) => readings.upToDate(key, stored));
      return new Map(known.map((source) => [source.data.name, source]));
    },
    reading: (source) => readings.reading(copies.keyOf(source) ?? ""),
    refresh: (source, by) => services.refresh(source, by),
    readingState: (source, id) => ofSource(source, (key) => readingState(journal(), key, id)),
    decide: (source, decision, by) => services.decide(source, decision, by),
    async read(name, ref) {
      const source = configured.find((each) => each.name === name)?.[1].source;
      return source && readView(name, ref, await lookAtTag(source, ref), parseBundle);
    },
    runs: (source, page) => ofSource(source, (key) => sourceRuns(journal(), key, page)),
    run: (source, number) => ofSource(source, (key) => sourceRun(journal(), key, number)),
    events: (source, spec, page) => ofSource(source, (key) => sourceEvents(journal(), key, spec, page)),
    collectable: () => services.collectable(),
    async preview(config) {
      if (options.settings === undefined)
        throw new BrokerError("not-found", "this broker has no files of settings to look at");
      return services.preview(await options.settings(config));
    },
    pushes: bundlePushes({ journal, pushed: options.pushed, source: () => pushSource(bundles) }),
    dangling(page) {
      const why = whyDangling({
        isInCode: (serviceId) => catalog.isInCode(serviceId),
        sources: copies.allStored().values(),
        find: bundles.find,
      });
      return danglingInstances(journal(), page, why);
    },
    async jobs({ platform, instance }, binding) {
      const jobs = await instanceJobs(journal(), instanceKey(platform, instance), { binding, job: null });
      return jobs?.map(({ log: _, ...job }) => job);
    },
    log: (job, instance, lastBytes) => jobLog(bundles, job, instance, lastBytes),
  };
}

function pushSource({ journal, copies, configured, decide }: AdministeredBundles): PushSource | undefined {
  const [key, source] = configured.find(({ listing }) => !listing) ?? [];
  if (key === undefined || source === undefined) return undefined;
  return {
    name: source.name,
    runsRuntime2: source.runsRuntime2 ?? false,
    stored: () => copies.get(key).refresh(),
    decide: (decision, by) => decide(key, decision, by),
    refresh: async (by) => {
      await askForReading(journal(), key, by);
    },
  };
}

/** The runner here has all of it, unless the job ran elsewhere, or long ago. */
async function jobLog(
  { journal, runner }: AdministeredBundles,
  job: string,
  asked: AskedInstance | null,
  lastBytes: number,
) {
  const log = await runner().log(job, lastBytes);
  if (log !== "" || asked === null) return { log, from: "runner" } as const;
  const key = instanceKey(asked.platform, asked.instance);
  const [kept] = (await instanceJobs(journal(), key, { binding: null, job })) ?? [];
  return { log: kept?.log ?? "", from: "journal" } as const;
}
