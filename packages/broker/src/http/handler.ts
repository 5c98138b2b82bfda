import {
  BrokerError,
  headerNames,
  isSupported,
  type JsonObject,
  parseApiVersion,
  parseOriginatingIdentity,
} from "@osbert/protocol";
import { type Answer, answer, errorAnswer } from "../answers/answer.js";
import { asBrokerError } from "../answers/failure.js";
import type { Broker } from "../broker.js";
import type { Caller } from "../caller.js";
import type { VerbRequest } from "../verbs.js";
import { type Authenticate, basicAuthentication, type Credential, openToAll } from "./authenticate.js";
import { readJsonObject } from "./read-json.js";
import { type Matched, matchRoute, type RouteName, splitPlatform } from "./routes.js";

/** A request as any server can give it. */
export interface WireRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  readonly header: (name: string) => string | undefined;
  readonly body: Uint8Array;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Answers a request alone, instead of what the broker would do. `undefined`: it does not want to, after all. */
export type OwnHandler = (request: VerbRequest) => Promise<Answer | undefined>;

export interface HandlerOptions {
  /** Who may ask. `"none"`: anyone; only where something in front of the broker authenticates. */
  readonly credentials: readonly Credential[] | "none";
  /** Platforms whose ids are kept apart, each under `/{platform}/v2/…`. Without any, the API is at `/v2/…`. */
  readonly platforms?: readonly string[];
  /** Endpoints that the author answers alone. */
  readonly handlers?: Readonly<Partial<Record<RouteName, OwnHandler>>>;
  /** Told of every error that is the broker's own fault. */
  readonly onError?: (
    error: unknown,
    request: { readonly method: string; readonly path: string; readonly requestId: string | null },
  ) => void;
}

export type Handler = (request: WireRequest) => Promise<WireResponse>;

/** Bodies beyond this are refused unread. */
export const largestBody = 1_048_576;

/**
 * The whole wire without a server: every adapter hands its requests to this function. In this order, so that nobody learns anything
 * unasked: who asks, in which version, what, on whose behalf, with which body.
 */
export function createHandler(broker: Broker, options: HandlerOptions): Handler {
  const authenticate = options.credentials === "none" ? openToAll : basicAuthentication(options.credentials);
  const platforms = options.platforms === undefined ? undefined : new Set(options.platforms);
  return async (request) => {
    const requestId = requestIdOf(request);
    try {
      const given = await respond(broker, options, authenticate, platforms, request, requestId);
      return toWire(given, requestId, request.method);
    } catch (error) {
      const told = asBrokerError(error);
      // A 4xx is the platform's business; what happened inside is the operator's.
      if (told.status >= 500 && told.cause !== undefined) {
        const path = request.url.split("?", 1)[0] ?? "";
        options.onError?.(told.cause, { method: request.method, path, requestId });
      }
      return toWire(errorAnswer(told), requestId, request.method);
    }
  };
}

async function respond(
  broker: Broker,
  options: HandlerOptions,
  authenticate: Authenticate,
  platforms: ReadonlySet<string> | undefined,
  request: WireRequest,
  requestId: string | null,
): Promise<Answer> {
  const questionMark = request.url.indexOf("?");
  const path = questionMark < 0 ? request.url : request.url.slice(0, questionMark);
  const split = splitPlatform(path);
  const credential = authenticate(request.header("authorization"), split?.platform ?? "");
  if (credential === undefined) throw new BrokerError("unauthorized", "a valid user name and password are needed");
  if (split === undefined || !isKnown(platforms, split.platform)) {
    throw new BrokerError("not-found", "there is nothing at this path");
  }
  checkVersion(broker, request.header(headerNames.version));
  const matched = matchRoute(request.method, split.rest);
  const own = options.handlers?.[matched.name];
  if (matched.name === "catalog" && own === undefined) return catalog(broker, request);
  const caller: Caller = { platform: split.platform, credential, identity: identityOf(request), requestId };
  const query = readQuery(questionMark < 0 ? "" : request.url.slice(questionMark + 1));
  const verb: VerbRequest = {
    caller,
    instance: matched.instance,
    binding: matched.binding,
    query,
    body: bodyOf(request),
  };
  return (await own?.(verb)) ?? (await call(broker, matched, verb, request));
}

