import { isJsonObject, type JsonObject } from "../json.js";

/**
 * Why there is no answer to go on with:
 * - `answer`: the broker answered, and said no or nothing that can be read; the status tells which
 * - `too large`: its answer was not read to the end
 * - `timed out`, `no connection`, `called off`: no answer within the time of a request, none at all, none wanted any more
 * - `operation failed`, `operation timed out`: it was accepted and has failed, or has not ended in its time
 */
export type BrokerAnswerErrorKind =
  | "answer"
  | "too large"
  | "timed out"
  | "no connection"
  | "called off"
  | "operation failed"
  | "operation timed out";

/** An answer of a broker that says no, or that is none. What it said is kept as it came. */
export class BrokerAnswerError extends Error {
  override readonly name: string = "BrokerAnswerError";
  readonly kind: BrokerAnswerErrorKind;
  /** `null`: there was no answer. */
  readonly status: number | null;
  /** The `error` field: platforms tell errors apart by it, never by the description. */
  readonly error: string | undefined;
  readonly description: string | undefined;
  readonly body: JsonObject | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { readonly kind: BrokerAnswerErrorKind; readonly answer?: Answer },
  ) {
    super(message, options);
    const { kind, answer } = options;
    this.kind = kind;
    this.status = answer?.status ?? null;
    this.body = answer?.body;
    this.error = textOf(answer?.body?.error);
    this.description = textOf(answer?.body?.description);
    this.retryAfterMs = answer?.retryAfterMs;
  }
}

export interface Answer {
  readonly status: number;
  /** `undefined`: there is none, or it is not a JSON object. */
  readonly body: JsonObject | undefined;
  readonly retryAfterMs: number | undefined;
  readonly etag: string | undefined;
}

/** Larger bodies are not read: a broker is not trusted with the platform's memory. */
export const largestBody = 8 * 1024 * 1024;

/** The status counts before the body: of an answer that says no, a body that is endless or breaks off is left away. */
export async function readAnswer(response: Response, now: () => number): Promise<Answer> {
  const text = await readText(response).catch((error: unknown) => {
    if (response.status >= 400) return "";
    throw error;
  });
  let body: unknown;
  try {
    body = text === "" ? undefined : JSON.parse(text);
  } catch {
    body = undefined;
  }
  return {
    status: response.status,
    body: isJsonObject(body) ? body : undefined,
    retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), now),
    etag: response.headers.get("etag") ?? undefined,
  };
}

/** Seconds or a date; anything else is no advice. */
export function parseRetryAfter(text: string | null, now: () => number): number | undefined {
  if (text === null) return undefined;
  if (/^[0-9]{1,9}$/.test(text.trim())) return Number(text) * 1_000;
  // Date.parse takes much for a date ("-5" is a year); HTTP's begin with the name of a day.
  const date = /^\s*[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now());
}

async function readText(response: Response): Promise<string> {
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > largestBody) {
      await reader.cancel();
      throw new BrokerAnswerError(`the broker's answer is larger than ${largestBody} bytes`, { kind: "too large" });
    }
    text += decoder.decode(value, { stream: true });
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
