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
  const known = credentials.map(({ username, password, platform }) => ({
    username,
    ...(platform !== undefined && { platform }),
    usual: usualHeader(`${username}:${password}`),
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

const paddedBytes = 512;
const scratch = Buffer.alloc(paddedBytes);

/** Of one length for all; all zero for what is longer, which no header is. */
function padded(authorization: string): Uint8Array {
  scratch.fill(0);
  if (authorization.length <= paddedBytes) scratch.write(authorization, "latin1");
  return scratch;
}

/** One that is too long for the quick comparison gets bytes that no header has. */
function usualHeader(text: string): Uint8Array {
  const header = `Basic ${Buffer.from(text).toString("base64")}`;
  return header.length <= paddedBytes ? Buffer.from(padded(header)) : Buffer.alloc(paddedBytes, 0xff);
}
