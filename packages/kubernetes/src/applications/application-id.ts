import { hash } from "node:crypto";

/**
 * An id that is for ever the same for the same parts, and another one for others: what stands in which part counts, so that names of any length
 * do not run into each other. In the form of a UUID (version 8, RFC 9562, 5.8).
 */
export function derivedId(...parts: readonly string[]): string {
  const bytes = Buffer.from(hash("sha256", JSON.stringify(["events.osbert.io", ...parts]), "hex"), "hex").subarray(
    0,
    16,
  );
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
