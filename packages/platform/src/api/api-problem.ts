import { JournalError } from "@osbert/journal";
import { BrokerError, brokerErrors } from "@osbert/protocol";
import { type Answer, journalRefusals, journalRetryAfterSeconds, type Problem, problemAnswer } from "@osbert/server";
import { ShapeError } from "@osbert/server/client";
import { PlatformError, type PlatformErrorCode, platformErrors } from "../errors.js";

/** Why a request is refused, as problem details tell it. */
class ApiProblem extends Error implements Problem {
  override readonly name = "ApiProblem";
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: PlatformErrorCode | "failed", message: string, options: ProblemOptions = {}) {
    super(message, { cause: options.cause });
    const { status, title } = code === "failed" ? failed : platformErrors[code];
    this.code = code;
    this.status = status;
    this.title = title;
    this.details = options.details ?? {};
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get body() {
    return { error: this.code, description: this.message };
  }
}

interface ProblemOptions extends ErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

const failed = { status: 500, title: "the platform is at fault" } as const;

/** Whatever was thrown, as it may be told outside. */
export function asProblem(error: unknown): Problem {
  if (error instanceof BrokerError) return error;
  if (error instanceof ShapeError) return new ApiProblem("invalid", error.message);
  if (error instanceof PlatformError) {
    const { code, message, details, cause } = error;
    const retryAfter = code === "unavailable" || code === "too-many" ? { retryAfterSeconds: 5 } : {};
    return new ApiProblem(code, message, { details, cause, ...retryAfter });
  }
  if (error instanceof JournalError) return ofJournal(error);
  return new ApiProblem("failed", "the platform could not answer the request; its log says why", { cause: error });
}

function ofJournal(error: JournalError): Problem {
  switch (journalRefusals[error.code]) {
    case "cannot be kept":
    case "too large":
      return new ApiProblem("invalid", `a value in the request cannot be kept: ${error.message}`, { cause: error });
    case "crowded":
      return new ApiProblem("too-many", "too much is asked of it at a time; ask again later", {
        cause: error,
        retryAfterSeconds: journalRetryAfterSeconds.crowded,
      });
    case "unavailable":
      return new ApiProblem("unavailable", "the platform cannot reach its store; ask again later", {
        cause: error,
        retryAfterSeconds: journalRetryAfterSeconds.unavailable,
      });
  }
}

/** RFC 9457, with the code for programs, the request for whoever searches a log, and the facts of the error. */
export function problemDetails(problem: Problem, challenge: string | undefined, requestId: string): Answer {
  const { status, headers = {} } = problemAnswer(problem, challenge);
  const known = problem instanceof ApiProblem ? problem : undefined;
  const body = {
    type: `urn:osbert:problem:${problem.code}`,
    title: known?.title ?? titleOf(problem),
    status,
    detail: problem.body.description,
    code: problem.code,
    request_id: requestId,
    details: known?.details ?? {},
  };
  return { status, body, headers: { ...headers, "content-type": "application/problem+json" } };
}

function titleOf({ code, body }: Problem): string {
  return Object.hasOwn(brokerErrors, code)
    ? brokerErrors[code as keyof typeof brokerErrors].error
    : (body.error ?? code);
}
