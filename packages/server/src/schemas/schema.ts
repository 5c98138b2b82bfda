import type { Json, JsonObject } from "@osbert/protocol";

/** A JSON Schema as an author writes it. `$schema` may be left out: it then is draft-07. */
export interface Schema {
  /** The draft: 04, 06, 07, 2019-09 or 2020-12. Default draft-07. */
  readonly $schema?: string;
  /** `"object"`, `"string"`…, or several of them. */
  readonly type?: string | readonly string[];
  /** What an object may have. */
  readonly properties?: Readonly<Record<string, Schema>>;
  /** What an object must have. */
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/**
 * The TypeScript type of what a schema allows, as far as types can say it: types, properties, required, enum, const, items,
 * anyOf, oneOf, allOf, additionalProperties. What they cannot (ranges, patterns, formats) is left to validation.
 */
export type FromSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Branch)[] }
      ? FromSchema<Branch>
      : S extends { readonly oneOf: readonly (infer Branch)[] }
        ? FromSchema<Branch>
        : S extends { readonly allOf: readonly (infer Branch)[] }
          ? Intersection<Branch>
          : S extends { readonly type: infer Type }
            ? FromType<S, Type>
            : S extends { readonly properties: unknown }
              ? FromObject<S>
              : Json;

type FromType<S, Type> = Type extends readonly (infer One)[]
  ? FromType<S, One>
  : Type extends "string"
    ? string
    : Type extends "number" | "integer"
      ? number
      : Type extends "boolean"
        ? boolean
        : Type extends "null"
          ? null
          : Type extends "array"
            ? readonly (S extends { readonly items: infer Item } ? FromSchema<Item> : Json)[]
            : Type extends "object"
              ? FromObject<S>
              : Json;

type FromObject<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      { readonly [Name in RequiredOf<S, Properties>]: FromSchema<Properties[Name]> } & {
        readonly [Name in Exclude<keyof Properties, RequiredOf<S, Properties>>]?: FromSchema<Properties[Name]>;
      }
    >
  : S extends { readonly additionalProperties: infer Value extends object }
    ? { readonly [name: string]: FromSchema<Value> }
    : JsonObject;

type RequiredOf<S, Properties> = S extends { readonly required: readonly (infer Name)[] }
  ? Name & keyof Properties
  : never;

type Intersection<Branch> = Flat<
  (Branch extends unknown ? (branch: FromSchema<Branch>) => void : never) extends (all: infer All) => void ? All : never
>;

type Flat<T> = T extends object ? { readonly [Name in keyof T]: T[Name] } : T;
