import { BrokerError, isDeeperThan, isJsonObject, type JsonObject } from "@osbert/protocol";

/** Deeper bodies are refused before they are parsed: what walks them later may recurse. */
const deepestBody = 100;

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The body of a PUT or PATCH: a JSON object, or a 400 that says why not. */
export function readJsonObject(bytes: Uint8Array, contentType: string | undefined): JsonObject {
  if (contentType !== undefined && contentType !== "" && !isJsonType(contentType)) {
    throw bad("the body must be JSON: send it with Content-Type application/json");
  }
  if (bytes.byteLength === 0) throw bad("the body is missing; it must be a JSON object");
  let value: unknown;
  try {
    const text = decoder.decode(bytes);
    if (isDeeperThan(text, deepestBody)) throw bad(`the body is nested deeper than ${deepestBody} levels`);
    value = JSON.parse(text);
  } catch (cause) {
    if (cause instanceof BrokerError) throw cause;
    throw bad(cause instanceof SyntaxError ? "the body is not valid JSON" : "the body is not valid UTF-8", cause);
  }
  if (!isJsonObject(value)) throw bad("the body must be a JSON object");
  return value;
}

function isJsonType(contentType: string): boolean {
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return type === "application/json" || type.endsWith("+json");
}

function bad(description: string, cause?: unknown): BrokerError {
  return new BrokerError("bad-request", description, { cause });
}
