import { isJsonObject, type JsonObject } from "@osbert/protocol";

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 has them. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * What a value on the wire must look like: it hands the value back with its type, or throws a ShapeError. Fields that it does not name are
 * left alone, so that a later version of the other end may have more. Its schema says the same to those who do not use it.
 */
export interface Shape<Value> {
  (value: unknown, path?: string): Value;
  readonly schema: JsonSchema;
}

/** What a shape lets through. */
export type Shaped<Checked> = Checked extends Shape<infer Value> ? Value : never;

/** A value that does not look as it must. Its message has nothing in it of what came. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

export const text: Shape<string> = shape({ type: "string" }, (value, path = "") => {
  if (typeof value !== "string") throw new ShapeError(`${named(path)} must be a text`);
  return value;
});

export const number: Shape<number> = shape({ type: "number" }, (value, path = "") => {
  if (typeof value !== "number") throw new ShapeError(`${named(path)} must be a number`);
  return value;
});

export const boolean: Shape<boolean> = shape({ type: "boolean" }, (value, path = "") => {
  if (typeof value !== "boolean") throw new ShapeError(`${named(path)} must be true or false`);
  return value;
});

/** An object with any fields. */
export const anyObject: Shape<JsonObject> = shape({ type: "object" }, (value, path = "") => {
  if (!isJsonObject(value)) throw new ShapeError(`${named(path)} must be an object`);
  return value;
});

/** Whatever it is. */
export const anything: Shape<unknown> = shape({}, (value) => value);

/** One of these words. */
export function choice<const Word extends string>(words: readonly Word[]): Shape<Word> {
  return shape({ type: "string", enum: words }, (value, path = "") => {
    const word = words.find((known) => known === value);
    if (word === undefined) throw new ShapeError(`${named(path)} must be one of ${words.join(", ")}`);
    return word;
  });
}

/** The same, with a sentence for whoever reads the schema. */
export function described<Value>(inner: Shape<Value>, description: string): Shape<Value> {
  return shape({ ...inner.schema, description }, (value, path) => inner(value, path));
}

export function nullable<Value>(inner: Shape<Value>): Shape<Value | null> {
  return shape({ anyOf: [inner.schema, { type: "null" }] }, (value, path) =>
    value === null ? null : inner(value, path),
  );
}

/** A field that may be left out. */
export function optional<Value>(inner: Shape<Value>): Shape<Value | undefined> {
  return shape(inner.schema, (value, path) => (value === undefined ? undefined : inner(value, path)));
}

export function oneOf<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return shape({ anyOf: [first.schema, second.schema] }, (value, path) => {
    try {
      return first(value, path);
    } catch (error) {
      if (!(error instanceof ShapeError)) throw error;
      return second(value, path);
    }
  });
}

export function list<Item>(item: Shape<Item>): Shape<readonly Item[]> {
  return shape({ type: "array", items: item.schema }, (value, path = "") => {
    if (!Array.isArray(value)) throw new ShapeError(`${named(path)} must be a list`);
    return value.map((each, at) => item(each, `${path}[${at}]`));
  });
}

type Fields = Readonly<Record<string, Shape<unknown>>>;
type OptionalName<All extends Fields> = {
  [Name in keyof All]: undefined extends Shaped<All[Name]> ? Name : never;
}[keyof All];
type Flat<T> = { readonly [Name in keyof T]: T[Name] };

export function object<All extends Fields>(
  fields: All,
): Shape<
  Flat<
    { [Name in Exclude<keyof All, OptionalName<All>>]: Shaped<All[Name]> } & {
      [Name in OptionalName<All>]?: Shaped<All[Name]>;
    }
  >
> {
  const all = Object.entries(fields);
  const schema = {
    type: "object",
    properties: Object.fromEntries(all.map(([name, field]) => [name, field.schema])),
    required: all.filter(([, field]) => !mayBeMissing(field)).map(([name]) => name),
  };
  return shape(schema, (value, path = "") => {
    const given = anyObject(value, path);
    for (const [name, field] of all)
      field(Object.hasOwn(given, name) ? given[name] : undefined, path === "" ? name : `${path}.${name}`);
    // Every field was looked at just now.
    return given as never;
  });
}

/** Some of many, and where to go on. */
export function page<Item>(
  item: Shape<Item>,
): Shape<{ readonly items: readonly Item[]; readonly next: string | null }> {
  return object({ items: list(item), next: nullable(text) }) as never;
}

function shape<Value>(schema: JsonSchema, check: (value: unknown, path?: string) => Value): Shape<Value> {
  return Object.assign(check, { schema });
}

function mayBeMissing(field: Shape<unknown>): boolean {
  try {
    field(undefined);
    return true;
  } catch {
    return false;
  }
}

function named(path: string): string {
  return path === "" ? "the answer" : path;
}
