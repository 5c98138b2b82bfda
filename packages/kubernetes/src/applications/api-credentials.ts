import type { JsonObject } from "@osbert/protocol";
import type { ApiEntry, Application, ApplicationService, SecretPlace } from "./application.js";
import type { Revision } from "./offer-applications.js";

/** What a Secret holds, decoded. */
export type SecretData = Readonly<Record<string, string>>;

/** Where the gateway to an API is, for a namespace. `null`: there is none. */
export type GatewayUrl = (asked: {
  readonly namespace: string;
  readonly application: Application;
  readonly service: ApplicationService;
  readonly api: ApiEntry;
}) => string | null;

/** As the application itself says. */
export const declaredGateway: GatewayUrl = ({ api }) => api.gatewayUrl;

export interface ApiCredentialsInput {
  readonly namespace: string;
  readonly application: Application;
  readonly service: ApplicationService;
  readonly revision: Revision;
  readonly gateway: GatewayUrl;
  readonly secret: (place: SecretPlace) => SecretData;
}

/** The Secrets that a binding is made of, each once. */
export function secretsOf({ apis }: ApplicationService, revision: Revision): readonly SecretPlace[] {
  // The gateway itself knew them then.
  if (revision === "services-1") return [];
  const places = new Map<string, SecretPlace>();
  for (const { credentials, requestParameters } of apis)
    for (const place of [credentials?.secret, requestParameters])
      if (place != null) places.set(`${place.namespace}/${place.name}`, place);
  return [...places.values()];
}

/**
 * What a binding to the APIs of a service gives, as Kyma's application broker gave it. Of services, the gateway's address. Of applications, and of
 * Osbert's own kind: how callers prove who they are (`CREDENTIALS_TYPE`, `CONFIGURATION`), and for each API where its gateway and itself are; an API that
 * wants something else than the first has that under names of its own. `null`: no gateway leads to it.
 */
export function apiCredentials(input: ApiCredentialsInput): JsonObject | null {
  const { service, revision, gateway, ...rest } = input;
  const urlOf = (api: ApiEntry) => gateway({ ...rest, service, api });
  if (revision === "services-1") {
    const [api] = service.apis;
    const url = api === undefined ? null : urlOf(api);
    return url === null ? null : { GATEWAY_URL: url };
  }
  const given: Record<string, string> = {};
  const common = configurationOf(service.apis[0], input);
  given.CREDENTIALS_TYPE = common.type;
  given.CONFIGURATION = common.configuration;
  const prefixes = new Set<string>();
  for (const api of service.apis) {
    const prefix = prefixOf(api, prefixes);
    const gatewayUrl = urlOf(api);
    if (gatewayUrl !== null) given[`${prefix}_GATEWAY_URL`] = gatewayUrl;
    if (api.targetUrl !== null) given[`${prefix}_TARGET_URL`] = api.targetUrl;
    const own = configurationOf(api, input);
    if (own.type !== common.type || own.configuration !== common.configuration) {
      given[`${prefix}_CREDENTIALS_TYPE`] = own.type;
      given[`${prefix}_CONFIGURATION`] = own.configuration;
    }
  }
  return given;
}

/** Keys that the Secret of a type has. */
const keysOf = {
  basic: ["username", "password"],
  oauth: ["clientId", "clientSecret"],
  certificate: ["crt", "key"],
} as const;

function configurationOf(api: ApiEntry | undefined, { secret }: ApiCredentialsInput) {
  const { credentials = null, requestParameters = null } = api ?? {};
  const data = credentials === null ? {} : secret(credentials.secret);
  const keys = credentials === null ? [] : keysOf[credentials.type];
  const pairs = keys.flatMap((key) => (Object.hasOwn(data, key) ? [[key, data[key] ?? ""] as const] : []));
  const more = requestParameters === null ? {} : secret(requestParameters);
  const [headers, queryParameters] = [pairsOf(more, "headers"), pairsOf(more, "queryParameters")];
  const configuration = {
    credentials: {
      ...Object.fromEntries(pairs),
      ...(credentials?.tokenUrl != null && { tokenUrl: credentials.tokenUrl }),
    },
    ...(credentials?.csrfTokenUrl != null && { csrfConfig: { tokenUrl: credentials.csrfTokenUrl } }),
    ...((headers !== null || queryParameters !== null) && {
      requestParameters: { ...(headers !== null && { headers }), ...(queryParameters !== null && { queryParameters }) },
    }),
  };
  return { type: credentials === null ? "noauth" : credentials.type, configuration: JSON.stringify(configuration) };
}

/** Names and lists of values, as JSON in the Secret. What is none is left out. */
function pairsOf(data: SecretData, key: string): JsonObject | null {
  try {
    const value: unknown = Object.hasOwn(data, key) ? JSON.parse(data[key] ?? "") : null;
    return typeof value === "object" && !Array.isArray(value) ? (value as JsonObject | null) : null;
  } catch {
    return null;
  }
}

/** A name that an environment can have: letters, digits and underscores, and no digit first. Of two that would be the same, the second has a number. */
function prefixOf({ name, id }: ApiEntry, taken: Set<string>): string {
  const words = name
    .replace(/[^A-Za-z0-9_\s]+/g, "")
    .trim()
    .replace(/^[0-9]+/, "")
    .trim()
    .replace(/\s+/g, "_");
  const suffix = id.replace(/-+/g, "_").replace(/[^A-Za-z0-9_]+/g, "");
  const prefix = `${words === "" ? "API" : words}_${suffix}`.toUpperCase();
  let unique = prefix;
  for (let number = 2; taken.has(unique); number++) unique = `${prefix}_${number}`;
  taken.add(unique);
  return unique;
}
