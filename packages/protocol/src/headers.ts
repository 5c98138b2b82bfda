import { hasInfinity, isDeeperThan, isJsonObject, type JsonObject } from "./json.js";

export const headerNames = {
  version: "X-Broker-API-Version",
  originatingIdentity: "X-Broker-API-Originating-Identity",
  requestIdentity: "X-Broker-API-Request-Identity",
} as const;

/** The version of the specification that Osbert speaks. */
export const apiVersion = "2.17";

export interface ApiVersion {
  readonly major: number;
  readonly minor: number;
}

export function parseApiVersion(text: string): ApiVersion | undefined {
  const match = /^([0-9]{1,4})\.([0-9]{1,4})$/.exec(text);
  return match === null ? undefined : { major: Number(match[1]), minor: Number(match[2]) };
}

/** Same major, and at least that minor: minor versions only add. */
export function isSupported(version: ApiVersion, minimum: ApiVersion): boolean {
  return version.major === minimum.major && version.minor >= minimum.minor;
}

/** Whose action caused a request, as the platform tells it. */
export interface OriginatingIdentity {
  readonly platform: string;
  readonly value: JsonObject;
}

/** Longer than this is no identity; nothing is decoded then. */
const longestIdentity = 65_536;
/** It is kept with everything that it causes, so it must be as easy to write as it was to read. */
const deepestIdentity = 20;

/** `undefined`: the header is malformed. */
export function parseOriginatingIdentity(text: string): OriginatingIdentity | undefined {
  if (text.length > longestIdentity) return undefined;
  const match = /^\s*([^\s]{1,100})\s+([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(text);
  if (match === null) return undefined;
  const [, platform = "", encoded = ""] = match;
  const value = decodeJson(encoded);
  return isJsonObject(value) && !hasInfinity(value) ? { platform, value } : undefined;
}

export function printOriginatingIdentity({ platform, value }: OriginatingIdentity): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return `${platform} ${btoa(binary)}`;
}

function decodeJson(encoded: string): unknown {
  try {
    const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return isDeeperThan(text, deepestIdentity) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
