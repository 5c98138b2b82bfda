import {
  type ApiVersion,
  BrokerError,
  headerNames,
  isSupported,
  type JsonObject,
  parseApiVersion,
  parseOriginatingIdentity,
} from "@osbert/protocol";
import {
  type Answer,
  type Api,
  type Arrived,
  authenticated,
  largestBody,
  readJsonObject,
  type WireRequest,
} from "@osbert/server";
import type { Authenticate } from "@osbert/server/authentication";
import type { Broker } from "../broker.js";
import type { PublishedCatalog } from "../catalog/audience-catalogs.js";
import type { Audience } from "../catalog/service-source.js";
import { answer } from "../endpoints/answer.js";
import type { Caller } from "../endpoints/caller.js";
import type { VerbRequest } from "../endpoints/endpoint.js";
import { checkId } from "../records/ids.js";
import { type OsbRoute, osbRoutes, type RouteName, splitPlatform } from "./routes.js";
import type { SeenOsbRequest } from "./seen-osb-request.js";

/** Answers a request alone, instead of what the broker would do. `undefined`: it does not want to, after all. */
export type OwnHandler = (request: VerbRequest) => Promise<Answer | undefined>;

/** What is asked for under which paths. */
export interface OsbApiOptions {
  /**
   * Platforms whose ids are kept apart, each under `/{platform}/v2/…`; or, where they come and go, a function that says whether there is one now.
   * Default: as the source of the services says, if it has an audience; else the API is at `/v2/…`.
   */
  readonly platforms?: readonly string[] | ((platform: string) => boolean | Promise<boolean>);
  /** Endpoints that the author answers alone. */
  readonly handlers?: Readonly<Partial<Record<RouteName, OwnHandler>>>;
}

const wireNames = {
  version: headerNames.version.toLowerCase(),
  originatingIdentity: headerNames.originatingIdentity.toLowerCase(),
} as const;

/**
 * The Open Service Broker API, at every path that no other API has. In this order, so that nobody learns anything unasked: who asks, in
 * which version, what, on whose behalf, with which body.
 */
export function osbApi(broker: Broker, authenticate: Authenticate, options: OsbApiOptions): Api<SeenOsbRequest> {
  const hasPlatform = platformCheck(broker, options);
  const wiring: Wiring = { broker, options, versionOf: versionReader(broker) };
  return {
    owns: () => true,
    knows: authenticate.knows,
    respond(request, arrived) {
      const split = splitPlatform(arrived.path);
      const { seen, knowsAnywhere } = arrived;
      const told = { platform: split?.platform ?? "", seen, knowsAnywhere };
      return authenticated(authenticate, request, told, (credential) => {
        const goOn = (isThere: boolean) => {
          if (split === undefined || !isThere) throw new BrokerError("not-found", "there is nothing at this path");
          return respondTo(credential, wiring, request, arrived, split);
        };
        const isThere = split !== undefined && hasPlatform(split.platform);
        return typeof isThere === "boolean" ? goOn(isThere) : isThere.then(goOn);
      });
    },
  };
}

/** What every request meets. */
interface Wiring {
  readonly broker: Broker;
  readonly options: OsbApiOptions;
  /** By the header. Throws where it cannot be answered in that version. */
  readonly versionOf: (header: string | undefined) => ApiVersion;
}

function respondTo(
  credential: string,
  wiring: Wiring,
  request: WireRequest,
  { path, requestId, seen }: Arrived<SeenOsbRequest>,
  { platform, rest }: { readonly platform: string; readonly rest: string },
): Answer | Promise<Answer> {
  const { broker, options } = wiring;
  const apiVersion = wiring.versionOf(request.header(wireNames.version));
  const matched = osbRoutes.match(request.method, rest);
  seen?.matched(matched);
  const own = options.handlers?.[matched.name];
  if (matched.name === "catalog" && own === undefined) return catalog(broker, platform, request);
  const { instance, binding } = matched;
  const identity = identityOf(request);
  const caller = { platform, credential, identity, requestId, apiVersion, trace: seen?.trace ?? null };
  const query = path.length === request.url.length ? noQuery : readQuery(request.url.slice(path.length + 1));
  const goOn = (body: JsonObject) => {
    const verb: VerbRequest = { caller, instance, binding, query, body };
    seen?.asked(body, query);
    if (own === undefined) return call(broker, matched, verb, request);
    return own(verb).then((given) => given ?? call(broker, matched, verb, request));
  };
  const hasBody = request.method === "PUT" || request.method === "PATCH";
  return hasBody ? readJsonObject(request, largestBody).then(goOn) : goOn({});
}

function call(broker: Broker, { name }: OsbRoute, verb: VerbRequest, request: WireRequest): Answer | Promise<Answer> {
  if (name === "catalog") return catalog(broker, verb.caller.platform, request);
  checkIds(verb);
  return broker.endpoints[name](verb);
}

function catalog(broker: Broker, platform: string, request: WireRequest): Answer {
  const catalog = broker.catalogFor(platform);
  const { etag } = catalog;
  const headers = catalogHeaders(catalog);
  const known = request.header("if-none-match");
  const unchanged =
    known !== undefined &&
    (known.trim() === "*" || known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag));
  return unchanged ? answer("unchanged", "", headers) : answer("fetched", catalog.pieces, headers);
}

const headersOf = new WeakMap<PublishedCatalog, Readonly<Record<string, string>>>();

/** Written once for each catalog: it is asked for more often than anything else. */
function catalogHeaders(catalog: PublishedCatalog): Readonly<Record<string, string>> {
  let headers = headersOf.get(catalog);
  if (headers === undefined) {
    headers = toCatalogHeaders(catalog);
    headersOf.set(catalog, headers);
  }
  return headers;
}

function toCatalogHeaders({ etag, changedAt }: PublishedCatalog): Readonly<Record<string, string>> {
  return {
    etag,
    // Without it, a cache may take what has not changed for long as fresh for a tenth of that time, and not ask.
    "cache-control": "no-cache",
    // What a cache keeps for one caller is not for another one.
    vary: "Authorization",
    ...(changedAt !== null && { "last-modified": new Date(changedAt).toUTCString() }),
  };
}

/** A platform sends the same version with all its requests: it is read again only when another one comes. */
function versionReader(broker: Broker): Wiring["versionOf"] {
  let last: { readonly header: string | undefined; readonly version: ApiVersion } | undefined;
  return (header) => {
    if (last === undefined || last.header !== header) last = { header, version: readVersion(broker, header) };
    return last.version;
  };
}

function readVersion({ minimumApiVersion }: Broker, header: string | undefined): ApiVersion {
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

function platformCheck({ audience }: Broker, { platforms }: OsbApiOptions): Audience["has"] {
  if (typeof platforms === "function") return platforms;
  if (platforms === undefined && audience !== undefined) return (platform) => audience.has(platform);
  const known = new Set(platforms ?? [""]);
  return (platform) => known.has(platform);
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
