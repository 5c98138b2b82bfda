import { hash, randomBytes, timingSafeEqual } from "node:crypto";

/** A name and password that a platform uses. Several may be valid at a time, so that they can be changed without a gap. */
export interface Credential {
  readonly username: string;
  readonly password: string;
  /** Valid for this platform's paths alone. */
  readonly platform?: string;
}

/** Answers the name of the credential in use, or undefined. */
export type Authenticate = (authorization: string | undefined, platform: string) => string | undefined;

/** Anyone may do anything: only where something in front of the broker authenticates. */
export const openToAll: Authenticate = () => "anyone";

/**
 * HTTP basic. What is given is compared in full with every credential, in a form of one length, so that the time taken tells nothing
 * of how much of a guess was right.
 */
export function basicAuthentication(credentials: readonly Credential[]): Authenticate {
  const key = randomBytes(32).toString("hex");
  // Not a signature, only a way to compare texts of any length: a plain hash over the key in front of them does.
  const digest = (text: string) => hash("sha256", key + text, "buffer");
  const known = credentials.map(({ username, password, platform }) => ({
    username,
    platform,
    usual: usualHeader(`${username}:${password}`),
    digest: digest(`${username}:${password}`),
  }));
  const fits = (credential: (typeof known)[number], platform: string) =>
    credential.platform === undefined || credential.platform === platform;
  return (authorization, platform) => {
    if (authorization === undefined || authorization.length > longestHeader) return undefined;
    let found: string | undefined;
    // As nearly everyone writes the header; a hash takes longer than all else that a catalog's answer takes.
    const given = padded(authorization);
    for (const credential of known) {
      if (timingSafeEqual(credential.usual, given) && fits(credential, platform)) found = credential.username;
    }
    if (found !== undefined) return found;
    const decoded = decodeBasic(authorization);
    if (decoded === undefined) return undefined;
    const givenDigest = digest(decoded);
    for (const credential of known) {
      if (timingSafeEqual(credential.digest, givenDigest) && fits(credential, platform)) found = credential.username;
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

const longestHeader = 4_096;

function decodeBasic(authorization: string): string | undefined {
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization);
  if (match === null) return undefined;
  const text = Buffer.from(match[1] ?? "", "base64").toString("utf8");
  return text.includes(":") ? text : undefined;
}
