import { createHash } from "node:crypto";

/** So many characters of base32: 120 bits, two names of which are never the same by chance. */
const hashCharacters = 24;
const longestLabel = 63;

/**
 * The same name for the same parts, everywhere and always: `prefix-` and a hash of the parts. It is a DNS-1123 label, so it can be the name of
 * any object and the value of a label. Each part counts by itself: ["a", "bc"] is not ["ab", "c"].
 */
export function objectName(prefix: string, ...parts: readonly string[]): string {
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(prefix) || prefix.length > longestLabel - hashCharacters - 1) {
    throw new Error(`no prefix for names of objects: ${JSON.stringify(prefix)}`);
  }
  return `${prefix}-${hashOf(parts)}`;
}

/** The text itself where it can be the value of a label; else what is recognisable of it, and a hash that tells it from all others. */
export function labelValue(text: string): string {
  if (isLabelValue(text) && !looksHashed(text)) return text;
  const readable = text
    .replace(/[^-A-Za-z0-9_.]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, longestLabel - hashCharacters - hashMark.length)
    .replace(/[^A-Za-z0-9]+$/, "");
  return readable === "" ? `x${hashMark}${hashOf([text])}` : `${readable}${hashMark}${hashOf([text])}`;
}

/** A text that looks like what `labelValue` makes of another is hashed as well: so no two texts have the same value. */
const hashMark = "_h.";

function looksHashed(text: string): boolean {
  return text.at(-hashCharacters - 1) === "." && text.slice(0, -hashCharacters).endsWith(hashMark);
}

function isLabelValue(text: string): boolean {
  return text.length <= longestLabel && /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/.test(text);
}

function hashOf(parts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = Buffer.from(part, "utf8");
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return base32(hash.digest()).slice(0, hashCharacters);
}

function base32(bytes: Buffer): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  let text = "";
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(held >> bits) & 31];
    }
  }
  return text;
}
