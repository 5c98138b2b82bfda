/** What can go wrong at an API server, and what that means for whoever asked. */
export const clusterFailures = {
  conflict: "somebody else has changed it",
  "not found": "there is no such object",
  "no such kind": "the cluster does not know this kind of objects",
  forbidden: "the cluster does not allow it",
  unauthorized: "the cluster does not know these credentials",
  invalid: "the cluster does not take it",
  "too busy": "the cluster is too busy",
  "webhook unavailable": "a webhook of the cluster does not answer",
  unavailable: "the cluster does not answer",
} as const;

export type ClusterFailure = keyof typeof clusterFailures;

/** A call to an API server has failed. Its class is the decision; `detail` is what the server said, shortened, for a person. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
  readonly failure: ClusterFailure;
  /** HTTP's, if there was an answer. */
  readonly status: number | null;
  /** The server has asked for so much patience. */
  readonly retryAfterMs: number | null;

  constructor(
    failure: ClusterFailure,
    detail: string | null = null,
    options: ErrorOptions & { readonly status?: number; readonly retryAfterMs?: number | null } = {},
  ) {
    super(`${clusterFailures[failure]}${detail === null ? "" : ` (${detail})`}`, options);
    this.failure = failure;
    this.status = options.status ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** The same call may go through later, without anybody doing anything. */
export function isPassing({ failure }: ClusterError): boolean {
  return (
    failure === "too busy" || failure === "webhook unavailable" || failure === "unavailable" || failure === "conflict"
  );
}
