import { isJsonObject } from "@osbert/protocol";
import type { Prepared } from "../service/service.js";

/**
 * Why what an author says of an instance must not go to a platform (PROV-21, PROV-25, META-01, META-02), or `null`. As with bindings,
 * nothing is believed of its types: a platform takes a malformed answer for a failure, and deletes what was made.
 */
export function checkInstance(told: Prepared | undefined): string | null {
  if (told === undefined) return null;
  if (!isJsonObject(told)) return "it must be an object";
  if (typeof (told as { then?: unknown }).then === "function") return "it must not be async";
  const { dashboardUrl, metadata } = told as Prepared;
  if (dashboardUrl != null && (typeof dashboardUrl !== "string" || dashboardUrl === ""))
    return "dashboardUrl must be a text that is not empty";
  if (metadata == null) return null;
  if (!isJsonObject(metadata)) return "metadata must be an object";
  return [metadata.labels, metadata.attributes].every((pairs) => pairs === undefined || isJsonObject(pairs))
    ? null
    : "labels and attributes of metadata must be objects";
}

/** What an author's function has said before the work, if it may be told; else it is the broker's own fault. */
export function checkPrepared(name: "prepare" | "prepareUpdate", prepared: Prepared | undefined): Prepared {
  const malformed = checkInstance(prepared);
  if (malformed === null) return prepared ?? {};
  // It may be a promise, which nobody else waits for.
  Promise.resolve(prepared).catch(() => undefined);
  throw new Error(`${name} returned what cannot be given out: ${malformed}`);
}
