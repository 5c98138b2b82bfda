import type { Secret } from "@osbert/server/yaml";

/** What a setting's value looks like. Everything else about it (how it is read, told, described to editors) follows from this. */
export type Shape =
  | TextShape
  | NumberShape
  | FlagShape
  | ChoiceShape
  | DurationShape
  | PathShape
  | ContentsShape
  | ImageShape
  | SecretShape
  | JsonShape
  | DocumentsShape
  | ListShape
  | MapShape
  | GroupShape;

export interface TextShape {
  readonly kind: "text";
  /** A regular expression, as JSON Schema has them. */
  readonly pattern?: string;
  /** What the pattern asks for, after "must be". */
  readonly mustBe?: string;
  readonly longest?: number;
}

export interface NumberShape {
  readonly kind: "number";
  readonly from: number;
  readonly to: number;
  /** Fractions are possible. */
  readonly fractions?: true;
}

export interface FlagShape {
  readonly kind: "flag";
}

export interface ChoiceShape {
  readonly kind: "choice";
  readonly of: readonly string[];
}

/** `30s`, `5m`, `2h`, `3d`; in milliseconds. With `forever`, also that word: null. */
export interface DurationShape {
  readonly kind: "duration";
  readonly forever?: true;
  /** In milliseconds. */
  readonly to?: number;
}

/** Made absolute: from the folder of the file that says it, or the current one if the environment does. */
export interface PathShape {
  readonly kind: "path";
}

/** The path of a text file; the value is what is in it. */
export interface ContentsShape {
  readonly kind: "contents";
}

/** The path of a picture; the value is a data URI. */
export interface ImageShape {
  readonly kind: "image";
}

/** A text, or `{ file: … }` or `{ env: … }` in its place. */
export interface SecretShape {
  readonly kind: "secret";
  readonly pattern?: string;
  readonly mustBe?: string;
  /** As much of it as may be seen. Default: nothing. */
  readonly show?: (text: string) => string;
}

/** Any JSON object. */
export interface JsonShape {
  readonly kind: "json";
}

/** A list of objects that are checked elsewhere. There may be secrets in them: of each, its name and its type alone are shown. */
export interface DocumentsShape {
  readonly kind: "documents";
}

export interface ListShape {
  readonly kind: "list";
  readonly of: Shape;
  /** How the list is written in an environment variable; without, it cannot be. */
  readonly fromText?: TextForm;
}

export interface TextForm {
  /** After "must be". */
  readonly mustBe: string;
  /** `undefined`: it is not that. */
  parse(text: string): readonly unknown[] | undefined;
}

/** Names of the writer's own choice. One of groups can also be written as a list, whose items have a `name`. */
export interface MapShape {
  readonly kind: "map";
  readonly of: Shape;
  /** What a name stands for: `<name>`. */
  readonly name: string;
}

export interface GroupShape {
  readonly kind: "group";
  readonly fields: Fields;
}

export type Fields = Readonly<Record<string, Field>>;

/** One line of the table of settings. */
export interface Field {
  readonly shape: Shape;
  /** What it is for, as a sentence. */
  readonly meaning: string;
  /** As one would write it. */
  readonly default?: unknown;
  /** What holds without it, where that is not a value. */
  readonly otherwise?: string;
  readonly required?: true;
  /** A group that may be left out as a whole. */
  readonly optional?: true;
  /** As one would write it; for the reference and for error messages. */
  readonly example?: unknown;
  /** Names in the environment besides the one that follows from the key. */
  readonly environment?: readonly string[];
  /**
   * A list of who may come in stands in the file or in the environment, never in both: one of them would be replaced in silence. What the variable
   * was perhaps meant for is told, too.
   */
  readonly inOnePlace?: string;
  /** A reload applies it. Everything else needs a restart. */
  readonly reloads?: true;
}

export interface Picture {
  readonly path: string;
  readonly dataUri: string;
}

export interface Contents {
  readonly path: string;
  readonly text: string;
}

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** The TypeScript type of what a shape reads. */
export type ValueOf<S> = S extends { readonly kind: "text" | "path" }
  ? string
  : S extends { readonly kind: "number" }
    ? number
    : S extends { readonly kind: "flag" }
      ? boolean
      : S extends { readonly kind: "choice"; readonly of: readonly (infer Choice)[] }
        ? Choice
        : S extends { readonly kind: "duration"; readonly forever: true }
          ? number | null
          : S extends { readonly kind: "duration" }
            ? number
            : S extends { readonly kind: "contents" }
              ? Contents
              : S extends { readonly kind: "image" }
                ? Picture
                : S extends { readonly kind: "secret" }
                  ? Secret
                  : S extends { readonly kind: "json" }
                    ? { readonly [name: string]: JsonValue }
                    : S extends { readonly kind: "documents" }
                      ? readonly JsonValue[]
                      : S extends { readonly kind: "list"; readonly of: infer Item }
                        ? readonly ValueOf<Item>[]
                        : S extends { readonly kind: "map"; readonly of: infer Item }
                          ? ReadonlyMap<string, ValueOf<Item>>
                          : S extends { readonly kind: "group"; readonly fields: infer Inner }
                            ? GroupOf<Inner>
                            : never;

export type GroupOf<F> = { readonly [Name in keyof F]: FieldValue<F[Name]> };

type FieldValue<F> = F extends { readonly shape: infer S }
  ? F extends { readonly required: true } | { readonly default: unknown }
    ? ValueOf<S>
    : F extends { readonly optional: true }
      ? ValueOf<S> | undefined
      : S extends { readonly kind: "group" | "map" }
        ? ValueOf<S>
        : ValueOf<S> | undefined
  : never;
