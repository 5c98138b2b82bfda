import { PlatformError } from "../errors.js";
import type { BrokerAuthentication, BrokerData, BrokerLimits } from "../records/broker-record.js";
import { isName, nameRule } from "../records/name.js";

/** How a broker is to be reached. What is missing stays as it is, or is as usual. */
export interface WantedRegistration {
  readonly url?: string;
  readonly authentication?: BrokerAuthentication;
  readonly ca?: string;
  readonly clientCertificate?: { readonly certificate: string; readonly key: string };
  readonly limits?: Partial<BrokerLimits>;
  readonly quirks?: { readonly notFoundMeansGone?: boolean };
  readonly relistMs?: number;
}

/** So few in flight that eight brokers which hang leave room for a ninth: a process runs 256 operations at a time unless it is told otherwise. */
const usual = { inFlight: 32, timeoutMs: 60_000, relistMs: 5 * 60_000 };
const longestSecret = 65_536;

/** A broker that nobody knows yet. Its catalog is read as soon as it is registered. */
export function newBroker(name: string, wanted: WantedRegistration, by: string, now: number): BrokerData {
  if (!isName(name)) throw invalid(`the name of a broker ${nameRule}`);
  return changedBroker(
    {
      name,
      url: "",
      authentication: { kind: "none" },
      ca: null,
      clientCertificate: null,
      limits: { inFlight: usual.inFlight, timeoutMs: usual.timeoutMs },
      quirks: { notFoundMeansGone: false },
      relistMs: usual.relistMs,
      registeredBy: by,
      registeredAt: now,
      asked: 0,
      catalog: { revision: 0, pages: 0, offerings: 0, etag: null, readAt: null, fault: null, answered: 0 },
      health: { state: "unknown", since: now, message: null, failures: 0 },
      serialBindings: {},
      removed: false,
    },
    wanted,
  );
}

/** The broker with another address, credentials or limits. It is asked for its catalog with them: that also tells whether they are right. */
export function changedBroker(before: BrokerData, wanted: WantedRegistration): BrokerData {
  const url = wanted.url === undefined ? before.url : checkedUrl(wanted.url);
  if (url === "") throw invalid("a broker has a URL");
  return {
    ...before,
    url,
    authentication:
      wanted.authentication === undefined ? before.authentication : checkedAuthentication(wanted.authentication),
    ca: wanted.ca === undefined ? before.ca : checkedText("ca", wanted.ca),
    clientCertificate:
      wanted.clientCertificate === undefined
        ? before.clientCertificate
        : {
            certificate: checkedText("clientCertificate.certificate", wanted.clientCertificate.certificate),
            key: checkedText("clientCertificate.key", wanted.clientCertificate.key),
          },
    limits: {
      inFlight: checkedNumber("limits.inFlight", wanted.limits?.inFlight ?? before.limits.inFlight, 1, 1_000),
      timeoutMs: checkedNumber("limits.timeoutMs", wanted.limits?.timeoutMs ?? before.limits.timeoutMs, 100, 600_000),
    },
    quirks: { notFoundMeansGone: wanted.quirks?.notFoundMeansGone ?? before.quirks.notFoundMeansGone },
    relistMs: checkedNumber("relistMs", wanted.relistMs ?? before.relistMs, 1_000, 7 * 24 * 60 * 60_000),
    asked: before.asked + 1,
    // Of another address, the tag says nothing.
    catalog: url === before.url ? before.catalog : { ...before.catalog, etag: null },
  };
}

/** Not with credentials in it: a URL is told to everyone. */
function checkedUrl(text: string): string {
  const url = typeof text === "string" && text.length <= 2_048 && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw invalid("the URL of a broker begins with http:// or https:// and has at most 2048 characters");
  if (url.username !== "" || url.password !== "")
    throw invalid("the URL of a broker has no credentials in it; they are told beside it");
  if (url.search !== "" || url.hash !== "") throw invalid("the URL of a broker has neither a query nor a fragment");
  return url.href.replace(/\/+$/, "");
}

function checkedAuthentication(wanted: BrokerAuthentication): BrokerAuthentication {
  switch (wanted.kind) {
    case "none":
      return { kind: "none" };
    case "basic":
      // The first colon ends the username.
      if (typeof wanted.username !== "string" || wanted.username.includes(":"))
        throw invalid("a username is a text without a colon");
      return {
        kind: "basic",
        username: checkedText("authentication.username", wanted.username),
        password: checkedText("authentication.password", wanted.password),
      };
    case "bearer":
      // It is sent in a header as it is.
      if (typeof wanted.token !== "string" || !/^[\x21-\x7e]+$/.test(wanted.token))
        throw invalid("a bearer token has visible ASCII characters alone");
      return { kind: "bearer", token: checkedText("authentication.token", wanted.token) };
    default:
      throw invalid("a broker is told who asks by none, basic or bearer");
  }
}

/** Never says what the text is. */
function checkedText(what: string, text: unknown): string {
  if (typeof text !== "string" || text === "" || text.length > longestSecret || text.includes("\u0000"))
    throw invalid(`${what} is a text of 1 to ${longestSecret} characters`);
  return text;
}

function checkedNumber(what: string, value: unknown, least: number, most: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw invalid(`${what} is a whole number from ${least} to ${most}`);
}

function invalid(message: string): PlatformError {
  return new PlatformError("invalid", message);
}
