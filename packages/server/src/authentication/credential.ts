import type { JSONWebKeySet } from "jose";

/** A name and password that a platform uses. */
export interface PasswordCredential {
  /** Several may have the same: an old and a new password are then both valid. */
  readonly username: string;
  /** As it is: for tests, and where the file it comes from is a secret. */
  readonly password: string;
  /** Valid for this platform's paths alone. */
  readonly platform?: string;
}

/** A name and the hash of a password, as `hashPassword` makes it: what can be kept in a file. */
export interface HashedCredential {
  /** Several may have the same: an old and a new password are then both valid. */
  readonly username: string;
  /** `$scrypt$ln=…,r=…,p=…$salt$hash` */
  readonly passwordHash: string;
  /** Valid for this platform's paths alone. */
  readonly platform?: string;
}

/** Signature algorithms whose verifying key may be public. */
export const tokenAlgorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** One of them. */
export type TokenAlgorithm = (typeof tokenAlgorithms)[number];

/** Tokens (JWT) that an issuer has signed for this broker. */
export interface TokenIssuer {
  /** What the token's `iss` must be. */
  readonly issuer: string;
  /** One of these must be the token's audience. */
  readonly audience: string | readonly string[];
  /** Where the issuer's public keys are (http or https), or the keys themselves. */
  readonly keys: string | URL | JSONWebKeySet;
  /** Default: every asymmetric one. */
  readonly algorithms?: readonly TokenAlgorithm[];
  /** How far the clocks of issuer and broker may be apart. Default 30, at most 300. */
  readonly clockToleranceSeconds?: number;
  /** The claim that names the caller. Default `sub`. */
  readonly nameClaim?: string;
  /** Claims that must have this value, or hold it if they are lists. */
  readonly claims?: Readonly<Record<string, string | number | boolean>>;
  /** Scopes that the token must all have, in `scope` or `scp`. */
  readonly scopes?: readonly string[];
  /** How long fetched keys are used before they are fetched again. Default 10 minutes. */
  readonly keysMaxAgeMs?: number;
  /** How soon after a fetch an unknown key may cause another. Default 30 seconds. */
  readonly keysCooldownMs?: number;
  /** How long a fetch of keys may take. Default 5 seconds. */
  readonly keysTimeoutMs?: number;
}

/** Tokens instead of a password. */
export interface BearerCredential {
  /** Who signs them, and what they must say. */
  readonly bearer: TokenIssuer;
  /** Valid for this platform's paths alone. */
  readonly platform?: string;
}

/** A client certificate that the server has verified, told by its subject or by one of its alternative names. */
export interface CertificateCredential {
  /** What it must say of its owner. */
  readonly certificate:
    | {
        /** `CN=platform,O=Example`, in either direction, in full. */
        readonly subject: string;
      }
    | {
        /** `DNS:platform.example` or `URI:spiffe://example/platform`. */
        readonly alternativeName: string;
      };
  /** What the caller is called in the journal. Default: the subject or the alternative name. */
  readonly name?: string;
  /** Valid for this platform's paths alone. */
  readonly platform?: string;
}

/** What lets a platform in. Any number may be valid at a time, so that one can be changed for another without a gap. */
export type Credential = PasswordCredential | HashedCredential | BearerCredential | CertificateCredential;

export interface SortedCredentials {
  readonly passwords: readonly PasswordCredential[];
  readonly hashes: readonly HashedCredential[];
  readonly issuers: readonly BearerCredential[];
  readonly certificates: readonly CertificateCredential[];
}

/** Throws where a credential has no form, or more than one: it must not be guessed which was meant. */
export function sortCredentials(credentials: readonly Credential[]): SortedCredentials {
  const passwords: PasswordCredential[] = [];
  const hashes: HashedCredential[] = [];
  const issuers: BearerCredential[] = [];
  const certificates: CertificateCredential[] = [];
  for (const [index, credential] of credentials.entries()) {
    const forms = ["password", "passwordHash", "bearer", "certificate"].filter((form) =>
      Object.hasOwn(credential, form),
    );
    if (forms.length !== 1) {
      throw new TypeError(
        `credential ${index + 1} must have exactly one of password, passwordHash, bearer and certificate; it has ${forms.join(" and ") || "none"}`,
      );
    }
    if ("password" in credential) passwords.push(credential);
    else if ("passwordHash" in credential) hashes.push(credential);
    else if ("bearer" in credential) issuers.push(credential);
    else certificates.push(credential);
    if ("username" in credential && credential.username.includes(":")) {
      throw new TypeError(`the user name of credential ${index + 1} holds a colon, which HTTP basic cannot carry`);
    }
  }
  return { passwords, hashes, issuers, certificates };
}

export function isFor(credential: { readonly platform?: string }, platform: string): boolean {
  return credential.platform === undefined || credential.platform === platform;
}
