import type { WireResponse } from "@osbert/server";
import { compileSchema } from "@osbert/server/schemas";
import {
  type ApiRouteDescription,
  type ApiRouteName,
  apiDescriptions,
  apiRoutes,
  callersOf,
  type Grant,
  openApiDocument,
  type PlatformEndOptions,
  platformEnd,
} from "../../src/api/index.js";
import type { Platform } from "../../src/platform.js";

const user = (username: string, access: Grant["access"]): Grant =>
  ({ credential: { username, password: "secret" }, access }) as Grant;

/** Someone of every role; bob has another space. */
export const grants: readonly Grant[] = [
  user("root", { role: "operate" }),
  user("alice", { role: "change", spaces: ["team"] }),
  user("bob", { role: "change", spaces: ["other"] }),
  user("eve", { role: "see", spaces: ["team"] }),
];

export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; their form is checked against the document.
  readonly body: any;
}

export interface AskOptions {
  readonly as?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text is sent as it is. */
  readonly body?: object | string;
}

/** An API whose every answer is compared with its document. */
export function apiLab(platform: Platform, options: Partial<PlatformEndOptions> = {}) {
  const end = platformEnd(platform, { callers: callersOf(grants), ...options });
  const answered = new Set<string>();
  const send = async (method: string, url: string, { as = "alice", headers = {}, body }: AskOptions = {}) => {
    const given: Readonly<Record<string, string>> = {
      authorization: `Basic ${Buffer.from(`${as}:secret`).toString("base64")}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    };
    const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
    return end.handle({ method, url, header: (name) => given[name], body: Buffer.from(text) });
  };
  return {
    end,
    send,
    /** Routes that were answered with success. */
    answered,
    ask: async (method: string, path: string, asked?: AskOptions): Promise<Told> => {
      const response = await send(method, `/api/v1${path}`, asked);
      const text = String(response.body);
      const body: unknown = text === "" ? null : JSON.parse(text);
      const told = { status: response.status, headers: response.headers, text, body };
      const route = compare(method, `/api/v1${path}`, told, response);
      if (route !== undefined && told.status < 300) answered.add(route);
      return told;
    },
  };
}

const document = openApiDocument() as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: object;
};
interface OperationObject {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

/** Throws where an answer is not what the document says of it. Tells the name of the route. */
function compare(method: string, url: string, { status, body }: Told, { headers }: WireResponse): string | undefined {
  const path = url.split("?")[0]?.split("/") ?? [];
  const [, operations] =
    Object.entries(document.paths).find(([pattern]) => {
      const parts = pattern.split("/");
      return parts.length === path.length && parts.every((part, index) => part.startsWith("{") || part === path[index]);
    }) ?? [];
  const operation = operations?.[method.toLowerCase()];
  if (status === 304) return operation?.operationId;
  const type = String(headers["content-type"]).split(";")[0] ?? "";
  // Whatever the document does not have is answered with problem details, too.
  const responses: Partial<OperationObject["responses"]> = operation?.responses ?? {
    default: Object.values(document.paths)[0]?.get?.responses.default,
  };
  const schema = (responses[status] ?? responses.default)?.content[type]?.schema;
  if (schema === undefined) throw new Error(`${method} ${url} answered ${status} as ${type}, which the document lacks`);
  const fault = validatorOf(schema)(body);
  if (fault !== null) throw new Error(`${method} ${url} answered ${status}: ${fault}\n${JSON.stringify(body)}`);
  return operation?.operationId;
}

const validators = new Map<object, (value: unknown) => string | null>();
function validatorOf(schema: object) {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const whole = { $schema: "https://json-schema.org/draft/2020-12/schema", components: document.components, ...schema };
  const made = compileSchema(closed(whole) as never, "the answer");
  validators.set(schema, made);
  return made;
}

/** The same schema, with which every field that it does not name is a fault. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, closed(value)]));
  return "properties" in inner && inner.type === "object" ? { ...inner, additionalProperties: false } : inner;
}

/** A path of every route, and who may ask it. */
export const everyRoute = apiRoutes.map(([method, path, name]) => ({
  method,
  name: name as ApiRouteName,
  path: path.replace("/api/v1", "").replaceAll(/:(\w+)/g, "$1-1"),
  description: apiDescriptions[name] as ApiRouteDescription,
}));
