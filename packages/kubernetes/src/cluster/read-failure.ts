import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject } from "@osbert/protocol";
import { parseRetryAfter } from "@osbert/protocol/client";
import { ClusterError, type ClusterFailure } from "./cluster-error.js";

/** An answer that is not a success. */
export interface FailedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** What must not be told to anybody, such as a token: a proxy may have put it into its answer. */
  readonly secrets: readonly string[];
  /** What was sent must not be told either: of what the server says, only the names of fields are. */
  readonly isSecret: boolean;
}

/** What an API server tells of a failure: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/ */
export interface ServerStatus {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  /** Of the object that is meant; "" if none is. */
  readonly name: string;
  readonly kind: string;
  readonly retryAfterSeconds: number | null;
  readonly causes: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
}

const longestDetail = 500;
const longestRetryAfterMs = 3_600_000;

/** From an answer to the decision that follows from it. Pure but for the clock, which a `Retry-After` with a date needs. */
export function readFailure(answer: FailedAnswer): ClusterError {
  const told = parseStatus(answer.body);
  const retryAfterMs = retryAfterOf(answer, told);
  return new ClusterError(failureOf(answer, told, retryAfterMs), detailOf(answer, told), {
    status: answer.status,
    retryAfterMs,
  });
}

/** The same of a Status that came as an event of a watch. */
export function readStatusEvent(object: unknown): ClusterError {
  const told = statusOf(object);
  const status = told?.code ?? 0;
  return readFailure({ status, headers: {}, body: JSON.stringify(object) ?? "", secrets: [], isSecret: false });
}

/** `undefined`: it is none, such as the page of a proxy. */
export function parseStatus(body: string): ServerStatus | undefined {
  try {
    return statusOf(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/** Shortened, in one line, without control characters, and without what must not be told. */
export function plainText(text: string, secrets: readonly string[] = []): string {
  const hidden = secrets.reduce((left, secret) => (secret.length < 4 ? left : left.replaceAll(secret, "…")), text);
  const plain = hidden.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  // Characters, not halves of them.
  return plain.length > longestDetail ? `${plain.slice(0, longestDetail).replace(/[\ud800-\udbff]$/, "")}…` : plain;
}

function failureOf(
  { status, body }: FailedAnswer,
  told: ServerStatus | undefined,
  retryAfterMs: number | null,
): ClusterFailure {
  const message = told?.message ?? "";
  const isOfWebhook = /failed calling webhook|conversion webhook for .* failed/.test(message);
  switch (status) {
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return missing(body, told);
    case 405:
      return message.includes("terminating") ? "no such kind" : "invalid";
    case 409:
      return "conflict";
    case 410:
    case 408:
      return "unavailable";
    case 429:
      return "too busy";
    case 503:
      if (isOfWebhook) return "webhook unavailable";
      return retryAfterMs === null ? "unavailable" : "too busy";
    case 500:
      // So it says that a field that is applied has the wrong type.
      if (message.startsWith("failed to create typed patch object")) return "invalid";
      return isOfWebhook ? "webhook unavailable" : "unavailable";
    default:
      if (isOfWebhook) return "webhook unavailable";
      return status >= 400 && status < 500 ? "invalid" : "unavailable";
  }
}

/**
 * A server says of a path that it does not know `404 page not found`, or a Status that names no object. What else comes with 404 is not from an
 * API server, and tells nothing of what it has.
 */
function missing(body: string, told: ServerStatus | undefined): ClusterFailure {
  if (told !== undefined) return told.name === "" ? "no such kind" : "not found";
  return body.trim() === "404 page not found" ? "no such kind" : "unavailable";
}

function detailOf({ status, secrets, isSecret }: FailedAnswer, told: ServerStatus | undefined): string {
  if (told === undefined) return `HTTP ${status}`;
  const message = isSecret && !quotesNothing.has(status) ? withoutValues(told) : told.message;
  const plain = plainText(message, secrets);
  return plain === "" ? `HTTP ${status}` : plain;
}

/** Credentials, rights, names, managers and preconditions: such messages have no values of objects in them. */
const quotesNothing: ReadonlySet<number> = new Set([401, 403, 404, 409]);

/** Messages about objects quote their values, even the whole object. */
function withoutValues({ reason, name, causes }: ServerStatus): string {
  const fields = causes.map(({ field }) => field).filter((field) => field !== "");
  return [reason, name, ...fields].filter((text) => text !== "").join(" ");
}

function retryAfterOf({ headers }: FailedAnswer, told: ServerStatus | undefined): number | null {
  const header = parseRetryAfter(headers["retry-after"] ?? null, Date.now);
  if (header !== undefined) return header;
  const seconds = told?.retryAfterSeconds ?? null;
  return seconds === null ? null : Math.min(longestRetryAfterMs, seconds * 1_000);
}

function statusOf(object: unknown): ServerStatus | undefined {
  if (!isJsonObject(object) || object.kind !== "Status") return undefined;
  const details = isJsonObject(object.details) ? object.details : {};
  const causes = Array.isArray(details.causes) ? details.causes : [];
  const seconds = details.retryAfterSeconds;
  return {
    code: typeof object.code === "number" ? object.code : 0,
    reason: textOf(object.reason),
    message: textOf(object.message),
    name: textOf(details.name),
    kind: textOf(details.kind),
    retryAfterSeconds: typeof seconds === "number" && seconds > 0 ? seconds : null,
    causes: causes.filter(isJsonObject).map((cause) => ({
      reason: textOf(cause.reason),
      message: textOf(cause.message),
      field: textOf(cause.field),
    })),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
