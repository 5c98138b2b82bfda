import { hash } from "node:crypto";
import type { Json } from "@osbert/protocol";

/** Equal for values that are equal as JSON, whatever the order of their fields: tells a repeated request from another one. */
export function fingerprint(value: Json): string {
  return hash("sha256", canonical(value), "base64url").slice(0, 22);
}

/** One text for all values that are equal as JSON. Bodies are bounded in depth where they are read, so this recursion is. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = value as { readonly [name: string]: Json };
  let text = "{";
  for (const name of Object.keys(fields).sort())
    text += `${text === "{" ? "" : ","}${JSON.stringify(name)}:${canonical(fields[name] as Json)}`;
  return `${text}}`;
}
