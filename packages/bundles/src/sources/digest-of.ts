import { createHash } from "node:crypto";
import type { Digest } from "./source.js";

export function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
