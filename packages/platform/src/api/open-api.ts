import type { JsonSchema } from "@osbert/server/client";
import { namedShapes } from "./answer-shapes.js";
import { type ApiRouteDescription, apiDescriptions } from "./descriptions.js";
import { apiRoutes } from "./routes.js";

/** The OpenAPI 3.1 document of the API. Everything in it comes from the table of routes and their descriptions. */
export function openApiDocument(): object {
  document ??= makeDocument();
  return document;
}

let document: object | undefined;

function makeDocument(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [method, path, name] of apiRoutes) {
    const at = path.replaceAll(/:(\w+)/g, "{$1}");
    paths[at] ??= {};
    paths[at][method.toLowerCase()] = operationOf(name, path, apiDescriptions[name]);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Osbert platform",
      version: "1",
      description:
        "Brokers, instances and bindings. Every change is an entry in a journal, queued, attributable and undoable.",
    },
    security: [{ basic: [] }, { bearer: [] }],
    paths,
    components: {
      securitySchemes: { basic: { type: "http", scheme: "basic" }, bearer: { type: "http", scheme: "bearer" } },
      schemas: {
        ...Object.fromEntries(
          Object.entries(namedShapes).map(([name, { schema }]) => [name, referring(schema, new Set([schema]))]),
        ),
        Problem: problem,
      },
    },
  };
}

function operationOf(name: string, path: string, description: ApiRouteDescription): object {
  const { summary, role, query = [], body, answer, statuses = [200], intent, control, events } = description;
  const success = {
    description: "It is so.",
    content: {
      "application/json": { schema: referring(answer.schema) },
      ...(events !== undefined && {
        "text/event-stream": {
          schema: { type: "string", description: "Events whose data is a JournalLine, as JSON." },
        },
      }),
    },
  };
  const accepted = { ...success, description: "It is kept, and will be done." };
  const parameters = [
    ...[...path.matchAll(/:(\w+)/g)].map(([, parameter = ""]) => ({
      ...{ name: parameter, in: "path", required: true },
      schema: { type: "string" },
    })),
    ...query.map((parameter) => ({ name: parameter, in: "query", schema: { type: "string" } })),
    ...(intent || control ? [headerParameter("If-Match", "The entity tag that the caller has seen.")] : []),
    ...(intent ? [headerParameter("Idempotency-Key", "The same key makes the same request once.")] : []),
    ...(events === undefined ? [] : [headerParameter("Last-Event-ID", "Where to go on with events.")]),
  ];
  return {
    operationId: name,
    summary,
    description: `Needs the role \`${role}\`.`,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, content: { "application/json": { schema: referring(body.schema) } } },
    }),
    responses: {
      ...Object.fromEntries(statuses.map((status) => [status, status === 202 ? accepted : success])),
      default: {
        description: "Why not.",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

function headerParameter(name: string, description: string): object {
  return { name, in: "header", description, schema: { type: "string" } };
}

/** As RFC 9457 has it; see api-problem.ts. */
const problem: JsonSchema = {
  type: "object",
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    code: { type: "string", description: "For programs." },
    request_id: { type: "string", description: "Stands in the log and the journal, too." },
    details: { type: "object", description: "Facts: the report of a preflight, the changes in between, the bindings." },
  },
  required: ["type", "title", "status", "detail", "code", "request_id", "details"],
};

const names = new Map<unknown, string>(Object.entries(namedShapes).map(([name, { schema }]) => [schema, name]));

/** The same schema with references in place of those that have a name. `inside`: what is not referred to, but written out. */
function referring(schema: unknown, inside: ReadonlySet<unknown> = new Set()): unknown {
  const name = names.get(schema);
  if (name !== undefined && !inside.has(schema)) return { $ref: `#/components/schemas/${name}` };
  if (Array.isArray(schema)) return schema.map((each) => referring(each));
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, referring(value)]));
}
