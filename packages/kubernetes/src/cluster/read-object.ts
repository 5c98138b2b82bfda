import { isJsonObject, type JsonObject } from "@osbert/protocol";
import { ClusterError } from "./cluster-error.js";
import { apiVersionOf, type ClusterObject, type ObjectKind } from "./cluster-object.js";

/** JSON of a success. What is none does not come from an API server. */
export function parseAnswer(bytes: Buffer | string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    // The message of the parser quotes the text, which may be a Secret's.
    throw new ClusterError("unavailable", "the answer is no JSON");
  }
  if (!isJsonObject(value)) throw new ClusterError("unavailable", "the answer is no JSON object");
  return value;
}

/**
 * An object as it came, without `managedFields`: these are often longer than all the rest, and nobody here asks for them. Those of a list do not
 * say of which kind they are.
 */
export function readObject(kind: ObjectKind, value: unknown): ClusterObject {
  if (!isJsonObject(value) || !isJsonObject(value.metadata) || typeof value.metadata.name !== "string") {
    throw new ClusterError("unavailable", "the answer is no object of a cluster");
  }
  const { managedFields: _leftOut, ...metadata } = value.metadata;
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, ...value, metadata } as unknown as ClusterObject;
}
