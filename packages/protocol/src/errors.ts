/**
 * Every way in which a broker says no, with the status that goes with it. The four with an `error` code of the specification are
 * told apart by platforms; the others are for people. The table is closed.
 */
export const brokerErrors = {
  "bad-request": { status: 400, error: "BadRequest", reserved: false },
  unauthorized: { status: 401, error: "Unauthorized", reserved: false },
  forbidden: { status: 403, error: "Forbidden", reserved: false },
  "not-found": { status: 404, error: "NotFound", reserved: false },
  "method-not-allowed": { status: 405, error: "MethodNotAllowed", reserved: false },
  conflict: { status: 409, error: "Conflict", reserved: false },
  gone: { status: 410, error: "Gone", reserved: false },
  "api-version": { status: 412, error: "UnsupportedApiVersion", reserved: false },
  "too-large": { status: 413, error: "PayloadTooLarge", reserved: false },
  unprocessable: { status: 422, error: "Unprocessable", reserved: false },
  "async-required": { status: 422, error: "AsyncRequired", reserved: true },
  concurrency: { status: 422, error: "ConcurrencyError", reserved: true },
  "requires-app": { status: 422, error: "RequiresApp", reserved: true },
  "maintenance-info-conflict": { status: 422, error: "MaintenanceInfoConflict", reserved: true },
  "too-many-requests": { status: 429, error: "TooManyRequests", reserved: false },
  "operation-failed": { status: 500, error: "OperationFailed", reserved: false },
  unavailable: { status: 503, error: "Unavailable", reserved: false },
  "timed-out": { status: 504, error: "TimedOut", reserved: false },
} as const;

export type BrokerErrorCode = keyof typeof brokerErrors;

/** The body of an error. */
export interface ErrorBody {
  readonly error?: string;
  readonly description: string;
  /** Only for a failed update or deprovision. */
  readonly instance_usable?: boolean;
  /** Only for a failed update. */
  readonly update_repeatable?: boolean;
}

export interface BrokerErrorOptions extends ErrorOptions {
  readonly instanceUsable?: boolean;
  readonly updateRepeatable?: boolean;
  /** Seconds after which a repeat may help. */
  readonly retryAfterSeconds?: number;
  /** The methods that are possible at the path. */
  readonly allow?: string;
}

/** An answer that says no. The code is the decision; the message is for a person and says what to do. */
export class BrokerError extends Error {
  override readonly name = "BrokerError";
  readonly code: BrokerErrorCode;
  readonly instanceUsable: boolean | undefined;
  readonly updateRepeatable: boolean | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly allow: string | undefined;

  constructor(code: BrokerErrorCode, description: string, options: BrokerErrorOptions = {}) {
    super(description, options);
    this.code = code;
    this.instanceUsable = options.instanceUsable;
    this.updateRepeatable = options.updateRepeatable;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
  }

  get status(): number {
    return brokerErrors[this.code].status;
  }

  get body(): ErrorBody {
    return {
      error: brokerErrors[this.code].error,
      description: this.message,
      ...(this.instanceUsable !== undefined && { instance_usable: this.instanceUsable }),
      ...(this.updateRepeatable !== undefined && { update_repeatable: this.updateRepeatable }),
    };
  }
}
