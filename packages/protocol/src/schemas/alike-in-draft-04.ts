import { isJsonObject, type Json, type JsonObject } from "../json.js";

/** Keywords that every draft has with one meaning, and that hold no schema. */
export const saysTheSame: ReadonlySet<string> = new Set([
  ...["title", "description", "default", "format", "pattern", "minLength", "maxLength"],
  ...["multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"],
]);

/**
 * Whether all of a schema is said in draft-04 as it is, whatever its draft: most schemas of parameters are, and need no translation. Only what is
 * sure is said to be; `$schema` alone is left to whoever asks. What is nested deeper than so many levels is not looked at.
 */
export function isAlikeInDraft04(schema: JsonObject, levels: number): boolean {
  if (levels === 0) return false;
  for (const keyword of Object.keys(schema))
    if (!saysTheSame.has(keyword) && !isAlike(keyword, schema[keyword] as Json, levels - 1)) return false;
  return true;
}

function isAlike(keyword: string, value: Json, levels: number): boolean {
  switch (keyword) {
    case "type":
      return true;
    // With an exclusive one beside it, which is none of these, it would depend on that.
    case "minimum":
    case "maximum":
      return typeof value === "number";
    case "enum":
      return Array.isArray(value) && areTexts(value) && new Set(value).size === value.length;
    case "required":
      return Array.isArray(value) && value.length > 0;
    case "properties":
      return isJsonObject(value) && Object.values(value).every((inner: Json) => isSchema(inner, levels - 1));
    case "additionalProperties":
      return typeof value === "boolean" || isSchema(value, levels);
    // One for all items; a list of them has another name in the newest draft.
    case "items":
      return isSchema(value, levels);
    case "anyOf":
      return Array.isArray(value) && value.every((inner: Json) => isSchema(inner, levels - 1));
    default:
      return false;
  }
}

function isSchema(value: Json, levels: number): boolean {
  return isJsonObject(value) && isAlikeInDraft04(value, levels);
}

function areTexts(values: readonly Json[]): boolean {
  return values.every((value) => typeof value === "string");
}
