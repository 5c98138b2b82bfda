/**
 * Every way in which a broker says no, with the status that goes with it. The four with an `error` code of the specification are
 * told apart by platforms; the others are for people. The table is closed. `meaning` is what the reference page says of them.
 */
export const brokerErrors = {
  "bad-request": {
    status: 400,
    error: "BadRequest",
    reserved: false,
    meaning:
      "the request is wrong: a field is missing or malformed, the parameters break the plan's schema, the service or plan is not offered",
  },
  "service-retired": {
    status: 400,
    error: "ServiceRetired",
    reserved: false,
    meaning:
      "the service, or its plan, was offered once and is not any more: the platform has to read the catalog again; instances that there are go on",
  },
  unauthorized: {
    status: 401,
    error: "Unauthorized",
    reserved: false,
    meaning: "the credentials are missing or wrong; it is never said which",
  },
  forbidden: {
    status: 403,
    error: "Forbidden",
    reserved: false,
    meaning: "the caller is known, but may not do this; the broker itself never says it, an author's hook may",
  },
  "not-found": {
    status: 404,
    error: "NotFound",
    reserved: false,
    meaning: "there is no such instance, binding or path, or it cannot be fetched",
  },
  "method-not-allowed": {
    status: 405,
    error: "MethodNotAllowed",
    reserved: false,
    meaning: "the path is right, the method is not; the header Allow lists those that are",
  },
  conflict: {
    status: 409,
    error: "Conflict",
    reserved: false,
    meaning: "the id is taken by something with other attributes",
  },
  gone: {
    status: 410,
    error: "Gone",
    reserved: false,
    meaning: "what is to be deleted or was asked about does not exist (any more)",
  },
  "api-version": {
    status: 412,
    error: "UnsupportedApiVersion",
    reserved: false,
    meaning: "the platform speaks a version of the API that the broker does not",
  },
  "too-large": {
    status: 413,
    error: "PayloadTooLarge",
    reserved: false,
    meaning: "the body, or a value in it, is larger than the broker keeps",
  },
  unprocessable: {
    status: 422,
    error: "Unprocessable",
    reserved: false,
    meaning:
      "the request is well-formed, but the service does not do this: the plan cannot be changed, bindings are left",
  },
  "async-required": {
    status: 422,
    error: "AsyncRequired",
    reserved: true,
    meaning: "this is only done asynchronously: ask with accepts_incomplete=true",
  },
  concurrency: {
    status: 422,
    error: "ConcurrencyError",
    reserved: true,
    meaning: "something else is being done to the instance or binding: ask again when that is over",
  },
  "requires-app": {
    status: 422,
    error: "RequiresApp",
    reserved: true,
    meaning: "a binding of this plan needs an application",
  },
  "maintenance-info-conflict": {
    status: 422,
    error: "MaintenanceInfoConflict",
    reserved: true,
    meaning: "the platform's maintenance_info is not the plan's: it has to read the catalog again",
  },
  "too-many-requests": {
    status: 429,
    error: "TooManyRequests",
    reserved: false,
    meaning: "too many requests could not be authenticated, or wait to be: ask again after Retry-After",
  },
  "operation-failed": {
    status: 500,
    error: "OperationFailed",
    reserved: false,
    meaning:
      "the operation that the platform waited for has failed; or a fault of the broker, of which its log says more",
  },
  unavailable: {
    status: 503,
    error: "Unavailable",
    reserved: false,
    meaning: "the broker is starting, or cannot reach its store or the keys of an issuer: ask again after Retry-After",
  },
  "timed-out": {
    status: 504,
    error: "TimedOut",
    reserved: false,
    meaning:
      "the platform waited for the end, which did not come in time; the operation was cancelled, and a create is undone",
  },
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
  /** Its row in the table of errors: `brokerErrors`. */
  readonly code: BrokerErrorCode;
  /** After a failed update or deprovision: whether the instance can still be used. */
  readonly instanceUsable: boolean | undefined;
  /** After a failed update: whether the same update could succeed later. */
  readonly updateRepeatable: boolean | undefined;
  /** When it is worth asking again. */
  readonly retryAfterSeconds: number | undefined;
  /** The methods that are possible, on a 405. */
  readonly allow: string | undefined;

  constructor(code: BrokerErrorCode, description: string, options: BrokerErrorOptions = {}) {
    super(description, options);
    this.code = code;
    this.instanceUsable = options.instanceUsable;
    this.updateRepeatable = options.updateRepeatable;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
  }

  /** The HTTP status that goes with the code. */
  get status(): number {
    return brokerErrors[this.code].status;
  }

  /** What the platform reads. */
  get body(): ErrorBody {
    return {
      error: brokerErrors[this.code].error,
      // ERR-03: never empty, whatever the author wrote.
      description: this.message.trim() === "" ? brokerErrors[this.code].error : this.message,
      ...(this.instanceUsable !== undefined && { instance_usable: this.instanceUsable }),
      ...(this.updateRepeatable !== undefined && { update_repeatable: this.updateRepeatable }),
    };
  }
}
