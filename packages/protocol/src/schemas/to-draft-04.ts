import { isJsonObject, type Json, type JsonObject } from "../json.js";
import { isAlikeInDraft04, saysTheSame } from "./alike-in-draft-04.js";
import { evaluatedBy } from "./evaluated.js";
import { type Place, SchemaDocument } from "./schema-document.js";

export const draft04 = "http://json-schema.org/draft-04/schema#";

/** A schema in draft-04, the only draft that every platform has to understand. */
export interface Draft04Schema {
  readonly schema: JsonObject;
  /** Where it allows more than the schema that it was made from. An empty list: it means the same. */
  readonly losses: readonly Loss[];
}

export interface Loss {
  /** The keyword, as a JSON pointer into the schema that was translated. */
  readonly pointer: string;
  /** A sentence without its subject, which is the keyword. */
  readonly message: string;
}

/** What is nested deeper is not walked. */
const deepestSchema = 200;
/** What is nested deeper is not said to be in the words of draft-04 already: it is translated. */
const deepestAlike = 20;

/**
 * Says in draft-04 what a schema of draft-04, 06, 07, 2019-09 or 2020-12 says. What the original allows, the translation always
 * allows: a platform that checks with it never refuses what the broker takes. Where it has to allow more, there is a loss.
 *
 * A schema is understood as validators do, which honour what a draft does not know yet: keywords beside `$ref` count, `if` and
 * `contains` in every draft, and `nullable` as OpenAPI has it. It should be a valid one; of one that is not, nonsense stays nonsense.
 * Throws a RangeError if it is nested too deeply.
 */
export function toDraft04(schema: JsonObject): Draft04Schema {
  if (isNestedDeeper(schema, deepestSchema)) throw new RangeError(`is nested deeper than ${deepestSchema} levels`);
  const { $schema: _, ...keywords } = schema;
  if (isAlikeInDraft04(keywords, deepestAlike)) return { schema: { $schema: draft04, ...keywords }, losses: [] };
  return translate(schema);
}

/** Word by word, also where it is in the words of draft-04 already. */
export function translate(schema: JsonObject): Draft04Schema {
  const document = new SchemaDocument(schema);
  const first = new Translation(document, () => true);
  const translated = first.run();
  if (first.losses.size === 0) return { schema: translated, losses: [] };
  // What allows more may not stand where allowing more means forbidding, as under `not`. Only now it is known where it would.
  const second = new Translation(document, exactPlaces(first));
  const careful = second.run();
  return { schema: careful, losses: [...second.losses].map(([pointer, message]) => ({ pointer, message })) };
}

/** It goes no deeper than that. */
function isNestedDeeper(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner: Json) => isNestedDeeper(inner, levels - 1));
}

/** Whether nothing is lost at a place, below it, or where references from there lead. */
function exactPlaces({ losses, references }: Translation): (pointer: string) => boolean {
  const inexact = new Set<string>();
  const spoil = (pointer: string) => {
    for (let at = pointer; !inexact.has(at); at = at.slice(0, at.lastIndexOf("/"))) {
      inexact.add(at);
      if (at === "") break;
    }
  };
  for (const pointer of losses.keys()) spoil(pointer);
  for (let before = -1; before !== inexact.size; ) {
    before = inexact.size;
    for (const [from, to] of references) if (inexact.has(to)) spoil(from);
  }
  return (pointer) => !inexact.has(pointer);
}

/** Keywords that lead to others, or mean nothing where they stand alone. */
const goes: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "id",
  "$anchor",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "$vocabulary",
  "$defs",
  "definitions",
  "nullable",
  "then",
  "else",
]);

const nothingFits: JsonObject = { not: {} };

/** One walk over a schema. */
class Translation {
  /** Messages by pointer. */
  readonly losses = new Map<string, string>();
  /** From the place of a reference to that which it leads to. */
  readonly references: (readonly [from: string, to: string])[] = [];
  readonly #document: SchemaDocument;
  readonly #isExact: (pointer: string) => boolean;
  /** What is referred to stands under `definitions`, wherever it stood: by name, and the names by pointer. */
  readonly #definitions = new Map<string, JsonObject>();
  readonly #names = new Map<string, string>();
  readonly #waiting: (readonly [name: string, place: Place])[] = [];

  constructor(document: SchemaDocument, isExact: (pointer: string) => boolean) {
    this.#document = document;
    this.#isExact = isExact;
  }

