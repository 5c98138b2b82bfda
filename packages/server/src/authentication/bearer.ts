import type { Clock } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { type BearerCredential, isFor, type TokenIssuer, tokenAlgorithms } from "./credential.js";
import type { ObserveAuthentication } from "./event.js";
import { keySetOf, pauseAfterFailureMs } from "./key-set.js";

export interface BearerOptions {
  readonly clock: Clock;
  readonly observe: ObserveAuthentication;
}

interface Known {
  readonly credential: BearerCredential;
  readonly keys: JWTVerifyGetKey;
  readonly options: JWTVerifyOptions;
}

const longestToken = 16_384;
const longestName = 255;

/** The token in `Authorization: Bearer …`; `undefined` if it is another scheme. */
export function readBearer(authorization: string): string | undefined {
  return authorization.length > longestToken ? undefined : /^bearer +([\w.~+/=-]+)$/i.exec(authorization)?.[1];
}

/**
 * Tokens (JWT) by their issuer. What cannot be verified because the keys cannot be reached is answered with 503, never with access, and
 * not with 401 either: the platform would take its token for a bad one.
 */
export function bearerAuthentication(
  credentials: readonly BearerCredential[],
  { clock, observe }: BearerOptions,
): (token: string, platform: string) => Promise<string | undefined> {
  const known = credentials.map(
    (credential): Known => ({
      credential,
      keys: keySetOf(credential.bearer, clock),
      options: optionsOf(credential.bearer),
    }),
  );
  return async (token, platform) => {
    const issuer = claimedIssuer(token);
    let unavailable: { readonly cause: unknown } | undefined;
    for (const { credential, keys, options } of known) {
      if (credential.bearer.issuer !== issuer || !isFor(credential, platform)) continue;
      try {
        const name = nameIn(await verify(token, keys, options), credential.bearer);
        if (name !== undefined) return name;
      } catch (error) {
        // What jose throws is a verdict on the token. Anything else is not the token's fault.
        if (error instanceof errors.JOSEError) continue;
        unavailable = { cause: error };
        observe({ kind: "keys unavailable", issuer, error });
      }
    }
    if (unavailable === undefined) return undefined;
    throw new BrokerError("unavailable", "the keys that tokens are verified with cannot be had; ask again later", {
      retryAfterSeconds: Math.ceil(pauseAfterFailureMs / 1_000) + 1,
      cause: unavailable.cause,
    });
  };
}

function optionsOf({
  issuer,
  audience,
  algorithms = tokenAlgorithms,
  clockToleranceSeconds = 30,
  nameClaim = "sub",
  claims = {},
}: TokenIssuer): JWTVerifyOptions {
  // An empty audience would be checked against nothing.
  const audiences = typeof audience === "string" ? [audience] : [...audience];
  if (issuer === "" || audiences.length === 0 || audiences.includes("")) {
    throw new TypeError("a bearer credential needs an issuer and an audience");
  }
  for (const algorithm of algorithms) {
    if (!tokenAlgorithms.includes(algorithm)) {
      throw new TypeError(
        `tokens must be signed with one of ${tokenAlgorithms.join(", ")}; ${algorithm} is none of them`,
      );
    }
  }
  if (algorithms.length === 0) throw new TypeError("a bearer credential needs an algorithm");
  if (!(clockToleranceSeconds >= 0 && clockToleranceSeconds <= 300)) {
    throw new TypeError("clockToleranceSeconds must be from 0 to 300");
  }
  return {
    issuer,
    audience: audiences,
    algorithms: [...algorithms],
    clockTolerance: clockToleranceSeconds,
    requiredClaims: ["exp", nameClaim, ...Object.keys(claims)],
  };
}

/** Only to choose the keys: nothing in it is believed before the signature has been verified, and then it is read again. */
function claimedIssuer(token: string): string {
  try {
    return decodeJwt(token).iss ?? "";
  } catch {
    return "";
  }
}

async function verify(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    return verifyWithAny(token, error, options);
  }
}

/** A token without a key id may be signed with any of the keys. */
async function verifyWithAny(
  token: string,
  matching: errors.JWKSMultipleMatchingKeys,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  for await (const key of matching) {
    try {
      return (await jwtVerify(token, key, options)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

function nameIn(payload: JWTPayload, { nameClaim = "sub", claims = {}, scopes = [] }: TokenIssuer): string | undefined {
  const has = (value: unknown, wanted: unknown) => (Array.isArray(value) ? value.includes(wanted) : value === wanted);
  if (!Object.entries(claims).every(([claim, wanted]) => has(payload[claim], wanted))) return undefined;
  const granted = scopesIn(payload);
  if (!scopes.every((scope) => granted.includes(scope))) return undefined;
  const name = payload[nameClaim];
  return typeof name === "string" && name !== "" && name.length <= longestName && !/\p{Cc}/u.test(name)
    ? name
    : undefined;
}

function scopesIn({ scope, scp }: JWTPayload): readonly unknown[] {
  const given = scope ?? scp;
  return typeof given === "string" ? given.split(" ") : Array.isArray(given) ? given : [];
}
