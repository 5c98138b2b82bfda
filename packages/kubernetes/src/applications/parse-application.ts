import type { Finding } from "@osbert/protocol";
import type { ClusterObject } from "../cluster/cluster-object.js";
import type { ApiEntry, Application, ApplicationKind, ApplicationService, CredentialsType } from "./application.js";
import { derivedId } from "./application-id.js";
import { FieldReader, isObjectName, quoted, tell } from "./field-reader.js";

/** What became of an object that describes an application. */
export interface ParsedApplication {
  /** `null`: nothing can be made of it. */
  readonly application: Application | null;
  /** What of it was left out, or cut, and where. */
  readonly findings: readonly Finding[];
}

export interface ParseOptions {
  /** Where the Secrets of applications are. They name no other place: else whoever writes one could have any Secret handed out. */
  readonly secretNamespace: string;
}

const most = {
  services: 500,
  entries: 100,
  tags: 50,
  name: 200,
  /** Ids are labels of what is kept of instances, with room for the ending of a plan. */
  idBytes: 200,
  description: 2_000,
  longDescription: 8_000,
  schema: 32_768,
} as const;

/** Reads an application out of an object of its kind. Never throws. */
export function parseApplication(
  kind: ApplicationKind,
  object: ClusterObject,
  options: ParseOptions,
): ParsedApplication {
  const findings: Finding[] = [];
  const { name, uid = "" } = object.metadata;
  const { spec } = object;
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) {
    tell(findings, "spec", "must be an object");
    return { application: null, findings };
  }
  const fields = new FieldReader(spec, "spec", findings);
  const displayName = fields.text("displayName", most.name) ?? name;
  const application: Application = {
    ...{ name, uid, kind, displayName },
    provider: fields.text(kind === "kyma" ? "providerDisplayName" : "provider", most.name) ?? "",
    description: fields.text("description", most.description) ?? displayName,
    longDescription: fields.text("longDescription", most.longDescription),
    labels: fields.labels("labels"),
    tags: fields.texts("tags", most.tags, most.name),
    externalId: kind === "kyma" ? fields.object("compassMetadata").id("applicationId", most.idBytes) : null,
    services: parseServices(fields, findings, (service, place) =>
      kind === "kyma"
        ? kymaService(service, place, options, findings)
        : ownService(name, service, place, options, findings),
    ),
  };
  return { application: bounded(application, findings), findings };
}

/** Of two with one id, the first. */
function parseServices(
  fields: FieldReader,
  findings: Finding[],
  parse: (service: FieldReader, place: string) => ApplicationService | null,
): readonly ApplicationService[] {
  const services = new Map<string, ApplicationService>();
  for (const { value, place } of fields.items("services", most.services)) {
    const service = parse(new FieldReader(value, place, findings), place);
    if (service === null) continue;
    if (services.has(service.id))
      tell(findings, place, `has the id ${quoted(service.id)}, as one before it has: it is left out`);
    else if (!service.events && service.apis.length === 0)
      tell(findings, place, "has no API and no events: it is left out");
    else services.set(service.id, service);
  }
  return [...services.values()];
}

function kymaService(
  fields: FieldReader,
  place: string,
  options: ParseOptions,
  findings: Finding[],
): ApplicationService | null {
  const id = fields.id("id", most.idBytes);
  if (id === null) {
    fields.tell("id", "is missing: the service is left out");
    return null;
  }
  const apis: ApiEntry[] = [];
  let events = false;
  for (const { value, place: at } of fields.items("entries", most.entries)) {
    const entry = new FieldReader(value, at, findings);
    const type = entry.text("type", most.name);
    if (type === "Events") events = true;
    else if (type === "API") apis.push(kymaEntry(entry, id, apis.length, options));
    else entry.tell("type", `must be API or Events, not ${quoted(type ?? "")}: the entry is left out`);
  }
  return {
    ...described(fields, id, "providerDisplayName"),
    ...{ id, events, apis },
    parameters: parseSchema(fields.raw("authCreateParameterSchema"), `${place}.authCreateParameterSchema`, findings),
  };
}

function kymaEntry(entry: FieldReader, serviceId: string, index: number, options: ParseOptions): ApiEntry {
  const credentials = entry.object("credentials");
  return {
    id: entry.id("id", most.idBytes) ?? (index === 0 ? serviceId : `${serviceId}-${index}`),
    name: entry.text("name", most.name) ?? "",
    targetUrl: entry.url("targetUrl"),
    gatewayUrl: entry.url("gatewayUrl") ?? entry.url("centralGatewayUrl"),
    accessLabel: entry.text("accessLabel", most.name),
    credentials: parseCredentials(credentials, options, {
      tokenUrl: credentials.url("authenticationUrl"),
      csrfTokenUrl: credentials.object("csrfInfo").url("tokenEndpointURL"),
    }),
    requestParameters: secretPlace(entry, "requestParametersSecretName", options),
  };
}

