import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

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
 * HTTP basic. Every credential is compared in full, as keyed hashes of equal length, so that the time taken tells nothing of how
 * much of a guess was right.
 */
export function basicAuthentication(credentials: readonly Credential[]): Authenticate {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac("sha256", key).update(text).digest();
  const known = credentials.map(({ username, password, platform }) => ({
    username,
    platform,
    digest: digest(`${username}:${password}`),
  }));
  return (authorization, platform) => {
    const given = decodeBasic(authorization);
    if (given === undefined) return undefined;
    const givenDigest = digest(given);
    let found: string | undefined;
    for (const credential of known) {
      const same = timingSafeEqual(credential.digest, givenDigest);
      if (same && (credential.platform === undefined || credential.platform === platform)) found = credential.username;
    }
    return found;
  };
}

const longestHeader = 4_096;

function decodeBasic(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > longestHeader) return undefined;
  const match = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization);
  if (match === null) return undefined;
  const text = Buffer.from(match[1] ?? "", "base64").toString("utf8");
  return text.includes(":") ? text : undefined;
}
