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
import type { Authenticate, Authenticated, Peer } from "./authentication/authenticate.js";
import { type AuthenticationOptions, authentication, openToAll } from "./authentication/authentication.js";
import type { Credential } from "./authentication/credential.js";
import { readJsonObject } from "./read-json.js";
import { type Matched, matchRoute, type RouteName, splitPlatform } from "./routes.js";

/** A request as any server can give it. */
export interface WireRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  /** By its name in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly body: Uint8Array;
  /** Who is at the other end, where the server can tell. */
  readonly peer?: Peer;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** Answers a request alone, instead of what the broker would do. `undefined`: it does not want to, after all. */
export type OwnHandler = (request: VerbRequest) => Promise<Answer | undefined>;

export interface HandlerOptions {
  /** Who may ask; or a function that says who asks. `"none"`: anyone; only where something in front of the broker authenticates. */
  readonly credentials: readonly Credential[] | Authenticate | "none";
  /** How guessing is slowed down, and who is told. */
  readonly authentication?: AuthenticationOptions;
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

/** Answers at once where nothing has to be waited for: a promise costs as much as the rest of a catalog's answer. */
export type Handler = (request: WireRequest) => WireResponse | Promise<WireResponse>;

const wireNames = {
  version: headerNames.version.toLowerCase(),
  originatingIdentity: headerNames.originatingIdentity.toLowerCase(),
  requestIdentity: headerNames.requestIdentity.toLowerCase(),
} as const;

/** Bodies beyond this are refused unread. */
export const largestBody = 1_048_576;

/**
 * The whole wire without a server: every adapter hands its requests to this function. In this order, so that nobody learns anything
 * unasked: who asks, in which version, what, on whose behalf, with which body.
 */
export function createHandler(broker: Broker, options: HandlerOptions): Handler {
  const authenticate = authenticateWith(options);
  const platforms = options.platforms === undefined ? undefined : new Set(options.platforms);
  return (request) => {
    const requestId = requestIdOf(request);
    const tell = (given: Answer) => toWire(given, requestId, request.method);
    const refuse = (error: unknown) => {
      const told = asBrokerError(error);
      // A 4xx is the platform's business; what happened inside is the operator's.
      if (told.status >= 500 && told.cause !== undefined) {
        const path = request.url.split("?", 1)[0] ?? "";
        options.onError?.(told.cause, { method: request.method, path, requestId });
      }
      return tell(errorAnswer(told, authenticate.challenge));
    };
    try {
      const given = respond(broker, options, authenticate, platforms, request, requestId);
      return given instanceof Promise ? given.then(tell, refuse) : tell(given);
    } catch (error) {
      return refuse(error);
    }
  };
}

function authenticateWith({ credentials, authentication: options }: HandlerOptions): Authenticate {
  if (credentials === "none") return openToAll;
  return typeof credentials === "function" ? credentials : authentication(credentials, options);
}

function respond(
  broker: Broker,
  options: HandlerOptions,
  authenticate: Authenticate,
  platforms: ReadonlySet<string> | undefined,
  request: WireRequest,
  requestId: string | null,
): Answer | Promise<Answer> {
  const questionMark = request.url.indexOf("?");
  const path = questionMark < 0 ? request.url : request.url.slice(0, questionMark);
  const split = splitPlatform(path);
  const authenticated = authenticate({
    authorization: request.header("authorization"),
    platform: split?.platform ?? "",
    peer: request.peer,
  });
  const goOn = (credential: Authenticated) =>
    respondTo(credential, broker, options, platforms, request, requestId, split, questionMark);
  return typeof authenticated === "object" ? authenticated.then(goOn) : goOn(authenticated);
}

function respondTo(
  credential: Authenticated,
  broker: Broker,
  options: HandlerOptions,
  platforms: ReadonlySet<string> | undefined,
  request: WireRequest,
  requestId: string | null,
  split: ReturnType<typeof splitPlatform>,
  questionMark: number,
): Answer | Promise<Answer> {
  // Whatever was wrong, it is told in the same words.
  if (credential === undefined) throw new BrokerError("unauthorized", "valid credentials are needed");
  if (split === undefined || !isKnown(platforms, split.platform)) {
    throw new BrokerError("not-found", "there is nothing at this path");
  }
  checkVersion(broker, request.header(wireNames.version));
  const matched = matchRoute(request.method, split.rest);
  const own = options.handlers?.[matched.name];
  if (matched.name === "catalog" && own === undefined) return catalog(broker, request);
  const verb: VerbRequest = {
    caller: { platform: split.platform, credential, identity: identityOf(request), requestId },
    instance: matched.instance,
    binding: matched.binding,
    query: questionMark < 0 ? noQuery : readQuery(request.url.slice(questionMark + 1)),
    body: bodyOf(request),
  };
  if (own === undefined) return call(broker, matched, verb, request);
  return own(verb).then((given) => given ?? call(broker, matched, verb, request));
}

function call(broker: Broker, { name }: Matched, verb: VerbRequest, request: WireRequest): Answer | Promise<Answer> {
  if (name === "catalog") return catalog(broker, request);
  checkIds(verb);
  return broker.verbs[name](verb);
}

function catalog(broker: Broker, request: WireRequest): Answer {
  const { bytes, etag } = broker.catalog;
  const known = request.header("if-none-match");
  const unchanged =
    known !== undefined &&
    (known.trim() === "*" || known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag));
  return unchanged ? answer("unchanged", "", { etag }) : answer("fetched", bytes, { etag });
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
  const header = request.header(wireNames.originatingIdentity);
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

const noQuery: JsonObject = Object.freeze(Object.create(null) as JsonObject);
/** What platforms send with nearly every PUT: not worth a parser's time. */
const acceptsIncomplete: JsonObject = Object.freeze({ ...noQuery, accepts_incomplete: "true" });

/** The first of repeated parameters counts. */
function readQuery(text: string): JsonObject {
  if (text === "accepts_incomplete=true") return acceptsIncomplete;
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
  const id = request.header(wireNames.requestIdentity)?.trim();
  return id !== undefined && /^[\x20-\x7e]{1,255}$/.test(id) ? id : null;
}

function toWire({ status, body, headers }: Answer, requestId: string | null, method: string): WireResponse {
  const none = method === "HEAD" || status === 304;
  const sent = none ? "" : isText(body) ? body : JSON.stringify(body);
  // Written out, because it is done for every answer: spreading objects took a tenth of the catalog's time.
  const all: Record<string, string> = {};
  if (!none) all["content-type"] = "application/json";
  if (requestId !== null) all[wireNames.requestIdentity] = requestId;
  if (headers !== undefined) for (const name in headers) all[name] = headers[name] as string;
  return { status, headers: all, body: sent };
}

/** JSON already. */
function isText(body: object | string): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}