/** Its id is what its author says, or of the names of application and service, which then must not be changed. */
function ownService(
  application: string,
  fields: FieldReader,
  at: string,
  options: ParseOptions,
  findings: Finding[],
): ApplicationService | null {
  const name = fields.text("name", most.name);
  if (name === null) {
    fields.tell("name", "is missing: the service is left out");
    return null;
  }
  const id = fields.id("id", most.idBytes) ?? derivedId("service", application, name);
  const apis = fields.items("apis", most.entries).map(({ value, place }, index) => {
    const entry = new FieldReader(value, place, findings);
    return ownEntry(entry, id, index, options);
  });
  return {
    ...described(fields, id, "provider"),
    ...{ id, events: fields.flag("events"), apis },
    ...readinessOf(fields),
    parameters: parseSchema(fields.raw("parameters"), `${at}.parameters`, findings),
  };
}

function readinessOf(fields: FieldReader): Pick<ApplicationService, "readiness"> {
  const readiness = fields.text("readiness", most.name);
  if (readiness === "required" || readiness === "eventual") return { readiness };
  if (readiness !== null)
    fields.tell("readiness", `must be required or eventual, not ${quoted(readiness)}: it is left out`);
  return {};
}

function ownEntry(entry: FieldReader, serviceId: string, index: number, options: ParseOptions): ApiEntry {
  const credentials = entry.object("credentials");
  const name = entry.text("name", most.name) ?? "";
  return {
    id: entry.id("id", most.idBytes) ?? (name === "" ? `${serviceId}-${index}` : derivedId("api", serviceId, name)),
    name,
    targetUrl: entry.url("targetUrl"),
    gatewayUrl: entry.url("gatewayUrl"),
    accessLabel: null,
    credentials: parseCredentials(credentials, options, {
      tokenUrl: credentials.url("tokenUrl"),
      csrfTokenUrl: credentials.url("csrfTokenUrl"),
    }),
    requestParameters: secretPlace(entry, "requestParametersSecretName", options),
  };
}

function described(fields: FieldReader, id: string, provider: string) {
  const name = fields.text("name", most.name) ?? id;
  const displayName = fields.text("displayName", most.name) ?? name;
  return {
    ...{ name, displayName },
    description: fields.text("description", most.description) ?? displayName,
    provider: fields.text(provider, most.name),
    longDescription: fields.text("longDescription", most.longDescription),
    labels: fields.labels("labels"),
    tags: fields.texts("tags", most.tags, most.name),
  };
}

const typesByName: Readonly<Record<string, CredentialsType>> = {
  basic: "basic",
  oauth: "oauth",
  certificategen: "certificate",
  certificate: "certificate",
};

function parseCredentials(
  fields: FieldReader,
  options: ParseOptions,
  urls: Pick<NonNullable<ApiEntry["credentials"]>, "tokenUrl" | "csrfTokenUrl">,
): ApiEntry["credentials"] {
  const given = fields.text("type", most.name);
  const secret = secretPlace(fields, "secretName", options);
  if (given === null && secret === null) return null;
  const type = Object.hasOwn(typesByName, given?.toLowerCase() ?? "")
    ? typesByName[given?.toLowerCase() ?? ""]
    : undefined;
  if (type === undefined) {
    fields.tell("type", `must be Basic, OAuth or CertificateGen, not ${quoted(given ?? "")}`);
    return null;
  }
  if (secret === null) {
    fields.tell("secretName", "is missing");
    return null;
  }
  return { type, secret, ...urls };
}

function secretPlace(fields: FieldReader, field: string, { secretNamespace }: ParseOptions) {
  const name = fields.id(field, 253);
  if (name === null) return null;
  if (isObjectName(name)) return { namespace: secretNamespace, name };
  fields.tell(field, `is no name of a Secret: ${quoted(name)}`);
  return null;
}

/** A JSON Schema, as an object or as its text. */
function parseSchema(value: unknown, place: string, findings: Finding[]): ApplicationService["parameters"] {
  if (value === undefined || value === null || value === "") return null;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length > most.schema) {
    tell(findings, place, `is longer than ${most.schema} characters, and is left out`);
    return null;
  }
  try {
    const schema: unknown = JSON.parse(text);
    if (typeof schema === "object" && schema !== null && !Array.isArray(schema))
      return schema as Readonly<Record<string, unknown>>;
  } catch {
    // Told below.
  }
  tell(findings, place, "must be a JSON Schema, an object");
  return null;
}

/** What the journal keeps of one application. */
const mostBytes = 786_432;

function bounded(application: Application, findings: Finding[]): Application {
  if (Buffer.byteLength(JSON.stringify(application)) <= mostBytes) return application;
  tell(findings, "spec", "is too large: long descriptions are left out, and services behind the first hundred");
  const short = { longDescription: null, labels: {}, tags: [], parameters: null };
  const services = application.services
    .slice(0, 100)
    .map((service) => ({ ...service, ...short, apis: service.apis.slice(0, 10) }));
  return { ...application, longDescription: null, services };
}