  run(): JsonObject {
    const { root, id } = this.#document;
    const translated = this.#keywords(root, { value: root, pointer: "", base: "" });
    for (let next = this.#waiting.pop(); next !== undefined; next = this.#waiting.pop()) {
      this.#definitions.set(next[0], this.#schema(next[1]));
    }
    return {
      $schema: draft04,
      ...(id !== undefined && { id }),
      ...translated,
      ...(this.#definitions.size > 0 && { definitions: Object.fromEntries(this.#definitions) }),
    };
  }

  #schema(place: Place): JsonObject {
    const { value } = place;
    if (value === false) return nothingFits;
    if (!isJsonObject(value)) return {};
    const translated = this.#keywords(value, place);
    const { allOf } = translated;
    const [only] = Object.keys(translated).length === 1 && Array.isArray(allOf) && allOf.length === 1 ? allOf : [];
    return isJsonObject(only) && Object.keys(only)[0] === "$ref" ? only : translated;
  }

  #keywords(schema: JsonObject, place: Place): JsonObject {
    const result = new Map<string, Json>();
    const both: Json[] = [];
    for (const keyword of Object.keys(schema)) {
      for (const [name, said] of Object.entries(this.#keyword(keyword, schema, place))) {
        // Two keywords may have become the same one; then both hold.
        if (name === "allOf" && Array.isArray(said)) both.push(...said);
        else if (result.has(name)) both.push({ [name]: said });
        else result.set(name, said);
      }
    }
    if (both.length > 0) result.set("allOf", both);
    return Object.fromEntries(result);
  }

