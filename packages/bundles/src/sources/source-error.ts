/** What can go wrong with a source, and what a person can do about it. None of it says that anything is gone. */
export const sourceFailures = {
  unreachable: "the source does not answer; check its address and the network",
  timeout: "the source took too long to answer",
  tls: "the certificate of the source is not trusted; give its authority, or correct the address",
  "no tls": "the source does not speak TLS at this address; if that is how it is meant, write http://HOST as its url",
  unauthorized: "the source wants other credentials",
  forbidden: "the credentials do not give access to this",
  "not found": "the source does not have this, or does not show it with these credentials",
  "rate limited": "the source asks to come again later",
  "server error": "the source answered with an error of its own",
  malformed: "the source answered what its protocol does not know",
  "too large": "the answer is larger than Osbert reads",
  "digest mismatch": "what the source sent is not what its digest says; it may be damaged",
  "foreign host": "the source leads to another host, where its credentials must not go",
  "endless pages": "the list has no end, or repeats itself",
  "no catalog": "the source does not list its repositories; name them in the settings",
} as const;

export type SourceFailure = keyof typeof sourceFailures;

export interface SourceErrorOptions extends ErrorOptions {
  /** As the source asked. */
  readonly retryAfterMs?: number;
}

/** A source could not be read. `place` names what was asked for, without credentials. */
export class SourceError extends Error {
  override readonly name = "SourceError";
  readonly failure: SourceFailure;
  readonly place: string;
  readonly retryAfterMs: number | null;

  constructor(
    failure: SourceFailure,
    place: string,
    detail: string | null = null,
    { retryAfterMs, ...options }: SourceErrorOptions = {},
  ) {
    super(`${place}: ${sourceFailures[failure]}${detail === null ? "" : ` (${detail})`}`, options);
    this.failure = failure;
    this.place = place;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}
