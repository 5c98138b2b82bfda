import { isDeepStrictEqual } from "node:util";
import type { PatchOperation } from "./cluster.js";

/** Whether a `test` of a JSON Patch does not hold for a document, as far as that can be said before the patch: tests after the first change are not judged. */
export function hasFailedTest(document: unknown, operations: readonly PatchOperation[]): boolean {
  for (const operation of operations) {
    if (operation.op !== "test") return false;
    if (!isDeepStrictEqual(valueAt(document, operation.path), operation.value)) return true;
  }
  return false;
}

/** JSON Pointer (RFC 6901). `undefined`: there is nothing. */
function valueAt(document: unknown, path: string): unknown {
  let value = document;
  for (const part of path.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}
