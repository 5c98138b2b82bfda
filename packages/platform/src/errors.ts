/** Every way in which the platform says no to whoever asks. The table is closed; the API answers with the status. */
export const platformErrors = {
  "not-found": { status: 404, title: "there is no such thing" },
  exists: { status: 409, title: "the name is taken" },
  invalid: { status: 400, title: "the request cannot be understood" },
  forbidden: { status: 403, title: "that is not allowed to you" },
  /** The report says why. */
  "preflight-failed": { status: 422, title: "it would not be accepted as things stand" },
  "idempotency-conflict": { status: 409, title: "the idempotency key was used for another request" },
  /** The changes in between are told. */
  stale: { status: 412, title: "it was changed meanwhile" },
  deleting: { status: 409, title: "it is being deleted" },
  busy: { status: 409, title: "another change is open, and changes are not queued here" },
  locked: { status: 423, title: "it is locked" },
  "has-bindings": { status: 409, title: "it has bindings" },
  "has-instances": { status: 409, title: "it has instances" },
  "has-orphans": { status: 409, title: "something may be left at it: the ledger of orphans tells what" },
  "too-late": { status: 409, title: "it cannot be undone any more" },
  "too-many": { status: 429, title: "too many changes are open" },
  unavailable: { status: 503, title: "it cannot be told now" },
} as const;

export type PlatformErrorCode = keyof typeof platformErrors;

/** What a caller of the platform is told. Never has a secret in it. */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly code: PlatformErrorCode;
  /** Facts for a program: the changes in between, the report, the bindings. */
  readonly details: { readonly [name: string]: unknown };

  constructor(
    code: PlatformErrorCode,
    message: string,
    options: ErrorOptions & { readonly details?: { readonly [name: string]: unknown } } = {},
  ) {
    super(message, options);
    this.code = code;
    this.details = options.details ?? {};
  }
}
