import { type Api, authenticated, type JsonBody, largestBody, readJsonBody, type WireRequest } from "@osbert/server";
import type { Authenticate } from "@osbert/server/authentication";
import type { JsonSchema } from "@osbert/server/client";
import { PlatformError } from "../errors.js";
import type { Platform } from "../platform.js";
import { type Access, checkAccess } from "./access.js";
import { checkPath, invalid } from "./api-request.js";
import { type ApiRouteDescription, apiDescriptions } from "./descriptions.js";
import { endpoints } from "./endpoints.js";
import type { EventStreams } from "./event-stream.js";
import { apiRouteTable, isApiPath } from "./routes.js";
import type { SeenApiRequest } from "./seen-api-request.js";

export interface PlatformApiOptions {
  readonly platform: Platform;
  readonly authenticate: Authenticate;
  /** What someone may do who was let in with this name and header. `undefined`: nothing at all. */
  readonly accessOf: (name: string, authorization: string | undefined) => Access | undefined;
  readonly streams: EventStreams;
}

/**
 * The API under /api/v1. In this order, so that nobody learns anything unasked: who asks, what, whether they have that space and may do it, with
 * which body.
 */
export function platformApi({ platform, authenticate, accessOf, streams }: PlatformApiOptions): Api<SeenApiRequest> {
  return {
    owns: isApiPath,
    knows: authenticate.knows,
    respond(request, { path, requestId, seen, knowsAnywhere }) {
      return authenticated(authenticate, request, { platform: "", seen, knowsAnywhere }, async (name) => {
        const matched = apiRouteTable.match(request.method, path);
        seen?.matched(matched);
        const access = accessOf(name, request.header("authorization"));
        if (access === undefined) throw new PlatformError("forbidden", "this name has no role on this platform");
        const caller = { name, access };
        const description: ApiRouteDescription = apiDescriptions[matched.name];
        checkAccess(caller, description.role, matched.space);
        checkPath(matched);
        const query = queryOf(request.url.slice(path.length + 1), description.query ?? []);
        const body = description.body === undefined ? noBody : await readBody(request, description.body);
        const header = (field: string) => request.header(field);
        const trace = seen?.trace ?? null;
        return endpoints[matched.name]({
          ...{ platform, streams, matched, caller, query, header, body, requestId, trace },
        });
      });
    },
  };
}

const noBody: JsonBody = { value: {}, text: "{}" };

/** A name that nobody reads was meant to be something: a filter that is misspelt would mean all. */
function queryOf(text: string, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams(text);
  for (const name of query.keys())
    if (!names.includes(name))
      throw invalid(names.length === 0 ? "this takes no query" : `the query may have ${names.join(", ")}`);
  return query;
}

async function readBody(request: WireRequest, shape: NonNullable<ApiRouteDescription["body"]>): Promise<JsonBody> {
  // A browser sends a form, plain text or nothing to any server without asking it; JSON it does not.
  if (request.header("content-type") === undefined)
    throw invalid("the body must be JSON: send it with Content-Type application/json");
  const body = await readJsonBody(request, largestBody);
  shape(body.value);
  // Likewise: a policy that is misspelt must not be passed over.
  const strange = strangeName(shape.schema, body.value);
  if (strange !== undefined) throw invalid(strange);
  return body;
}

/** What is wrong with the names in a body, of which the described ones have been looked at. Objects without described names may have any. */
function strangeName({ properties }: JsonSchema, value: unknown, path = "the body"): string | undefined {
  if (!isObject(properties) || !isObject(value)) return undefined;
  const known = Object.keys(properties);
  for (const [name, member] of Object.entries(value)) {
    if (!known.includes(name))
      return known.length === 0 ? `${path} must be {}` : `${path} may have ${known.join(", ")}`;
    const strange = strangeName(properties[name] as JsonSchema, member, name);
    if (strange !== undefined) return strange;
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
