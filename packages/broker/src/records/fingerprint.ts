import { hash } from "node:crypto";
import { canonicalJson, type Json } from "@osbert/protocol";

/** Equal for values that are equal as JSON, whatever the order of their fields: tells a repeated request from another one. Bodies are bounded in depth where they are read. */
export function fingerprint(value: Json): string {
  return hash("sha256", canonicalJson(value), "base64url").slice(0, 22);
}
