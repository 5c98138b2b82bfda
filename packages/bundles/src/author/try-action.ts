import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@osbert/protocol";
import { defaultLimits } from "../catalog/bundle-services-options.js";
import type { Action, BundleSpec } from "../formats/bundle-spec.js";
import { type ActionEnd, type ActionOutput, endOf } from "../runners/action-output.js";
import { inspectImage, openContainerRunner } from "../runners/container-runner.js";
import { maskLog } from "../runners/mask-log.js";
import { newProgress, OutputReader } from "../runners/output-reader.js";
import { openProcessRunner, type ProcessRunnerOptions } from "../runners/process-runner.js";
import type { JobSecrets, Runner } from "../runners/runner.js";
import { bundleLabels } from "../sources/bundle-media-types.js";
import type { Artifact } from "../sources/source.js";
import type { BundleFolder } from "./bundle-folder.js";

export interface TryOptions {
  readonly runner: TryRunner;
  /** The network is there for a bundle that asks for it. */
  readonly network: boolean;
  /** Is told what the bundle says of its progress, when it does. */
  readonly onProgress: (action: Action, text: string) => void;
  /** As an operator would give them: those that are in the input. */
  readonly secrets?: JobSecrets;
}

/** What runs actions on an author's machine. */
export type TryRunner =
  | {
      readonly kind: "process";
      /** Without bubblewrap. */
      readonly unsandboxed: boolean;
    }
  | {
      readonly kind: "container";
      /** The program: `podman`, `docker`, or a path to one. */
      readonly engine: string;
      /** The bundle's own, if it has no command; else what its files are run in. */
      readonly image: string;
    };

/** What came of one run of an action. */
export interface TriedAction {
  readonly end: ActionEnd;
  /** `null`: it did not end by itself. */
  readonly exitCode: number | null;
  readonly output: ActionOutput;
  /** The end of its standard error, without secrets. */
  readonly log: string;
}

export type TryAction = (action: Action, idempotencyKey: string, input: JsonObject) => Promise<TriedAction>;

/**
 * Runs actions of a bundle on this machine as a broker's runners do, from the author's folder as it is. `use` is given the
 * function for it; whatever still runs when that ends, or when the signal does, is stopped, and no trace of it stays.
 */
export async function withLocalActions<T>(
  bundle: BundleFolder,
  options: TryOptions,
  signal: AbortSignal,
  use: (tryAction: TryAction) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "osbert-bundle-"));
  try {
    const files = async () => bundle.folder;
    const opened = await openRunner(options.runner, { directory, files });
    const runner = maskLog(opened, () => Object.values(options.secrets ?? {}));
    const runnable = options.runner.kind === "container" ? await inImage(bundle, options.runner, signal) : bundle;
    return await use((action, idempotencyKey, input) =>
      runOnce(runner, runnable, options, signal, { action, idempotencyKey, input }),
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** An author's own programs are run as the author, who may have files that nobody else can read. */
const own = process.getuid?.() === 0 ? { user: { uid: 0, gid: 0 } } : {};

function openRunner(wanted: TryRunner, place: Pick<ProcessRunnerOptions, "directory" | "files">): Promise<Runner> {
  return wanted.kind === "process"
    ? openProcessRunner({ ...place, ...own, unsandboxed: wanted.unsandboxed })
    : openContainerRunner({ ...place, engine: wanted.engine, baseImage: wanted.image });
}

/** What is run: the bundle's files in a base image, or an image that is the bundle, which says itself how it hands over credentials. */
async function inImage(
  { spec, artifact }: BundleFolder,
  { engine, image }: Extract<TryRunner, { readonly kind: "container" }>,
  signal: AbortSignal,
): Promise<Runnable> {
  if (spec.command !== null) return { spec, artifact };
  const { digest, repository, labels } = await inspectImage({ engine }, image, signal);
  const runtime = spec.format === "apb" ? runtimeOf(labels) : null;
  return { spec: { ...spec, runtime }, artifact: { kind: "image", image: repository, digest } };
}

interface Runnable {
  readonly spec: BundleSpec;
  readonly artifact: Artifact;
}

function runtimeOf(labels: ReadonlyMap<string, string>): 1 | 2 {
  const label = bundleLabels.apbRuntime.find((name) => labels.has(name)) ?? "";
  return labels.get(label)?.trim() === "2" ? 2 : 1;
}

const lookMs = 200;
const logBytes = 65_536;

async function runOnce(
  runner: Runner,
  { spec, artifact }: Runnable,
  { network, onProgress, secrets = {} }: TryOptions,
  signal: AbortSignal,
  { action, idempotencyKey, input }: { action: Action; idempotencyKey: string; input: JsonObject },
): Promise<TriedAction> {
  const id = randomUUID();
  const reader = new OutputReader(runner, id, [secrets]);
  try {
    await runner.start(
      {
        ...{ id, action, spec, artifact },
        input: { action, idempotencyKey, bundleVersion: spec.bundleVersion, ...input },
        operation: null,
        ...(Object.keys(secrets).length > 0 && { secrets }),
        limits: {
          ...defaultLimits,
          timeoutMs: Math.min(defaultLimits.timeoutMs, spec.timeoutMs ?? Number.POSITIVE_INFINITY),
          network: network && spec.network,
        },
      },
      signal,
    );
    for (;;) {
      const state = await runner.look(id, { waitMs: lookMs, signal });
      await reader.readOn((output, before) => {
        const progress = newProgress(output, before);
        if (progress !== null) onProgress(action, progress);
      });
      const { output } = reader;
      const end = endOf(state, output, spec.format);
      if (end === null) continue;
      const exitCode = state.kind === "ended" && state.cause === "exit" ? state.exitCode : null;
      return { end, exitCode, output, log: await runner.log(id, logBytes) };
    }
  } finally {
    // Of one that has ended it does nothing.
    await runner.stop(id);
  }
}
