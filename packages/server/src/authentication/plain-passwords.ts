import { hash, randomBytes, timingSafeEqual } from "node:crypto";

import { readBasic } from "./basic-header.js";
import { isFor, type PasswordCredential } from "./credential.js";

/** Answers the name of the credential in use, or undefined. */
export type PlainPasswords = (authorization: string, platform: string) => string | undefined;

/**
 * HTTP basic. What is given is compared in full with every credential, in a form of one length, so that the time taken tells nothing
 * of how much of a guess was right.
 */
export function plainPasswords(credentials: readonly PasswordCredential[]): PlainPasswords {
  const key = randomBytes(32).toString("hex");
  // Not a signature, only a way to compare texts of any length: a plain hash over the key in front of them does.
  const digest = (text: string) => hash("sha256", key + text, "buffer");
  const usualHeaders = credentials.map(
    ({ username, password }) => `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
  );
  const padded = paddedTo(roundedUp(Math.max(0, ...usualHeaders.map(({ length }) => length))));
  const known = credentials.map(({ username, password, platform }, index) => ({
    username,
    ...(platform !== undefined && { platform }),
    usual: Buffer.from(padded(usualHeaders[index] ?? "")),
    digest: digest(`${username}:${password}`),
  }));
  return (authorization, platform) => {
    let found: string | undefined;
    // As nearly everyone writes the header; a hash takes longer than all else that a catalog's answer takes.
    const given = padded(authorization);
    for (const credential of known) {
      if (timingSafeEqual(credential.usual, given) && isFor(credential, platform)) found = credential.username;
    }
    if (found !== undefined) return found;
    const pair = readBasic(authorization);
    if (pair === undefined) return undefined;
    const givenDigest = digest(`${pair.username}:${pair.password}`);
    for (const credential of known) {
      if (timingSafeEqual(credential.digest, givenDigest) && isFor(credential, platform)) found = credential.username;
    }
    return found;
  };
}

/** So that the time which a comparison takes does not tell how long the longest password is; to compare more bytes costs every request. */
const stepBytes = 128;

function roundedUp(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / stepBytes)) * stepBytes;
}

/** Texts in bytes of one length for all; all zero for what is longer, which no header is. Each lasts until the next. */
function paddedTo(bytes: number): (text: string) => Uint8Array {
  const scratch = Buffer.alloc(bytes);
  return (text) => {
    scratch.fill(0);
    if (text.length <= bytes) scratch.write(text, "latin1");
    return scratch;
  };
}
