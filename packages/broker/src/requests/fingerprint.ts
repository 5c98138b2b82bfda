import { createHash } from "node:crypto";
import type { Json } from "@osbert/protocol";

/** Equal for values that are equal as JSON, whatever the order of their fields: tells a repeated request from another one. */
export function fingerprint(value: Json): string {
  return createHash("sha256").update(canonical(value)).digest("base64url").slice(0, 22);
}

/** Bodies are bounded in depth where they are read, so this recursion is. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(",")}}`;
}
