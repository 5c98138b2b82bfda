import { isJsonObject, type JsonObject } from "../json.js";
import type { ClientResponse } from "./client-fetch.js";
import { parseRetryAfter } from "./retry-after.js";

/**
 * Why there is no answer to go on with:
 * - `answer`: the broker answered, and said no or nothing that can be read; the status tells which
 * - `too large`: its answer was not read to the end
 * - `no connection`: the request was not sent, because the broker could not be reached
 * - `connection lost`: bytes of the request may have gone out, and no whole answer came back
 * - `timed out`, `called off`: no answer within the time of a request, none wanted any more; `sent` tells how far it had come
 * - `operation failed`, `operation timed out`: it was accepted and has failed, or has not ended in its time
 * - `operation lost`: it was accepted, and the broker knows nothing of it; whether there is anything has to be found out
 */
export type BrokerAnswerErrorKind =
  | "answer"
  | "too large"
  | "timed out"
  | "no connection"
  | "connection lost"
  | "called off"
  | "operation failed"
  | "operation timed out"
  | "operation lost";

/** An answer of a broker that says no, or that is none. What it said is kept as it came. */
export class BrokerAnswerError extends Error {
  override readonly name: string = "BrokerAnswerError";
  readonly kind: BrokerAnswerErrorKind;
  /** `false`: not a byte of the request went out, so the broker knows nothing of it. Otherwise it may have acted. */
  readonly sent: boolean;
  /** `null`: there was no answer. */
  readonly status: number | null;
  /** The `error` field: platforms tell errors apart by it, never by the description. */
  readonly error: string | undefined;
  readonly description: string | undefined;
  readonly body: JsonObject | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly kind: BrokerAnswerErrorKind;
      readonly answer?: Omit<BrokerAnswer, "text" | "etag">;
      /** Default: it may have been, unless there was no connection. */
      readonly sent?: boolean;
    },
  ) {
    super(message, options);
    const { kind, answer } = options;
    this.kind = kind;
    this.sent = options.sent ?? kind !== "no connection";
    this.status = answer?.status ?? null;
    this.body = answer?.body;
    this.error = textOf(answer?.body?.error);
    this.description = textOf(answer?.body?.description);
    this.retryAfterMs = answer?.retryAfterMs;
  }
}

export interface BrokerAnswer {
  readonly status: number;
  /** `undefined`: there is none, or it is not a JSON object. */
  readonly body: JsonObject | undefined;
  /** As it came: numbers beyond 2^53 are whole in it. Empty: there is none. */
  readonly text: string;
  readonly retryAfterMs: number | undefined;
  readonly etag: string | undefined;
}

/** What a broker answered to a call of the client. */
export interface Answered<Body> {
  readonly status: number;
  readonly body: Body;
  /** The body as it came. Numbers beyond 2^53 are whole in it, and in `body` they are not. */
  readonly text: string;
  /** When it asks to be asked again: at most an hour from now. */
  readonly retryAfterMs: number | undefined;
}

/** The broker has finished, or goes on and says under which name. */
export type Changed<Body> = Answered<Body> &
  (
    | { readonly kind: "done" }
    | { readonly kind: "accepted"; readonly status: 202; readonly operation: string | undefined }
  );

/** Larger bodies are not read: a broker is not trusted with the platform's memory. */
export const largestBody = 8 * 1024 * 1024;

/** The status counts before the body: of an answer that says no, a body that is endless or breaks off is left away. */
export async function readAnswer(response: ClientResponse, now: () => number): Promise<BrokerAnswer> {
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
    text,
    retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), now),
    etag: response.headers.get("etag") ?? undefined,
  };
}

async function readText(response: ClientResponse): Promise<string> {
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

/** What the broker says to it, for people. */
export function reasonOf(answer: BrokerAnswer | undefined): string {
  const said = answer?.body?.description;
  return typeof said === "string" && said !== "" ? said : "it does not say why";
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