  /** A keyword in the words of draft-04: what has to hold besides all others. */
  #keyword(keyword: string, schema: JsonObject, place: Place): JsonObject {
    const value = schema[keyword] as Json;
    const { draft } = this.#document;
    if (goes.has(keyword)) return {};
    if (saysTheSame.has(keyword)) return { [keyword]: value };
    const at = this.#document.inside(place, keyword);
    switch (keyword) {
      case "type":
        return { type: schema.nullable === true ? [...new Set([value, "null"].flat())] : value };
      case "const":
        return draft === 4 ? { const: value } : { enum: [value] };
      case "enum":
        return { enum: Array.isArray(value) ? distinct(value) : value };
      case "minimum":
      case "exclusiveMinimum":
        return draft === 4 ? { [keyword]: value } : bound(keyword, schema.minimum, schema.exclusiveMinimum, "minimum");
      case "maximum":
      case "exclusiveMaximum":
        return draft === 4 ? { [keyword]: value } : bound(keyword, schema.maximum, schema.exclusiveMaximum, "maximum");
      case "required":
        return isEmptyList(value) ? {} : { required: value };
      case "properties":
      case "patternProperties":
        return { [keyword]: this.#schemas(at) };
      case "additionalProperties":
        return { additionalProperties: this.#schemaOrFlag(at) };
      case "dependencies":
        return { dependencies: this.#dependencies(at) };
      case "dependentRequired":
      case "dependentSchemas":
        return draft < 2019 ? {} : { dependencies: this.#dependencies(at) };
      case "propertyNames":
        return this.#propertyNames(at);
      case "items":
      case "prefixItems":
      case "additionalItems":
        return this.#items(keyword, schema, at);
      case "contains":
        return this.#contains(schema, at);
      case "minContains":
      case "maxContains":
        return {};
      case "allOf":
      case "anyOf":
        return { [keyword]: this.#list(at) };
      case "oneOf":
        if (this.#isExact(at.pointer)) return { oneOf: this.#list(at) };
        this.#lose(at, "is anyOf in draft-04: a branch allows more there, so that more than one of them can fit");
        return { anyOf: this.#list(at) };
      case "not":
        if (this.#isExact(at.pointer)) return { not: this.#schema(at) };
        this.#lose(at, "is left out in draft-04, in which what it excludes cannot be said exactly");
        return {};
      case "if":
        return this.#if(schema, place);
      case "$ref":
        return this.#reference(at);
      case "$dynamicRef":
      case "$recursiveRef":
        if (draft >= 2019)
          this.#lose(at, "is left out in draft-04, which has no references that depend on where one comes from");
        return {};
      case "unevaluatedProperties":
        return draft < 2019 ? {} : this.#unevaluatedProperties(schema, place, at);
      case "unevaluatedItems":
        return draft < 2019 ? {} : this.#unevaluatedItems(schema, place, at);
      default:
        return { [keyword]: value };
    }
  }

  #lose({ pointer }: Place, message: string): void {
    this.losses.set(pointer, message);
  }

  /** A list or an object of schemas. */
  #schemas(place: Place): Json {
    if (!isJsonObject(place.value)) return place.value ?? null;
    const names = Object.keys(place.value);
    return Object.fromEntries(names.map((name) => [name, this.#schema(this.#document.inside(place, name))]));
  }

  #list(place: Place): Json {
    if (!Array.isArray(place.value)) return place.value ?? null;
    return place.value.map((_, index) => this.#schema(this.#document.inside(place, index)));
  }

  /** Of all places for schemas, draft-04 takes true and false in two alone. */
  #schemaOrFlag(place: Place): Json {
    return typeof place.value === "boolean" ? place.value : this.#schema(place);
  }

  #dependencies(place: Place): Json {
    if (!isJsonObject(place.value)) return place.value ?? null;
    const entries = Object.entries(place.value).filter(([, needed]) => !isEmptyList(needed));
    return Object.fromEntries(
      entries.map(([name, needed]) => [
        name,
        Array.isArray(needed) ? needed : this.#schema(this.#document.inside(place, name)),
      ]),
    );
  }

  #items(
    keyword: "items" | "prefixItems" | "additionalItems",
    { items, prefixItems }: JsonObject,
    at: Place,
  ): JsonObject {
    if (this.#document.draft === 2020) {
      const isTuple = Array.isArray(prefixItems) && prefixItems.length > 0;
      if (keyword === "prefixItems") return isTuple ? { items: this.#list(at) } : {};
      if (keyword === "additionalItems") return {};
      return isTuple ? { additionalItems: this.#schemaOrFlag(at) } : { items: this.#schema(at) };
    }
    if (keyword === "items") return { items: Array.isArray(items) ? this.#list(at) : this.#schema(at) };
    return keyword === "additionalItems" && Array.isArray(items) ? { additionalItems: this.#schemaOrFlag(at) } : {};
  }

  /** Not: none of the items fits. */
  #contains({ minContains, maxContains }: JsonObject, at: Place): JsonObject {
    const { draft } = this.#document;
    const [least, most] = draft < 2019 ? [1, undefined] : [minContains ?? 1, maxContains];
    if (least === 0 && most === undefined) return {};
    if (least !== 1 || most !== undefined)
      this.#lose(at, "is asked for once at most in draft-04, which cannot count the items that fit");
    return least === 0 ? {} : { not: { type: "array", items: { not: this.#schema(at) } } };
  }

  /** Patterns and lists of names can be said with the keywords for properties. */
  #propertyNames(at: Place): JsonObject {
    const { value } = at;
    if (value === false) return { maxProperties: 0 };
    if (!isJsonObject(value)) return {};
    const allOf: JsonObject[] = [];
    for (const [keyword, said] of Object.entries(value)) {
      const inner = this.#document.inside(at, keyword);
      const rule = this.#nameRule(keyword, said);
      if (rule !== undefined) allOf.push(...(rule === "anything" ? [] : [rule]));
      else if (keyword === "allOf" && Array.isArray(said))
        allOf.push(...said.map((_, index) => this.#propertyNames(this.#document.inside(inner, index))));
      else
        this.#lose(inner, "is left out in draft-04, which knows only patterns and lists for the names of properties");
    }
    return allOf.length === 0 ? {} : { allOf };
  }

  /** What a keyword about the name of a property means for the object. `undefined`: it cannot be said. */
  #nameRule(keyword: string, said: Json): JsonObject | "anything" | undefined {
    const isConst = keyword === "const" && this.#document.draft !== 4;
    if (keyword === "type") return [said].flat().includes("string") ? "anything" : { maxProperties: 0 };
    if (keyword === "pattern" && typeof said === "string")
      return { patternProperties: { [said]: {} }, additionalProperties: false };
    if (isConst || (keyword === "enum" && Array.isArray(said))) {
      const names = (isConst ? [said] : (said as readonly Json[])).filter((name) => typeof name === "string");
      return { properties: Object.fromEntries(names.map((name) => [name, {}])), additionalProperties: false };
    }
    if (keyword === "not" && isJsonObject(said) && Object.keys(said).length === 1 && typeof said.pattern === "string")
      return { patternProperties: { [said.pattern]: nothingFits } };
    return annotations.has(keyword) ? "anything" : undefined;
  }

  #if(schema: JsonObject, place: Place): JsonObject {
    const [condition, then, otherwise] = [
      this.#document.inside(place, "if"),
      this.#document.inside(place, "then"),
      this.#document.inside(place, "else"),
    ];
    const [hasThen, hasElse] = [Object.hasOwn(schema, "then"), Object.hasOwn(schema, "else")];
    if (!hasThen && !hasElse) return {};
    const isExact = this.#isExact(condition.pointer);
    if (!hasThen) return { anyOf: [this.#schema(condition), this.#schema(otherwise)] };
    if (!isExact) {
      this.#lose(condition, "is left out in draft-04, in which the condition cannot be said exactly");
      return hasElse ? { anyOf: [this.#schema(then), this.#schema(otherwise)] } : {};
    }
    if (!hasElse) return { anyOf: [{ not: this.#schema(condition) }, this.#schema(then)] };
    // Needed twice: conditions in conditions would double with each.
    const shared = this.#shared(condition);
    return {
      anyOf: [{ allOf: [shared, this.#schema(then)] }, { allOf: [{ not: shared }, this.#schema(otherwise)] }],
    };
  }

  #reference(at: Place): JsonObject {
    const target = typeof at.value === "string" ? this.#document.target(at.value, at) : undefined;
    if (target === undefined) {
      this.#lose(at, "is left out in draft-04: it does not lead to a place in the schema that can be told");
      return {};
    }
    this.references.push([at.pointer, target.pointer]);
    return { allOf: [target.pointer === "" ? { $ref: "#" } : this.#shared(target)] };
  }

  /** A reference to what stands at a place, which is under `definitions` from now on. */
  #shared(place: Place): JsonObject {
    let name = this.#names.get(place.pointer);
    if (name === undefined) {
      name = this.#freeName(place.pointer.slice(place.pointer.lastIndexOf("/") + 1));
      this.#names.set(place.pointer, name);
      this.#definitions.set(name, {});
      this.#waiting.push([name, place]);
    }
    return { $ref: `#/definitions/${name}` };
  }

  /** Such that nobody has to escape it. */
  #freeName(wanted: string): string {
    const plain = wanted.replaceAll(/[^A-Za-z0-9_-]/g, "_") || "_";
    let name = plain;
    for (let number = 2; this.#definitions.has(name); number++) name = `${plain}-${number}`;
    return name;
  }

  #unevaluatedProperties(schema: JsonObject, place: Place, at: Place): JsonObject {
    const { sure, unsure, unknown } = evaluatedBy(this.#document, place);
    if (at.value === true || sure.allProperties) return {};
    const isSure = isSubset(unsure.names, sure.names) && isSubset(unsure.patterns, sure.patterns);
    if (unknown.properties || unsure.allProperties || !isSure)
      this.#lose(at, "says less in draft-04, which does not tell which branch has looked at a property");
    if (unknown.properties || unsure.allProperties) return {};
    const names = [...sure.names, ...unsure.names];
    const patterns = [...sure.patterns, ...unsure.patterns];
    const additionalProperties = this.#schemaOrFlag(at);
    const [own, ownPatterns] = [Object(schema.properties), Object(schema.patternProperties)];
    if (names.every((name) => Object.hasOwn(own, name)) && patterns.every((one) => Object.hasOwn(ownPatterns, one)))
      return { additionalProperties };
    const properties = Object.fromEntries(names.map((name) => [name, {}]));
    const patternProperties = Object.fromEntries(patterns.map((pattern) => [pattern, {}]));
    return { allOf: [{ properties, patternProperties, additionalProperties }] };
  }

  #unevaluatedItems({ items, prefixItems }: JsonObject, place: Place, at: Place): JsonObject {
    const { sure, unsure, unknown } = evaluatedBy(this.#document, place);
    if (at.value === true || sure.allItems) return {};
    if (unknown.items || unsure.allItems || unsure.items > sure.items)
      this.#lose(at, "says less in draft-04, which does not tell which branch has looked at an item");
    if (unknown.items || unsure.allItems) return {};
    const count = Math.max(sure.items, unsure.items);
    if (count === 0) return { items: this.#schema(at) };
    const additionalItems = this.#schemaOrFlag(at);
    const own = this.#document.draft === 2020 ? prefixItems : items;
    if (Array.isArray(own) && own.length === count) return { additionalItems };
    return { allOf: [{ items: Array.from({ length: count }, () => ({})), additionalItems }] };
  }
}

/** Keywords that say nothing about a value. */
const annotations: ReadonlySet<string> = new Set(["title", "description", "$comment", "default", "examples"]);

/** Of two bounds the narrower one, with draft-04's flag if the bound itself is excluded. Told once, by the keyword that it came from. */
function bound(
  keyword: string,
  inclusive: Json | undefined,
  exclusive: Json | undefined,
  name: "minimum" | "maximum",
): JsonObject {
  const isInclusive = typeof inclusive === "number";
  const isExclusive = typeof exclusive === "number";
  const flag = name === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum";
  const excludes =
    isExclusive && (!isInclusive || (name === "minimum" ? exclusive >= inclusive : exclusive <= inclusive));
  if (keyword === name) return isInclusive && !excludes ? { [name]: inclusive } : {};
  return excludes ? { [name]: exclusive, [flag]: true } : {};
}

/** Each value once, as draft-04 wants it. */
function distinct(values: readonly Json[]): Json {
  const seen = new Map(values.map((value) => [canonical(value), value]));
  return [...seen.values()];
}

/** The same text for equal values. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_, inner: Json) =>
    isJsonObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

function isEmptyList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isSubset(inner: ReadonlySet<string>, outer: ReadonlySet<string>): boolean {
  return [...inner].every((item) => outer.has(item));
}
