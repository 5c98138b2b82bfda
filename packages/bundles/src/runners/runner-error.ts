/** What can go wrong with a runner, and what a person can do about it. */
export const runnerFailures = {
  "no sandbox":
    "bundles cannot be shut in here: install bubblewrap; where it is installed, let this service make namespaces (under systemd with osbert-bundles.conf); or do without, with the setting `unsandboxed: true`",
  "wrong artifact": "this runner cannot run such a bundle",
  "no image": "the image could not be pulled",
  "image forbidden": "the registry wants other credentials for the image",
  "image not found": "the registry does not have the image",
  "disk full": "the disk of the runner is full",
  "no engine": "the program that runs containers does not answer",
  "wrong job": "this is not the id of a job",
  "not started": "the job could not be started",
  "not stopped": "the job was told to end, and does not",
} as const;

export type RunnerFailure = keyof typeof runnerFailures;

/** A runner could not do what it was asked. It says nothing of a job that was started before. */
export class RunnerError extends Error {
  override readonly name = "RunnerError";
  readonly failure: RunnerFailure;

  constructor(failure: RunnerFailure, detail: string | null = null, options?: ErrorOptions) {
    super(`${runnerFailures[failure]}${detail === null ? "" : ` (${detail})`}`, options);
    this.failure = failure;
  }
}

/** Ids become names of folders and of containers. */
export function checkJobId(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/.test(id))
    throw new RunnerError("wrong job", "letters, digits and dashes, at most 100");
  return id;
}
