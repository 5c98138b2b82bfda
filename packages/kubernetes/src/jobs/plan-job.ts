import { gzipSync } from "node:zlib";
import { type Job, RunnerError, readLayoutEntrypoint } from "@osbert/bundles";
import { folderArchive } from "@osbert/bundles/author";
import { isJsonObject } from "@osbert/protocol";
import { jobName } from "./job-names.js";
import type { JobPlan } from "./job-objects.js";
import type { RecordFacts } from "./job-record.js";
import type { JobRunnerSettings } from "./job-runner-options.js";

/** What a Secret may hold, without its names. */
const mostSecretBytes = 1_000_000;

/** Finds out what a job is made of. What can never be run is refused here, before anything is written. */
export async function planJob(job: Job, settings: JobRunnerSettings, signal: AbortSignal): Promise<JobPlan> {
  const { spec, artifact } = job;
  const name = jobName(job.id);
  const facts = recordFacts(job, name, settings);
  const inputBytes = Buffer.byteLength(JSON.stringify(job.input));
  if (inputBytes > mostSecretBytes)
    throw new RunnerError("wrong artifact", `its input is ${inputBytes} bytes, and a Secret holds ${mostSecretBytes}`);
  if (spec.format === "apb") {
    if (artifact.kind === "files") throw new RunnerError("wrong artifact", "a classic bundle is an image");
    if (spec.runtime === 2 && !facts.sandbox)
      throw new RunnerError(
        "wrong artifact",
        "a classic bundle of runtime 2 writes Secrets, and needs the setting of sandboxes for that",
      );
    return { name, facts, job, image: `${artifact.image}@${artifact.digest}`, command: [], files: null };
  }
  if (artifact.kind === "image") {
    const image = `${artifact.image}@${artifact.digest}`;
    return {
      name,
      facts,
      job,
      image,
      command: spec.command ?? (await entrypointOf(job, settings, signal)),
      files: null,
    };
  }
  if (settings.baseImage === null)
    throw new RunnerError("wrong artifact", "a bundle of files needs the setting of a base image");
  if (spec.command === null) throw new RunnerError("wrong artifact", "a bundle of files needs a command");
  const files = gzipSync(await folderArchive(await settings.files(artifact, signal)));
  if (files.length > mostSecretBytes)
    throw new RunnerError(
      "wrong artifact",
      `its files are ${files.length} bytes when they are packed, and a Secret holds ${mostSecretBytes}; make an image of it`,
    );
  return { name, facts, job, image: settings.baseImage, command: spec.command, files };
}

export function recordFacts(job: Job, name: string, settings: JobRunnerSettings): RecordFacts {
  const { format, runtime } = job.spec;
  const sandbox = settings.sandbox === "always" || (settings.sandbox === "classic" && format === "apb");
  return {
    ...{ id: job.id, operation: job.operation, format, runtime, action: job.action },
    namespace: sandbox ? name : settings.namespace,
    sandbox,
    target: settings.role === null ? null : targetOf(job, settings.namespace),
    outputBytes: Math.min(job.limits.outputBytes, settings.mostOutputBytes),
    timeoutMs: job.limits.timeoutMs,
  };
}

/** The namespace that an instance is for, as its platform says. Never the runner's own: there the role would reach what other jobs are given. */
function targetOf({ spec, input }: Job, own: string): string | null {
  const instance = isJsonObject(input.instance) ? input.instance : {};
  const context = isJsonObject(instance.context) ? instance.context : {};
  const namespace = spec.format === "apb" ? input.namespace : context.namespace;
  const isName = typeof namespace === "string" && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace);
  return isName && namespace !== own ? namespace : null;
}

/** A program is put before it, so it has to be known, which the cluster does not tell. */
async function entrypointOf(job: Job, { files }: JobRunnerSettings, signal: AbortSignal): Promise<readonly string[]> {
  const folder = await files(job.artifact, signal).catch(() => null);
  signal.throwIfAborted();
  const entrypoint = folder === null ? null : await readLayoutEntrypoint(folder);
  if (entrypoint !== null) return entrypoint;
  throw new RunnerError(
    "wrong artifact",
    "its entry point is not known here: give it a command in osbert.yaml, or have images mirrored",
  );
}
