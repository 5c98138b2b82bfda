import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from "node:crypto";
import { JournalError } from "../errors.js";

/**
 * Where a text belongs. It is authenticated with the text, so that one that was put elsewhere, into another resource, part or entry, or
 * beside another seq, is found out.
 */
export type Place =
  | { readonly kind: "state"; readonly key: string; readonly seq: number }
  | { readonly kind: "part"; readonly key: string; readonly id: string }
  | { readonly kind: "entry"; readonly key: string; readonly seq: number; readonly entryKind: string }
  | { readonly kind: "check"; readonly id: string };

/**
 * What a stored text is:
 * - "plain": written before there was encryption.
 * - "opened": authentic, under that key.
 * - "locked": nothing is wrong with it, but it cannot be read here: its key is missing, or its form is a newer one.
 * - "broken": no text of this place under the key that it names.
 */
export type Opened =
  | { readonly kind: "plain"; readonly text: string }
  | { readonly kind: "opened"; readonly text: string; readonly keyId: string }
  | { readonly kind: "locked"; readonly keyId: string | null; readonly error: JournalError }
  | { readonly kind: "broken"; readonly keyId: string | null };

/** What encrypted texts of any form begin with. No JSON does. */
const prefix = "osbert-enc:";
const form = `${prefix}1:`;
const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts and decrypts texts: `osbert-enc:1:<key id>:<nonce, ciphertext and tag in base64url>`. */
export class TextCipher {
  readonly active: string;
  readonly #activeKey: KeyObject;
  readonly #keys: ReadonlyMap<string, KeyObject>;

  /** `active` must be among the keys. */
  constructor(keys: ReadonlyMap<string, KeyObject>, active: string) {
    const activeKey = keys.get(active);
    if (activeKey === undefined)
      throw new JournalError("invalid-key-ring", `there is no key ${JSON.stringify(active)}`);
    this.active = active;
    this.#activeKey = activeKey;
    this.#keys = keys;
  }

  /** Under the active key, with a nonce of its own. */
  seal(text: string, place: Place): string {
    const nonce = newNonce();
    const cipher = createCipheriv(algorithm, this.#activeKey, nonce, { authTagLength: tagBytes });
    cipher.setAAD(bound(this.active, place));
    const body = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${form}${this.active}:${body.toString("base64url")}`;
  }

  open(text: string, place: Place): Opened {
    if (!text.startsWith(prefix)) return { kind: "plain", text };
    if (!text.startsWith(form)) return { kind: "locked", keyId: null, error: newerForm(place) };
    const end = text.indexOf(":", form.length);
    if (end < 0) return { kind: "broken", keyId: null };
    const keyId = text.slice(form.length, end);
    const key = this.#keys.get(keyId);
    if (key === undefined) return { kind: "locked", keyId, error: missing(keyId, place) };
    const body = Buffer.from(text.slice(end + 1), "base64url");
    if (body.length < nonceBytes + tagBytes) return { kind: "broken", keyId };
    const decipher = createDecipheriv(algorithm, key, body.subarray(0, nonceBytes), { authTagLength: tagBytes });
    decipher.setAAD(bound(keyId, place));
    decipher.setAuthTag(body.subarray(body.length - tagBytes));
    const clear = decipher.update(body.subarray(nonceBytes, body.length - tagBytes));
    try {
      decipher.final();
    } catch {
      return { kind: "broken", keyId };
    }
    return { kind: "opened", text: clear.toString("utf8"), keyId };
  }
}

/** Chance is fetched for many nonces at once: by itself each would cost a third of the encryption of a small text. */
const chance = Buffer.alloc(256 * nonceBytes);
let used = chance.length;

/** To be used before the next one is asked for. No two are the same piece of chance. */
function newNonce(): Buffer {
  if (used === chance.length) {
    randomFillSync(chance);
    used = 0;
  }
  used += nonceBytes;
  return chance.subarray(used - nonceBytes, used);
}

/** For messages: which text it is, without anything of it. */
export function nameOf(place: Place): string {
  switch (place.kind) {
    case "state":
      return `the state of ${JSON.stringify(place.key)}`;
    case "part":
      return `the part ${JSON.stringify(place.id)} of ${JSON.stringify(place.key)}`;
    case "entry":
      return `entry ${place.seq} of ${JSON.stringify(place.key)}`;
    case "check":
      return `the check of key ${JSON.stringify(place.id)}`;
  }
}

/** JSON keeps apart what is apart: no two places have the same bytes. */
function bound(keyId: string, place: Place): Buffer {
  switch (place.kind) {
    case "state":
      return Buffer.from(JSON.stringify([form, keyId, "state", place.key, place.seq]));
    case "part":
      return Buffer.from(JSON.stringify([form, keyId, "part", place.key, place.id]));
    case "entry":
      return Buffer.from(JSON.stringify([form, keyId, "entry", place.key, place.seq, place.entryKind]));
    case "check":
      return Buffer.from(JSON.stringify([form, keyId, "check", place.id]));
  }
}

function missing(keyId: string, place: Place): JournalError {
  return new JournalError(
    "key-missing",
    `${nameOf(place)} is encrypted under the key ${JSON.stringify(keyId)}, which is not in the key ring; add it and start again`,
  );
}

function newerForm(place: Place): JournalError {
  return new JournalError("schema-newer", `${nameOf(place)} is encrypted in a form that only a newer Osbert can read`);
}
