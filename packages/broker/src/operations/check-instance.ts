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
