import { durationPattern } from "../duration.js";
import type { Field, Fields, GroupShape, JsonValue, Shape } from "./shape.js";
import { table } from "./table.js";

type Json = { readonly [name: string]: JsonValue };

/** The settings as a JSON Schema, for editors that complete and check as one types. */
export function settingsSchema(): Json {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Settings of osbert serve",
    ...groupSchema(table, false),
  };
}

function groupSchema(fields: Fields, checkRequired: boolean): Json {
  const properties = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)] as const);
  const required = Object.entries(fields).flatMap(([name, field]) => (field.required ? [name] : []));
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    // At the top, the environment may give what the file does not.
    ...(checkRequired && required.length > 0 && { required }),
    additionalProperties: false,
  };
}

function fieldSchema(field: Field): Json {
  return {
    description: field.meaning,
    ...(field.default !== undefined && { default: field.default as JsonValue }),
    ...(field.example !== undefined && { examples: [field.example as JsonValue] }),
    ...shapeSchema(field.shape, field.optional === true),
  };
}

function shapeSchema(shape: Shape, checkRequired = true): Json {
  switch (shape.kind) {
    case "text": {
      // YAML makes numbers of versions and such; they are taken as they are written.
      const type = ["string", "number", "boolean"];
      return {
        type,
        ...(shape.pattern && { pattern: shape.pattern }),
        ...(shape.longest && { maxLength: shape.longest }),
      };
    }
    case "number":
      return { type: shape.fractions ? "number" : "integer", minimum: shape.from, maximum: shape.to };
    case "flag":
      return { type: "boolean" };
    case "choice":
      return { enum: shape.of };
    case "duration":
      return { type: "string", pattern: shape.forever ? `${durationPattern}|^forever$` : durationPattern };
    case "path":
    case "contents":
    case "image":
      return { type: "string", minLength: 1 };
    case "secret":
      return {
        anyOf: [
          { type: ["string", "number"], minLength: 1, ...(shape.pattern && { pattern: shape.pattern }) },
          onlyProperty("file"),
          onlyProperty("env"),
        ],
      };
    case "json":
      return { type: "object" };
    case "documents":
      return { type: "array", items: { type: "object" } };
    case "list":
      return { type: "array", items: shapeSchema(shape.of) };
    case "map":
      return shape.of.kind === "group" ? namedGroups(shape.of) : mapOf(shape.of);
    case "group":
      return groupSchema(shape.fields, checkRequired);
  }
}

function mapOf(shape: Shape): Json {
  return { type: "object", additionalProperties: shapeSchema(shape) };
}

/** By name, or as a list of groups that have one. */
function namedGroups(shape: GroupShape): Json {
  const name = { shape: { kind: "text" }, meaning: "Its name.", required: true } as const;
  const named = { kind: "group", fields: { name, ...shape.fields } } as const;
  return { anyOf: [mapOf(shape), { type: "array", items: shapeSchema(named) }] };
}

function onlyProperty(name: string): Json {
  return {
    type: "object",
    properties: { [name]: { type: "string", minLength: 1 } },
    required: [name],
    additionalProperties: false,
  };
}
