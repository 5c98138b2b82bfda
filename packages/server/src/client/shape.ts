import { isJsonObject, type JsonObject } from "@osbert/protocol";

/**
 * What an answer must look like: it hands the value back with its type, or throws a ShapeError. Fields that it does not name are left
 * alone, so that a later version of the other end may have more.
 */
export type Shape<Value> = (value: unknown, path?: string) => Value;

/** What a shape lets through. */
export type Shaped<Checked> = Checked extends Shape<infer Value> ? Value : never;

/** An answer that does not look as it must. Its message has nothing in it of what came. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

export const text: Shape<string> = (value, path = "") => {
  if (typeof value !== "string") throw new ShapeError(`${named(path)} must be a text`);
  return value;
};

export const number: Shape<number> = (value, path = "") => {
  if (typeof value !== "number") throw new ShapeError(`${named(path)} must be a number`);
  return value;
};

export const boolean: Shape<boolean> = (value, path = "") => {
  if (typeof value !== "boolean") throw new ShapeError(`${named(path)} must be true or false`);
  return value;
};

/** An object with any fields. */
export const anyObject: Shape<JsonObject> = (value, path = "") => {
  if (!isJsonObject(value)) throw new ShapeError(`${named(path)} must be an object`);
  return value;
};

export function nullable<Value>(shape: Shape<Value>): Shape<Value | null> {
  return (value, path) => (value === null ? null : shape(value, path));
}

/** A field that may be left out. */
export function optional<Value>(shape: Shape<Value>): Shape<Value | undefined> {
  return (value, path) => (value === undefined ? undefined : shape(value, path));
}

export function oneOf<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return (value, path) => {
    try {
      return first(value, path);
    } catch (error) {
      if (!(error instanceof ShapeError)) throw error;
      return second(value, path);
    }
  };
}

export function list<Item>(item: Shape<Item>): Shape<readonly Item[]> {
  return (value, path = "") => {
    if (!Array.isArray(value)) throw new ShapeError(`${named(path)} must be a list`);
    return value.map((each, at) => item(each, `${path}[${at}]`));
  };
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
  return (value, path = "") => {
    const given = anyObject(value, path);
    for (const [name, field] of all)
      field(Object.hasOwn(given, name) ? given[name] : undefined, path === "" ? name : `${path}.${name}`);
    // Every field was looked at just now.
    return given as never;
  };
}

/** Some of many, and where to go on. */
export function page<Item>(
  item: Shape<Item>,
): Shape<{ readonly items: readonly Item[]; readonly next: string | null }> {
  return object({ items: list(item), next: nullable(text) }) as never;
}

function named(path: string): string {
  return path === "" ? "the answer" : path;
}
