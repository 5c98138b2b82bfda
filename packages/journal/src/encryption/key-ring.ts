import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { JournalError } from "../errors.js";

/**
 * The keys of a store: one encrypts what is written, the others are there to read what was written before. `parseKeyRing` gives
 * them as key objects, which show nothing of themselves in a log.
 */
export interface KeyRing {
  /** The id of the key that encrypts. */
  readonly active: string;
  /** By id: 32 bytes each. */
  readonly keys: Readonly<Record<string, Uint8Array | KeyObject>>;
}

export const keyBytes = 32;

/** More would be a mistake: a ring holds the active key, its predecessor, and at times its successor. */
const mostKeys = 64;

/**
 * Reads a ring from text: a key a line as `id:key`, the key in base64 (32 bytes), the active one first. Empty lines and lines that
 * start with `#` do not count; commas may stand in place of line ends, for an environment variable. Throws `invalid-key-ring` with the
 * number of the line, and never with anything of a key.
 */
export function parseKeyRing(text: string): KeyRing {
  const keys = new Map<string, KeyObject>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trimStart().startsWith("#")) continue;
    for (const item of line.split(",")) {
      if (item.trim() !== "") addKey(keys, item.trim(), index + 1);
    }
  }
  const [active] = keys.keys();
  if (active === undefined) throw refused("it holds no key: write one as id:key, the key in base64");
  if (keys.size > mostKeys) throw refused(`it holds ${keys.size} keys, and at most ${mostKeys} are sensible`);
  return { active, keys: Object.fromEntries(keys) };
}

/** A new key at random, as a line for `parseKeyRing`. */
export function newKey(id = `k${randomBytes(4).toString("hex")}`): string {
  if (!isKeyId(id)) throw refused(`${idRule}; ${JSON.stringify(id)} is not such an id`);
  return `${id}:${randomBytes(keyBytes).toString("base64")}`;
}

/** The keys of a ring, ready for use. Throws `invalid-key-ring` if it is not one. */
export function keysOf({ active, keys }: KeyRing): ReadonlyMap<string, KeyObject> {
  const usable = new Map<string, KeyObject>();
  for (const [id, key] of Object.entries(keys)) {
    if (!isKeyId(id)) throw refused(`${idRule}; ${JSON.stringify(id)} is not such an id`);
    const object = key instanceof Uint8Array ? createSecretKey(key) : key;
    if (object.type !== "secret" || object.symmetricKeySize !== keyBytes) {
      throw refused(`the key ${JSON.stringify(id)} must have ${keyBytes} bytes, as AES-256 takes them`);
    }
    usable.set(id, object);
  }
  if (!usable.has(active)) throw refused(`its active key ${JSON.stringify(active)} is not among its keys`);
  return usable;
}

function addKey(keys: Map<string, KeyObject>, item: string, line: number): void {
  const colon = item.indexOf(":");
  // What stands before a colon may be shown; without one, all of it may be a key.
  if (colon < 0) throw refused(`line ${line} has no colon: write id:key, the key in base64`);
  const id = item.slice(0, colon).trim();
  if (!isKeyId(id)) throw refused(`line ${line}: ${idRule}`);
  if (keys.has(id)) throw refused(`line ${line}: there is a key ${JSON.stringify(id)} already`);
  const text = item.slice(colon + 1).trim();
  const bytes = Buffer.from(text, "base64");
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text) || bytes.length !== keyBytes) {
    throw refused(`line ${line}: the key ${JSON.stringify(id)} must be ${keyBytes} bytes in base64, 44 characters`);
  }
  keys.set(id, createSecretKey(bytes));
}

const idRule = "the id of a key is 1 to 32 letters, digits, dots, dashes and underscores, a letter or digit first";

function isKeyId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/.test(id);
}

function refused(reason: string): JournalError {
  return new JournalError("invalid-key-ring", `the key ring cannot be used: ${reason}`);
}
