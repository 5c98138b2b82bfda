import { BrokerError, hasInfinity, isDeeperThan, isJsonObject, type JsonObject } from "@osbert/protocol";
import type { WireRequest } from "./wire.js";

/** Bodies beyond this are refused, unless an API takes less; nothing of them is kept. */
export const largestBody = 1_048_576;

/** Deeper bodies are refused before they are parsed: what walks them later may recurse. */
const deepestBody = 100;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** A body, and the text that it was: numbers beyond 2^53 are as they were written in the text alone. */
export interface JsonBody {
  readonly value: JsonObject;
  readonly text: string;
}

/** The body of a request: a JSON object, or a refusal that says why not. */
export async function readJsonObject(
  request: Pick<WireRequest, "header" | "body">,
  mostBytes: number,
): Promise<JsonObject> {
  return (await readJsonBody(request, mostBytes)).value;
}

/** The same with its text. What the headers alone forbid is not read. */
export async function readJsonBody(
  request: Pick<WireRequest, "header" | "body">,
  mostBytes: number,
): Promise<JsonBody> {
  const contentType = request.header("content-type") ?? "";
  if (contentType !== "" && !isJsonType(contentType))
    throw bad("the body must be JSON: send it with Content-Type application/json");
  // No platform compresses what it sends, and what a few bytes unpack to has to be bounded by someone.
  const encoding = request.header("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity")
    throw bad("the body must be sent as it is, without Content-Encoding: compressed bodies are not read");
  if (Number(request.header("content-length") ?? 0) > mostBytes) throw tooLarge(mostBytes);
  const bytes = typeof request.body === "function" ? await request.body(mostBytes) : request.body;
  if (bytes === undefined || bytes.byteLength > mostBytes) throw tooLarge(mostBytes);
  return parseJsonObject(bytes);
}

function parseJsonObject(bytes: Uint8Array): JsonBody {
  if (bytes.byteLength === 0) throw bad("the body is missing; it must be a JSON object");
  let value: unknown;
  let text: string;
  try {
    text = decoder.decode(bytes);
    if (isDeeperThan(text, deepestBody)) throw bad(`the body is nested deeper than ${deepestBody} levels`);
    value = JSON.parse(text);
    if (mayOverflow.test(text) && hasInfinity(value))
      throw bad("a number in the body is too large: it must be less than 1.8e308");
  } catch (cause) {
    if (cause instanceof BrokerError) throw cause;
    throw bad(cause instanceof SyntaxError ? "the body is not valid JSON" : "the body is not valid UTF-8", cause);
  }
  if (!isJsonObject(value)) throw bad("the body must be a JSON object");
  return { value, text };
}

/**
 * A number with less digits and a shorter exponent is finite; few bodies have to be searched. Digits are counted from the first of them alone:
 * from each of them, a megabyte of numbers with 199 digits would take a second.
 */
const mayOverflow = /(?<![0-9])[0-9]{200}|[eE]\+?[0-9]{3}/;

function isJsonType(contentType: string): boolean {
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return type === "application/json" || type.endsWith("+json");
}

function tooLarge(mostBytes: number): BrokerError {
  return new BrokerError("too-large", `the body has more than ${mostBytes} bytes`);
}

function bad(description: string, cause?: unknown): BrokerError {
  return new BrokerError("bad-request", description, { cause });
}
