import type { Clock } from "@osbert/journal";
import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { TokenIssuer } from "./credential.js";

/** The keys cannot be had now: nothing that they would have to verify can be let in, or be called wrong. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

const largestKeySetBytes = 1_048_576;
const mostKeys = 100;
/** After a failed fetch the next one waits so long, however many tokens ask for it. */
export const pauseAfterFailureMs = 2_000;

/** An issuer's public keys: the given ones, or those at the URL, fetched when first needed, again when old or when a key is new. */
export function keySetOf(issuer: TokenIssuer, clock: Clock): JWTVerifyGetKey {
  const { keys } = issuer;
  if (typeof keys === "object" && !(keys instanceof URL)) return createLocalJWKSet(checked(keys));
  const { keysTimeoutMs = 5_000, keysCooldownMs = 30_000, keysMaxAgeMs = 600_000 } = issuer;
  let pauseUntil = Number.NEGATIVE_INFINITY;
  return createRemoteJWKSet(urlOf(keys), {
    timeoutDuration: keysTimeoutMs,
    cooldownDuration: keysCooldownMs,
    cacheMaxAge: keysMaxAgeMs,
    [customFetch]: async (url, options) => {
      if (clock.monotonicMs() < pauseUntil)
        throw new KeysUnavailable(`the keys at ${url} could not be fetched just now`);
      try {
        return Response.json(await fetchKeySet(url, options));
      } catch (cause) {
        pauseUntil = clock.monotonicMs() + pauseAfterFailureMs;
        throw new KeysUnavailable(`the keys at ${url} cannot be fetched: ${reasonOf(cause)}`, { cause });
      }
    },
  });
}

async function fetchKeySet(url: string, options: RequestInit): Promise<JSONWebKeySet> {
  const response = await fetch(url, options);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the answer was ${response.status}`);
  }
  const set = checked(JSON.parse(await boundedText(response)) as JSONWebKeySet);
  // What is no key set must count as a failed fetch, not as a set that lacks the key.
  createLocalJWKSet(set);
  return set;
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > largestKeySetBytes) throw new Error(`the answer has more than ${largestKeySetBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function checked(set: JSONWebKeySet): JSONWebKeySet {
  if (Array.isArray(set?.keys) && set.keys.length > mostKeys)
    throw new TypeError(`a key set has more than ${mostKeys} keys`);
  return set;
}

function urlOf(keys: string | URL): URL {
  const url = URL.canParse(String(keys)) ? new URL(String(keys)) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new TypeError(
      `the keys of a bearer credential must be a key set or an http(s) URL; ${String(keys)} is neither`,
    );
  }
  if (url.username !== "" || url.password !== "") throw new TypeError("the URL of the keys must not hold a password");
  return url;
}

/** fetch hides the reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
