import type { Service } from "@osbert/broker";
import type { CollectRules } from "../reconcile/collect.js";
import type { JobLimits, Runner } from "../runners/runner.js";
import type { Artifact } from "../sources/source.js";
import type { BundleObserver } from "../watch/bundle-event.js";
import type { MirrorPolicy } from "./artifact-mirror.js";
import type { BundleSource } from "./bundle-source.js";
import type { OperatorSecret } from "./operator-secrets.js";
import type { PushedStore } from "./pushed-store.js";

export interface BundleServicesOptions {
  readonly sources: readonly BundleSource[];
  /** Services in code that are offered beside the bundles. */
  readonly services?: readonly Service[];
  /** Makes what runs bundles. `files` says where the files of an artifact lie on this machine; of an image, its OCI layout, if it is mirrored. */
  readonly runner: (files: (artifact: Artifact, signal?: AbortSignal) => Promise<string>) => Promise<Runner>;
  /** A folder for files of bundles: those that instances were made of are kept there. */
  readonly mirror: string;
  /** What of images is kept there, and when it is fetched. Default `onProvision`: when an action first runs it. */
  readonly mirroring?: MirrorPolicy;
  readonly limits?: Partial<JobLimits>;
  /** What bundles get of the operator; `BundleServices.exchangeSecrets` gives others. */
  readonly secrets?: readonly OperatorSecret[];
  readonly collection?: CollectionOptions;
  /** What was pushed: the one that the source of type `push` was opened with. Without it nothing can be pushed. */
  readonly pushed?: PushedStore;
  /** Told of everything that happens: `logBundles` and `bundleMetrics` of `@osbert/bundles/watch`, or your own. It cannot harm anything. */
  readonly observe?: BundleObserver | readonly BundleObserver[];
  /** The sources of another file of settings, to see what they would change. Throws a BrokerError that says what is wrong with it. */
  readonly settings?: (file: string) => Promise<readonly BundleSource[]>;
}

/** How what nothing refers to is removed (F5-53). */
export interface CollectionOptions extends Partial<CollectRules> {
  /** From the end of one pass to the next. Default 5 minutes. */
  readonly intervalMs?: number;
  /** Nothing is removed; who observes is told what would be. Default false. */
  readonly dryRun?: boolean;
  /** Files of bundles that no revision refers to are kept for so long. Default 24 hours. */
  readonly unusedFilesMs?: number;
}

/** What a bundle may use, unless the operator says otherwise. */
export const defaultLimits: JobLimits = {
  timeoutMs: 3_600_000,
  memoryBytes: 1_073_741_824,
  processes: 256,
  cpuSeconds: 3_600,
  outputBytes: 16_777_216,
  network: false,
};

/** What `CollectionOptions` says is the default, beside the rules. */
export const defaultCollection = {
  intervalMs: 5 * 60_000,
  dryRun: false,
  unusedFilesMs: 24 * 60 * 60_000,
} as const;

export const defaultMirroring: MirrorPolicy = "onProvision";
