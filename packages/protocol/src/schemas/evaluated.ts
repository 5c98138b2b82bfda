import { isJsonObject, type Json } from "../json.js";
import type { Place, SchemaDocument } from "./schema-document.js";

/**
 * What `unevaluatedProperties` and `unevaluatedItems` of a schema leave alone: what the schema itself and all that applies to the same
 * value looks at. `sure`: in any case. `unsure`: only if a branch of `anyOf`, `if` and the like fits.
 */
export interface Evaluated {
  readonly sure: Looked;
  readonly unsure: Looked;
  /** Something in it cannot be foreseen, such as a reference that depends on where one comes from. */
  readonly unknown: { properties: boolean; items: boolean };
}

interface Looked {
  readonly names: Set<string>;
  readonly patterns: Set<string>;
  /** So many items from the beginning. */
  items: number;
  allProperties: boolean;
  allItems: boolean;
}

/** Looks at a schema of 2019-09 or 2020-12, as if it had no `unevaluatedProperties` and `unevaluatedItems` of its own. */
export function evaluatedBy(document: SchemaDocument, place: Place): Evaluated {
  const evaluated: Evaluated = { sure: nothing(), unsure: nothing(), unknown: { properties: false, items: false } };
  const isTuple = document.draft !== 2020;
  const seen = new Set<string>();

  const look = (at: Place, isSure: boolean, isOutermost: boolean): void => {
    const mark = `${isSure}${at.pointer}`;
    if (!isJsonObject(at.value) || seen.has(mark)) return;
    seen.add(mark);
    const schema = at.value;
    const looked = isSure ? evaluated.sure : evaluated.unsure;
    for (const name of keysOf(schema.properties)) looked.names.add(name);
    for (const pattern of keysOf(schema.patternProperties)) looked.patterns.add(pattern);
    if (schema.additionalProperties !== undefined) looked.allProperties = true;
    const { items, prefixItems, additionalItems } = schema;
    const tuple = isTuple ? items : prefixItems;
    if (Array.isArray(tuple)) looked.items = Math.max(looked.items, tuple.length);
    const rest = isTuple && Array.isArray(items) ? additionalItems : items;
    if (rest !== undefined && !Array.isArray(rest)) looked.allItems = true;
    if (!isOutermost) {
      if (schema.unevaluatedProperties !== undefined) looked.allProperties = true;
      if (schema.unevaluatedItems !== undefined) looked.allItems = true;
    }
    // Validators differ in whether an item that `contains` found has been looked at.
    if (schema.contains !== undefined) evaluated.unknown.items = true;
    if (schema.$dynamicRef !== undefined || schema.$recursiveRef !== undefined) {
      evaluated.unknown.properties = true;
      evaluated.unknown.items = true;
    }
    if (typeof schema.$ref === "string") {
      const target = document.target(schema.$ref, at);
      if (target !== undefined) look(target, isSure, false);
    }
    for (const index of keysOf(schema.allOf)) look(document.inside(at, "allOf", index), isSure, false);
    for (const keyword of ["anyOf", "oneOf", "dependentSchemas", "dependencies"]) {
      for (const name of keysOf(schema[keyword])) look(document.inside(at, keyword, name), false, false);
    }
    for (const keyword of ["if", "then", "else"]) look(document.inside(at, keyword), false, false);
  };

  look(place, true, true);
  return evaluated;
}

function nothing(): Looked {
  return { names: new Set(), patterns: new Set(), items: 0, allProperties: false, allItems: false };
}

function keysOf(value: Json | undefined): readonly string[] {
  return typeof value === "object" && value !== null ? Object.keys(value) : [];
}
