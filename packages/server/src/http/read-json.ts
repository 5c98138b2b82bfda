import { BrokerError, hasInfinity, isDeeperThan, isJsonObject, type JsonObject } from "@osbert/protocol";
import type { WireRequest } from "./wire.js";

/** Bodies beyond this are refused, unless an API takes less; nothing of them is kept. */
export const largestBody = 1_048_576;

/** Deeper bodies are refused before they are parsed: what walks them later may recurse. */
const deepestBody = 100;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The body of a request: a JSON object, or a refusal that says why not. What the headers alone forbid is not read. */
export async function readJsonObject(
  { header, body }: Pick<WireRequest, "header" | "body">,
  mostBytes: number,
): Promise<JsonObject> {
  const contentType = header("content-type") ?? "";
  if (contentType !== "" && !isJsonType(contentType))
    throw bad("the body must be JSON: send it with Content-Type application/json");
  // No platform compresses what it sends, and what a few bytes unpack to has to be bounded by someone.
  const encoding = header("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity")
    throw bad("the body must be sent as it is, without Content-Encoding: compressed bodies are not read");
  if (Number(header("content-length") ?? 0) > mostBytes) throw tooLarge(mostBytes);
  const bytes = typeof body === "function" ? await body(mostBytes) : body;
  if (bytes === undefined || bytes.byteLength > mostBytes) throw tooLarge(mostBytes);
  return parseJsonObject(bytes);
}

function parseJsonObject(bytes: Uint8Array): JsonObject {
  if (bytes.byteLength === 0) throw bad("the body is missing; it must be a JSON object");
  let value: unknown;
  try {
    const text = decoder.decode(bytes);
    if (isDeeperThan(text, deepestBody)) throw bad(`the body is nested deeper than ${deepestBody} levels`);
    value = JSON.parse(text);
    if (mayOverflow.test(text) && hasInfinity(value))
      throw bad("a number in the body is too large: it must be less than 1.8e308");
  } catch (cause) {
    if (cause instanceof BrokerError) throw cause;
    throw bad(cause instanceof SyntaxError ? "the body is not valid JSON" : "the body is not valid UTF-8", cause);
  }
  if (!isJsonObject(value)) throw bad("the body must be a JSON object");
  return value;
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
