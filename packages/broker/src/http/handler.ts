import {
  type ApiVersion,
  BrokerError,
  headerNames,
  isSupported,
  type JsonObject,
  parseApiVersion,
  parseOriginatingIdentity,
} from "@osbert/protocol";
import { type AdminOptions, adminEndpoints } from "../admin/endpoints.js";
import { isAdminPath } from "../admin/routes.js";
import type { Broker } from "../broker.js";
import { type Answer, answer, errorAnswer } from "../endpoints/answer.js";
import { asBrokerError } from "../endpoints/as-broker-error.js";
import type { Caller } from "../endpoints/caller.js";
import type { VerbRequest } from "../endpoints/endpoint.js";

import { type SeenRequest, watched } from "../observe/seen-request.js";
import { checkId } from "../records/ids.js";
import type { Authenticate, Authenticated } from "./authentication/authenticate.js";
import { type AuthenticationOptions, authentication, openToAll } from "./authentication/authentication.js";
import type { Credential } from "./authentication/credential.js";
import { refusedCaller } from "./authentication/refused-caller.js";
import { type Page, type PagesOptions, pagesOf } from "./pages.js";
import { readJsonObject } from "./read-json.js";
import { requestIdentity, requestIdentityHeader } from "./request-identity.js";
import { type Matched, matchRoute, type RouteName, splitPlatform } from "./routes.js";
import type { WireRequest, WireResponse } from "./wire.js";

/** Answers a request alone, instead of what the broker would do. `undefined`: it does not want to, after all. */
export type OwnHandler = (request: VerbRequest) => Promise<Answer | undefined>;

/** Who may ask, under which paths, and what is answered besides the API. */
export interface HandlerOptions extends PagesOptions {
  /** Who may ask; or a function that says who asks. `"none"`: anyone; only where something in front of the broker authenticates. */
  readonly credentials: readonly Credential[] | Authenticate | "none";
  /** How guessing is slowed down, and who is told. */
  readonly authentication?: AuthenticationOptions;
  /** Platforms whose ids are kept apart, each under `/{platform}/v2/…`. Without any, the API is at `/v2/…`. */
  readonly platforms?: readonly string[];
  /** Endpoints that the author answers alone. */
  readonly handlers?: Readonly<Partial<Record<RouteName, OwnHandler>>>;
  /** The admin API at `/admin/v1/…`, for credentials of its own. Without it there is none. */
  readonly admin?: AdminOptions;
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
} as const;

/** Bodies beyond this are refused; nothing of them is kept. */
export const largestBody = 1_048_576;

/**
 * The whole wire without a server: every adapter hands its requests to this function. In this order, so that nobody learns anything
 * unasked: who asks, in which version, what, on whose behalf, with which body.
 */
export function createHandler(broker: Broker, options: HandlerOptions): Handler {
  const authenticate = authenticateWith(options);
  const platforms = options.platforms === undefined ? undefined : new Set(options.platforms);
  const wiring: Wiring = { broker, options, authenticate, platforms, pages: pagesOf(broker, options) };
  const admin = options.admin && adminEndpoints(() => broker.operator, options.admin, options);
  const handle = (request: WireRequest, requestId: string, seen?: SeenRequest) => {
    const tell = (given: Answer) => {
      const told = toWire(given, requestId, request.method);
      seen?.answered(given.status, given.body);
      return told;
    };
    const refuse = (error: unknown) => {
      const told = asBrokerError(error);
      seen?.refused(told);
      // A 4xx is the platform's business; what happened inside is the operator's.
      if (told.status >= 500 && told.cause !== undefined) {
        const path = request.url.split("?", 1)[0] ?? "";
        try {
          options.onError?.(told.cause, { method: request.method, path, requestId });
        } catch {
          // There is nobody else to tell, and the platform is still to be answered.
        }
      }
      return tell(errorAnswer(told, authenticate.challenge));
    };
    const tellOrRefuse = (given: Answer) => {
      try {
        return tell(given);
      } catch (error) {
        // What an author's own handler gave cannot be written as JSON.
        return refuse(error);
      }
    };
    try {
      checkAuthorization(request);
      const given =
        admin !== undefined && isAdminPath(pathOf(request))
          ? admin(request, requestId, seen)
          : respond(wiring, request, requestId, seen);
      return given instanceof Promise ? given.then(tellOrRefuse, refuse) : tell(given);
    } catch (error) {
      return refuse(error);
    }
  };
  const { watch } = broker;
  const identityOfRequest = ({ header }: WireRequest) => requestIdentity(header(requestIdentityHeader));
  if (watch === undefined) return (request) => handle(request, identityOfRequest(request));
  return (request) => {
    const requestId = identityOfRequest(request);
    return watched(watch, request, requestId, (seen) => handle(request, requestId, seen));
  };
}

function authenticateWith({ credentials, authentication: options }: HandlerOptions): Authenticate {
  if (credentials === "none") return openToAll;
  return typeof credentials === "function" ? credentials : authentication(credentials, options);
}

/** What every request meets. */
interface Wiring {
  readonly broker: Broker;
  readonly options: HandlerOptions;
  readonly authenticate: Authenticate;
  readonly platforms: ReadonlySet<string> | undefined;
  readonly pages: ReadonlyMap<string, Page>;
}

/** A request on its way. */
interface Incoming {
  readonly request: WireRequest;
  readonly requestId: string;
  readonly seen: SeenRequest | undefined;
  /** `undefined`: it is no path of the API. */
  readonly split: ReturnType<typeof splitPlatform>;
  readonly questionMark: number;
}

