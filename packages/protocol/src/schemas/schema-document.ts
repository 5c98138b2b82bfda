import { isJsonObject, type Json, type JsonObject } from "../json.js";

/** The drafts of JSON Schema, in their order. */
export type Draft = 4 | 6 | 7 | 2019 | 2020;

const drafts: ReadonlyMap<string, Draft> = new Map([
  ["http://json-schema.org/draft-04/schema", 4],
  ["http://json-schema.org/draft-06/schema", 6],
  ["http://json-schema.org/draft-07/schema", 7],
  ["https://json-schema.org/draft/2019-09/schema", 2019],
  ["https://json-schema.org/draft/2020-12/schema", 2020],
]);

/** A subschema and where it stands. */
export interface Place {
  readonly value: Json | undefined;
  /** A JSON pointer from the root of the document. */
  readonly pointer: string;
  /** The pointer of the subschema that `#` means here: the nearest one around it with an id, or the root. */
  readonly base: string;
}

/** A schema as a whole, in which references lead from one place to another. */
export class SchemaDocument {
  readonly root: JsonObject;
  /** As `$schema` says; draft-07 if it does not, or names one that is none of these. */
  readonly draft: Draft;
  readonly #idKeyword: string;
  /** Places by base and anchor, once they are looked for. */
  #anchors: ReadonlyMap<string, string> | undefined;

  constructor(root: JsonObject) {
    this.root = root;
    this.draft = drafts.get(String(root.$schema).replace(/#$/, "")) ?? 7;
    this.#idKeyword = this.draft === 4 ? "id" : "$id";
  }

  /** The id of the whole, if it has one. */
  get id(): string | undefined {
    return this.#idOf(this.root);
  }

  /** What stands at a pointer. */
  at(pointer: string): Place {
    let place: Place = { value: this.root, pointer: "", base: "" };
    for (const name of pointer.split("/").slice(1)) place = this.inside(place, unescapePointer(name));
    return place;
  }

  /** A step down from a place, to a property or item of it. */
  inside({ value, pointer, base }: Place, ...names: readonly (string | number)[]): Place {
    let [at, inner, above] = [pointer, value, base];
    for (const name of names) {
      inner = Object.hasOwn(Object(inner), name) ? (inner as JsonObject)[name] : undefined;
      at = `${at}/${escapePointer(String(name))}`;
      if (this.#idOf(inner) !== undefined) above = at;
    }
    return { value: inner, pointer: at, base: above };
  }

  /** Where a reference leads. `undefined`: not to a place in this document. */
  target(reference: string, { base }: Place): Place | undefined {
    if (!reference.startsWith("#")) return undefined;
    const fragment = decode(reference.slice(1));
    if (fragment === "" || fragment === "/") return this.at(base);
    const pointer = fragment?.startsWith("/") ? base + fragment : this.#anchor(base, fragment ?? "");
    const place = pointer === undefined ? undefined : this.at(pointer);
    return place?.value === undefined ? undefined : place;
  }

  #anchor(base: string, name: string): string | undefined {
    if (this.#anchors === undefined) {
      const anchors = new Map<string, string>();
      this.#collectAnchors({ value: this.root, pointer: "", base: "" }, anchors);
      this.#anchors = anchors;
    }
    return this.#anchors.get(`${base}#${name}`);
  }

  #collectAnchors(place: Place, anchors: Map<string, string>): void {
    const { value, pointer, base } = place;
    if (typeof value !== "object" || value === null) return;
    if (isJsonObject(value)) {
      const { $anchor, $dynamicAnchor, [this.#idKeyword]: id } = value;
      const named = typeof id === "string" && id.startsWith("#") ? id.slice(1) : undefined;
      for (const name of [$anchor, $dynamicAnchor, named]) {
        if (typeof name === "string") anchors.set(`${base}#${name}`, pointer);
      }
    }
    for (const name of Object.keys(value)) {
      if (!values.has(name)) this.#collectAnchors(this.inside(place, name), anchors);
    }
  }

  /** One that makes a new base. In draft-07 and before, `#name` is an anchor. */
  #idOf(value: Json | undefined): string | undefined {
    const id = isJsonObject(value) ? value[this.#idKeyword] : undefined;
    return typeof id === "string" && !id.startsWith("#") ? id : undefined;
  }
}

/** Keywords that hold values, in which nothing is a schema. */
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"]);

function escapePointer(name: string): string {
  // Hardly any name needs it, and a catalog of thousands of schemas has a hundred thousand names.
  return /[~/]/.test(name) ? name.replaceAll("~", "~0").replaceAll("/", "~1") : name;
}

function unescapePointer(name: string): string {
  return name.replaceAll("~1", "/").replaceAll("~0", "~");
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
