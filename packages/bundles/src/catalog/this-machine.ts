import type { Journal } from "@osbert/journal";
import type { CatalogEntry } from "../reconcile/merge-sources.js";
import { maskLog } from "../runners/mask-log.js";
import type { Runner } from "../runners/runner.js";
import type { Source } from "../sources/source.js";
import type { BundleEvent } from "../watch/bundle-event.js";
import { BundleFiles } from "./bundle-files.js";
import {
  type BundleServicesOptions,
  defaultCollection,
  defaultLimits,
  defaultMirroring,
} from "./bundle-services-options.js";
import { MachineWork } from "./machine-work.js";
import { OperatorSecrets } from "./operator-secrets.js";
import { OrphanedJobs } from "./orphaned-jobs.js";
import type { ActionPorts } from "./run-action.js";

export interface ThisMachinePorts {
  readonly journal: () => Journal;
  readonly options: Pick<
    BundleServicesOptions,
    "runner" | "mirror" | "mirroring" | "limits" | "secrets" | "collection"
  >;
  /** Where a source is read, by its first name. `undefined`: this process is not configured with it. */
  readonly source: (identityName: string) => Source | undefined;
  /** What a source is called now, by its first name. */
  readonly nameOf: (identityName: string) => string;
  /** What is offered now. */
  readonly entries: () => Iterable<CatalogEntry>;
  readonly tell: (event: BundleEvent) => void;
}

/** What bundles need of the machine that they run on: a runner, their files, the operator's secrets, and somebody who clears up. */
export class ThisMachine {
  readonly files: BundleFiles;
  readonly secrets: OperatorSecrets;
  readonly #ports: ThisMachinePorts;
  readonly #orphans: OrphanedJobs;
  readonly #work: MachineWork;
  readonly #actions = new Map<string, ActionPorts>();
  #runner: Runner | undefined;

  /** Secrets with a problem are thrown. */
  constructor(ports: ThisMachinePorts) {
    const { journal, options, source, entries } = ports;
    this.#ports = ports;
    this.secrets = new OperatorSecrets(options.secrets ?? []);
    this.files = new BundleFiles({
      ...{ journal, source, entries, directory: options.mirror },
      policy: options.mirroring ?? defaultMirroring,
      unusedMs: options.collection?.unusedFilesMs ?? defaultCollection.unusedFilesMs,
    });
    this.#orphans = new OrphanedJobs({ runner: () => this.runner, journal });
    this.#work = new MachineWork({
      sweepFiles: () => this.files.sweep(),
      mirrorOffered: () => this.files.mirrorOffered(),
      stopOrphanedJobs: () => this.#orphans.stop(),
    });
  }

  get runner(): Runner {
    if (this.#runner === undefined) throw new Error("bundles are run when their broker has started");
    return this.#runner;
  }

  /** Afterwards actions can be run, and what was started before is found again. */
  async open(): Promise<void> {
    const runner = await this.#ports.options.runner((artifact, signal) => this.files.folderOf(artifact, signal));
    this.#runner = maskLog(runner, () => this.secrets.everGiven());
  }

  /** From now on, what nobody needs any more goes. */
  startWork(): void {
    this.#work.start();
  }

  /** The broker stops. Jobs run on. */
  close(): void {
    this.files.close();
    this.#work.stop();
  }

  /** What runs the actions of a source's bundles, by its first name: one for all of them, of which there may be thousands. */
  actionsOf(source: string): ActionPorts {
    const known = this.#actions.get(source);
    if (known !== undefined) return known;
    const runner = () => this.runner;
    const actions: ActionPorts = {
      get runner() {
        return runner();
      },
      fetch: (artifact, signal) => this.files.fetch(source, artifact, signal),
      limits: { ...defaultLimits, ...this.#ports.options.limits },
      orphans: this.#orphans,
      secrets: (spec) => this.secrets.for(this.#ports.nameOf(source), spec),
      everGiven: () => this.secrets.everGiven(),
      tell: this.#ports.tell,
    };
    this.#actions.set(source, actions);
    return actions;
  }
}