function respond(
  wiring: Wiring,
  request: WireRequest,
  requestId: string,
  seen: SeenRequest | undefined,
): Answer | Promise<Answer> {
  const questionMark = request.url.indexOf("?");
  const path = questionMark < 0 ? request.url : request.url.slice(0, questionMark);
  const split = splitPlatform(path);
  const incoming = { request, requestId, seen, split, questionMark };
  const page = split === undefined ? wiring.pages.get(path) : undefined;
  if (page !== undefined) return readPage(page, wiring, incoming);
  return authenticated(wiring, incoming, (credential) => respondTo(credential, wiring, incoming));
}

/** Goes on with who asks. Waits only where finding that out takes work. */
function authenticated(
  { authenticate }: Wiring,
  { request, seen, split }: Incoming,
  goOn: (credential: string) => Answer | Promise<Answer>,
  page?: Page,
): Answer | Promise<Answer> {
  const platform = split?.platform ?? "";
  const knows = (username: string) => page?.knows(username) === true || authenticate.knows?.(username) === true;
  seen?.authenticating(() => refusedCaller(request, knows));
  const judge = (credential: Authenticated) => {
    // Whatever was wrong, it is told in the same words.
    if (credential === undefined) throw new BrokerError("unauthorized", "valid credentials are needed");
    seen?.authenticated(credential, platform);
    return goOn(credential);
  };
  const given = authenticate({ authorization: request.header("authorization"), platform, peer: request.peer });
  return typeof given === "object" ? given.then(judge) : judge(given);
}

async function readPage(page: Page, wiring: Wiring, incoming: Incoming): Promise<Answer> {
  const { request, seen } = incoming;
  seen?.matched(page);
  // Finding out whether they may can end in a refusal, too.
  seen?.authenticating(() => refusedCaller(request, (username) => page.knows(username)));
  if (await page.mayRead(request)) return page.answer(request.method);
  return authenticated(wiring, incoming, () => page.answer(request.method), page);
}

function respondTo(credential: string, wiring: Wiring, incoming: Incoming): Answer | Promise<Answer> {
  const { broker, options, platforms } = wiring;
  const { request, requestId, seen, split, questionMark } = incoming;
  if (split === undefined || !isKnown(platforms, split.platform)) {
    throw new BrokerError("not-found", "there is nothing at this path");
  }
  const apiVersion = versionOf(broker, request.header(wireNames.version));
  const matched = matchRoute(request.method, split.rest);
  seen?.matched(matched);
  const own = options.handlers?.[matched.name];
  if (matched.name === "catalog" && own === undefined) return catalog(broker, request);
  const asked: Omit<VerbRequest, "body"> = {
    caller: {
      platform: split.platform,
      credential,
      identity: identityOf(request),
      requestId,
      apiVersion,
      trace: seen?.trace ?? null,
    },
    instance: matched.instance,
    binding: matched.binding,
    query: questionMark < 0 ? noQuery : readQuery(request.url.slice(questionMark + 1)),
  };
  const goOn = (body: JsonObject) => {
    const verb: VerbRequest = { ...asked, body };
    seen?.asked(verb.body, verb.query);
    if (own === undefined) return call(broker, matched, verb, request);
    return own(verb).then((given) => given ?? call(broker, matched, verb, request));
  };
  const hasBody = request.method === "PUT" || request.method === "PATCH";
  return hasBody ? readJsonObject(request, largestBody).then(goOn) : goOn({});
}

/**
 * Whoever stands in front of the broker and the broker itself might each look at another one of several. Neither scheme's value has a
 * comma in it, which is what stands between the values of a header that was sent twice.
 */
function checkAuthorization({ header }: WireRequest): void {
  if (/^(?:basic|bearer)\s[^,]*,/i.test(header("authorization") ?? ""))
    throw new BrokerError("bad-request", "the header Authorization must be sent once, with one value");
}

function pathOf({ url }: WireRequest): string {
  return url.split("?", 1)[0] ?? "";
}

function call(broker: Broker, { name }: Matched, verb: VerbRequest, request: WireRequest): Answer | Promise<Answer> {
  if (name === "catalog") return catalog(broker, request);
  checkIds(verb);
  return broker.endpoints[name](verb);
}

function catalog(broker: Broker, request: WireRequest): Answer {
  const { bytes, etag } = broker.catalog;
  const known = request.header("if-none-match");
  const unchanged =
    known !== undefined &&
    (known.trim() === "*" || known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag));
  return unchanged ? answer("unchanged", "", { etag }) : answer("fetched", bytes, { etag });
}

function versionOf({ minimumApiVersion }: Broker, header: string | undefined): ApiVersion {
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
  return version;
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

function checkIds({ instance, binding, caller }: VerbRequest): void {
  checkId(instance, "instance_id");
  checkId(binding, "binding_id");
  checkId(caller.platform, "the platform");
}

function toWire({ status, body, headers }: Answer, requestId: string, method: string): WireResponse {
  const none = method === "HEAD" || status === 304;
  const sent = none ? "" : isText(body) ? body : JSON.stringify(body);
  // Written out, because it is done for every answer: spreading objects took a tenth of the catalog's time.
  const all: Record<string, string> = {};
  if (!none) all["content-type"] = "application/json";
  all[requestIdentityHeader] = requestId;
  if (headers !== undefined) for (const name in headers) all[name] = headers[name] as string;
  return { status, headers: all, body: sent };
}

/** JSON already. */
function isText(body: object | string): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === "string" || body instanceof Uint8Array;
}
