import { canonicalJson, type Json } from "@osbert/protocol";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import draft06 from "ajv/dist/refs/json-schema-draft-06.json" with { type: "json" };
import ajvDraft04 from "ajv-draft-04";
import ajvFormats from "ajv-formats";
import { RE2JS } from "re2js";
import type { Schema } from "./schema.js";

/** `null`: the value is as the schema wants it. Else a sentence that names the place. */
export type Validate = (value: unknown) => string | null;

/** The draft that is meant when a schema does not say. */
export const defaultDraft = "http://json-schema.org/draft-07/schema#";

/**
 * Compiles a schema by its `$schema`: drafts 04, 06, 07, 2019-09 and 2020-12. Throws with a sentence if it is none.
 * Compiled once, at start; every request then costs about a microsecond.
 */
export function compileSchema(schema: Schema, what: string): Validate {
  const draft = schema.$schema ?? defaultDraft;
  const ajv = validators.get(draft.replace(/#$/, ""))?.();
  if (ajv === undefined)
    throw new Error(`${what}: $schema ${JSON.stringify(draft)} is none of drafts 04, 06, 07, 2019-09, 2020-12`);
  const known = { schemas: { ...ajv.schemas }, refs: { ...ajv.refs } };
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (cause) {
    throw new Error(`${what} is not a valid schema: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  } finally {
    // Ajv would keep it for ever, and refuse the next one with the same $id: another plan's, or this one's after a reload. It forgets by the
    // $id, that of a draft included if the schema calls itself so, and does not forget what stands inside.
    ajv.removeSchema(schema);
    putBack(ajv.schemas, known.schemas);
    putBack(ajv.refs, known.refs);
  }
  return (value) => (validate(value) ? null : sentence(validate.errors?.[0], what));
}

function putBack<T>(present: Record<string, T>, before: Readonly<Record<string, T>>): void {
  for (const name of Object.keys(present)) if (!Object.hasOwn(before, name)) delete present[name];
  Object.assign(present, before);
}

const options: Options = {
  // Authors bring schemas with keywords of their own and without types; that is no error.
  strict: false,
  allErrors: false,
  validateFormats: true,
  messages: true,
  logger: false,
  // One that is referred to in many places would be compiled anew for each: 60 KB of schema became minutes and gigabytes.
  inlineRefs: false,
  // A pattern is tried on what anyone sends: with backtracking, 29 characters can block the process for seconds.
  code: {
    regExp: Object.assign((pattern: string, flags: string) => linearPattern(pattern, flags), {
      code: "require('re2js')",
    }),
  },
};

type AnyAjv = Ajv | Ajv2019 | Ajv2020;

function once(make: () => AnyAjv): () => AnyAjv {
  let made: AnyAjv | undefined;
  return () => {
    made ??= withBoundedWork(withFormats(make()));
    return made;
  };
}

function withFormats(ajv: AnyAjv): AnyAjv {
  // Both packages are CommonJS: their default export is one level deeper under Node's ESM.
  const add =
    (ajvFormats as unknown as { default?: (ajv: unknown) => void }).default ??
    (ajvFormats as unknown as (ajv: unknown) => void);
  add(ajv);
  return ajv;
}

const longestUrl = 2_048;

/** What takes time by the square of the input's size is replaced: a body of a megabyte would block the process for minutes. */
function withBoundedWork(ajv: AnyAjv): AnyAjv {
  const url = ajv.formats.url as RegExp;
  ajv.addFormat("url", (text: string) => text.length <= longestUrl && url.test(text));
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    error: { message: "must NOT have duplicate items" },
    compile: (wanted: boolean) => (items: readonly Json[]) =>
      !wanted || new Set(items.map(canonicalJson)).size === items.length,
  });
  return ajv;
}

type AjvConstructor = new (options: Options) => Ajv;

const validators: ReadonlyMap<string, () => AnyAjv> = new Map([
  [
    "http://json-schema.org/draft-04/schema",
    once(() => {
      const Draft04 = ((ajvDraft04 as unknown as { default?: AjvConstructor }).default ??
        ajvDraft04) as unknown as AjvConstructor;
      return new Draft04(options);
    }),
  ],
  ["http://json-schema.org/draft-06/schema", once(() => new Ajv(options).addMetaSchema(draft06))],
  ["http://json-schema.org/draft-07/schema", once(() => new Ajv(options))],
  ["https://json-schema.org/draft/2019-09/schema", once(() => new Ajv2019(options))],
  ["https://json-schema.org/draft/2020-12/schema", once(() => new Ajv2020(options))],
]);

interface LinearPattern {
  test(text: string): boolean;
}

/** Matches in linear time. What RE2 does not know (look-around, back references) is refused when the schema is compiled. */
function linearPattern(pattern: string, flags: string): LinearPattern & RegExp {
  const compiled = RE2JS.compile(pattern);
  return {
    test: (text: string) => compiled.matcher(text).find(),
    // Ajv takes patterns with the same text for the same: without it, the first one would be matched in the place of all others.
    toString: () => `/${pattern}/${flags}`,
  } as LinearPattern & RegExp;
}

function sentence(error: ErrorObject | undefined, what: string): string {
  if (error === undefined) return `${what} is not valid`;
  const path = error.instancePath.replaceAll(/\/([^/]*)/g, (_, name: string) =>
    /^[0-9]+$/.test(name) ? `[${name}]` : `.${unescapePointer(name)}`,
  );
  return `${what}${path} ${error.message ?? "is not valid"}${detail(error)}`;
}

/** What the message leaves out and a person needs. */
function detail({ keyword, params }: ErrorObject): string {
  const { allowedValues, allowedValue, additionalProperty } = params as Record<string, unknown>;
  if (keyword === "enum") return `: ${JSON.stringify(allowedValues)}`;
  if (keyword === "const") return `: ${JSON.stringify(allowedValue)}`;
  if (keyword === "additionalProperties") return `, such as ${JSON.stringify(additionalProperty)}`;
  return "";
}

function unescapePointer(name: string): string {
  return name.replaceAll("~1", "/").replaceAll("~0", "~");
}