async function call(broker: Broker, { name }: Matched, verb: VerbRequest, request: WireRequest): Promise<Answer> {
  if (name === "catalog") return catalog(broker, request);
  checkIds(verb);
  return broker.verbs[name](verb);
}

function catalog(broker: Broker, request: WireRequest): Answer {
  const { body, etag } = broker.catalog;
  const known = request.header("if-none-match");
  const unchanged =
    known !== undefined &&
    (known.trim() === "*" || known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag));
  return unchanged ? answer("unchanged", "", { etag }) : answer("fetched", body, { etag });
}

function checkVersion({ minimumApiVersion }: Broker, header: string | undefined): void {
  if (header === undefined) {
    throw new BrokerError(
      "bad-request",
      `the header ${headerNames.version} is missing; send ${headerNames.version}: 2.17`,
    );
  }
  const version = parseApiVersion(header.trim());
  if (version === undefined) throw new BrokerError("bad-request", `${headerNames.version} must look like 2.17`);
  const { major, minor } = minimumApiVersion;
  if (!isSupported(version, minimumApiVersion)) {
    throw new BrokerError(
      "api-version",
      `this broker needs API version ${major}.${minor} or a later ${major}.x; the platform sent ${header.trim().slice(0, 20)}`,
    );
  }
}

function isKnown(platforms: ReadonlySet<string> | undefined, platform: string): boolean {
  return platforms === undefined ? platform === "" : platforms.has(platform);
}

function identityOf(request: WireRequest): Caller["identity"] {
  const header = request.header(headerNames.originatingIdentity);
  if (header === undefined || header.trim() === "") return null;
  const identity = parseOriginatingIdentity(header);
  if (identity === undefined) {
    throw new BrokerError(
      "bad-request",
      `${headerNames.originatingIdentity} must be a platform's name and a base64-encoded JSON object`,
    );
  }
  return identity;
}

function bodyOf(request: WireRequest): JsonObject {
  if (request.method !== "PUT" && request.method !== "PATCH") return {};
  if (request.body.byteLength > largestBody)
    throw new BrokerError("too-large", `the body has more than ${largestBody} bytes`);
  return readJsonObject(request.body, request.header("content-type"));
}

/** The first of repeated parameters counts. */
function readQuery(text: string): JsonObject {
  const query: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(text)) query[name] ??= value;
  return query;
}

const longestIdBytes = 400;

/** Ids may hold anything that every store keeps alike. */
function checkIds({ instance, binding, caller }: VerbRequest): void {
  for (const [id, what] of [
    [instance, "instance_id"],
    [binding, "binding_id"],
    [caller.platform, "the platform"],
  ] as const) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for.
    if (/[\u0000\ud800-\udfff]/u.test(id))
      throw new BrokerError("bad-request", `${what} must not hold NUL or half of a surrogate pair`);
    if (Buffer.byteLength(id) > longestIdBytes)
      throw new BrokerError("bad-request", `${what} has more than ${longestIdBytes} bytes`);
  }
}

/** Comes back on every answer, so that both sides' logs can be put together. */
function requestIdOf(request: WireRequest): string | null {
  const id = request.header(headerNames.requestIdentity)?.trim();
  return id !== undefined && /^[\x20-\x7e]{1,255}$/.test(id) ? id : null;
}

function toWire({ status, body, headers }: Answer, requestId: string | null, method: string): WireResponse {
  const text = method === "HEAD" || status === 304 ? "" : typeof body === "string" ? body : JSON.stringify(body);
  return {
    status,
    headers: {
      ...(text !== "" && { "content-type": "application/json" }),
      ...(requestId !== null && { [headerNames.requestIdentity.toLowerCase()]: requestId }),
      ...headers,
    },
    body: text,
  };
}
