import { isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import { plainJson } from "./plain-text.js";

/** A parameter as a person reads it in a schema. */
export interface SchemaParameter {
  /** With dots between the names of nested ones, as `-p` takes them. */
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

const deepest = 4;
const most = 200;

/** What a schema says of its properties. It is read for people, not enforced: references and conditions are left out. */
export function schemaParameters(schema: unknown): readonly SchemaParameter[] {
  return propertiesOf(schema, [], true).slice(0, most);
}

function propertiesOf(schema: unknown, path: readonly string[], parentRequired: boolean): SchemaParameter[] {
  if (!isJsonObject(schema) || !isJsonObject(schema.properties) || path.length >= deepest) return [];
  const needed: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties)
    .slice(0, most)
    .flatMap(([name, property]) => {
      const own = [...path, name];
      const required = parentRequired && needed.includes(name);
      const nested = propertiesOf(property, own, required);
      if (nested.length > 0) return nested;
      const facts = isJsonObject(property) ? property : {};
      const shown = own.map((part) => part.replaceAll(".", "\\.")).join(".");
      return [{ name: shown, type: typeOf(facts), required, description: descriptionOf(facts) }];
    });
}

function typeOf(facts: JsonObject): string {
  if (Array.isArray(facts.enum)) return (facts.enum as readonly Json[]).slice(0, 20).map(short).join(" | ");
  if (facts.const !== undefined) return short(facts.const);
  if (Array.isArray(facts.type)) return facts.type.filter((type) => typeof type === "string").join(" | ");
  const type = typeof facts.type === "string" ? facts.type : "any";
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = facts;
  // Of draft-04, the flags say that the bound itself is excluded.
  const from = typeof minimum === "number" ? ` ${exclusiveMinimum === true ? "above" : "from"} ${minimum}` : "";
  const to = typeof maximum === "number" ? ` ${exclusiveMaximum === true ? "below" : "to"} ${maximum}` : "";
  return `${type}${from}${to}`;
}

function descriptionOf(facts: JsonObject): string {
  const said =
    typeof facts.description === "string" ? facts.description : typeof facts.title === "string" ? facts.title : "";
  return facts.default === undefined ? said : `${said}${said === "" ? "" : " "}(default ${short(facts.default)})`;
}

function short(value: Json): string {
  return plainJson(value, 0).slice(0, 60);
}
