import { canonicalJson, type Json } from "@osbert/protocol";
import {
  _,
  Ajv,
  type CodeKeywordDefinition,
  type ErrorObject,
  type KeywordCxt,
  type Options,
  type ValidateFunction,
} from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import draft06 from "ajv/dist/refs/json-schema-draft-06.json" with { type: "json" };
import ajvDraft04 from "ajv-draft-04";
import ajvFormats from "ajv-formats";
import { RE2JS } from "re2js";
import { patternCost } from "./pattern-cost.js";
import type { Schema } from "./schema.js";
import { mostSteps, TooMuchWork, withMeter, workMeter } from "./work-meter.js";

/** `null`: the value is as the schema wants it. Else a sentence that names the place. Throws `TooMuchWork` if that cannot be told in bounded time. */
export type Validate = (value: unknown) => string | null;

/** The draft that is meant when a schema does not say. */
export const defaultDraft = "http://json-schema.org/draft-07/schema#";

/**
 * Compiles a schema by its `$schema`: drafts 04, 06, 07, 2019-09 and 2020-12. Throws with a sentence if it is none, or would take too long.
 * Compiled once, at start; every request then costs about a microsecond. Of what was compiled, nothing is kept here.
 */
export function compileSchema(schema: Schema, what: string): Validate {
  const { validate, functions } = compile(schema, what);
  return (value) => {
    try {
      return workMeter.within(mostSteps.check, () => (validate(value) ? null : sentence(validate.errors?.[0], what)));
    } catch (cause) {
      if (isTooMuch(cause))
        throw new TooMuchWork(`${what} would take too much work to check against the schema`, { cause });
      throw cause;
    } finally {
      // Each keeps what it has found until it is called again: hundreds of thousands of errors, for ever.
      for (const each of functions) each.errors = null;
    }
  };
}

/**
 * Throws what `compileSchema` throws, and makes nothing that could be called: for those who judge thousands of schemas one after the other. V8 keeps
 * functions that are made of text, and the text, for a while, because it might be asked for them again.
 */
export function checkSchema(schema: Schema, what: string): void {
  isOnlyChecked = true;
  try {
    compile(schema, what);
  } finally {
    isOnlyChecked = false;
  }
}

let isOnlyChecked = false;
/** More than this is given to V8 all the same: only there it is told whether that can read so much. */
const longestUnread = 65_536;
const nothingToCall = "return function validate() { return true }";

interface Compiled {
  readonly validate: ValidateFunction;
  readonly functions: readonly Partial<ValidateFunction>[];
}

function compile(schema: Schema, what: string): Compiled {
  const draft = schema.$schema ?? defaultDraft;
  const ajv = validators.get(draft.replace(/#$/, ""))?.();
  if (ajv === undefined)
    throw new Error(`${what}: $schema ${JSON.stringify(draft)} is none of drafts 04, 06, 07, 2019-09, 2020-12`);
  const known = { schemas: { ...ajv.schemas }, refs: { ...ajv.refs } };
  const { scope } = ajv;
  const knownUnevaluated = ajv.opts.unevaluated ?? false;
  let validate: ValidateFunction;
  let functions: readonly Partial<ValidateFunction>[];
  try {
    // Ajv's own, which nobody has written on purpose: it would answer later, and a refusal that nobody waits for ends the process.
    if (Object.hasOwn(schema, "$async")) throw new Error("$async is not a keyword of JSON Schema");
    if (!workMeter.within(mostSteps.check, () => ajv.validateSchema(schema)))
      throw new Error(`schema is invalid: ${ajv.errorsText(ajv.errors?.slice(0, toldErrors))}`);
    // Whatever code refers to stays in its scope for ever: schemas come and go, and each is compiled in a scope of its own.
    (ajv as { scope: ValueScope }).scope = emptyScope(scope);
    // Else every branch would keep books of what it has looked at.
    ajv.opts.unevaluated = hasMember(schema, unevaluated);
    workMeter.evaluatedNames = ajv.opts.unevaluated ? countNames(schema) : 0;
    patterns = new Map();
    validate = workMeter.within(mostSteps.compile, () => ajv.compile(schema));
    functions = [validate, ...functionsIn(ajv.scope)];
  } catch (cause) {
    if (isTooMuch(cause))
      throw new TooMuchWork(
        `${what}: the schema would take too much work to compile; write it smaller, with fewer references and repetitions`,
        { cause },
      );
    throw new Error(`${what} is not a valid schema: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  } finally {
    (ajv as { scope: ValueScope }).scope = scope;
    ajv.opts.unevaluated = knownUnevaluated;
    workMeter.evaluatedNames = 0;
    patterns = new Map();
    // Ajv would keep it for ever, and refuse the next one with the same $id: another plan's, or this one's after a reload. It forgets by the
    // $id, that of a draft included if the schema calls itself so, and does not forget what stands inside.
    ajv.removeSchema(schema);
    putBack(ajv.schemas, known.schemas);
    putBack(ajv.refs, known.refs);
  }
  return { validate, functions };
}

/** Also what refers to itself without end, and has no more room on the stack. */
function isTooMuch(error: unknown): boolean {
  return error instanceof TooMuchWork || error instanceof RangeError;
}

type ValueScope = AnyAjv["scope"];

/** With the same rules for names. */
function emptyScope(scope: ValueScope): ValueScope {
  const Scope = scope.constructor as new (options: object) => ValueScope;
  return new Scope({ ...scope.opts, scope: {} });
}

/** Of all schemas that were referred to. */
function functionsIn(scope: ValueScope): readonly Partial<ValidateFunction>[] {
  const { validate, wrapper } = (
    scope as unknown as { _values: Record<string, ReadonlyMap<unknown, ScopeName> | undefined> }
  )._values;
  const refs = [...(validate?.values() ?? []), ...(wrapper?.values() ?? [])].map(({ value }) => value?.ref);
  return refs.flatMap((ref) => {
    const one = typeof ref === "function" ? ref : (ref as { readonly validate?: unknown } | undefined)?.validate;
    return typeof one === "function" ? [one as ValidateFunction] : [];
  });
}

interface ScopeName {
  readonly value?: { readonly ref: unknown };
}

const toldErrors = 3;

const unevaluated: ReadonlySet<string> = new Set(["unevaluatedProperties", "unevaluatedItems"]);

function hasMember(value: unknown, names: ReadonlySet<string>): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, member]) => names.has(name) || hasMember(member, names));
}

/** Of properties that a schema names, wherever. */
function countNames(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.entries(value).reduce((sum, [name, member]) => {
    const own = name === "properties" && typeof member === "object" && member !== null ? Object.keys(member).length : 0;
    return sum + own + countNames(member);
  }, 0);
}

function putBack<T>(present: Record<string, T>, before: Readonly<Record<string, T>>): void {
  for (const name of Object.keys(present)) if (!Object.hasOwn(before, name)) delete present[name];
  Object.assign(present, before);
}

const options: Options = {
  // Authors bring schemas with keywords of their own and without types; that is no error.
  strict: false,
  // Not because of the errors: code that stops at the first one is nested one level deeper with each keyword, so that 1,000 properties took seconds to
  // compile, and 2,500 could not be. It pays for errors, too.
  allErrors: true,
  validateFormats: true,
  messages: true,
  // It is done before, and may take longer than what compiles.
  validateSchema: false,
  logger: false,
  // One that is referred to in many places would be compiled anew for each: 60 KB of schema became minutes and gigabytes.
  inlineRefs: false,
  // A pattern is tried on what anyone sends: with backtracking, 29 characters can block the process for seconds.
  code: {
    // Its time grows by the square of the schema's size, and the code is compiled by V8 anyway.
    optimize: false,
    // V8 reads it with the first check.
    process: (source: string) => {
      workMeter.pay(source.length / lettersInAStep);
      return isOnlyChecked && source.length <= longestUnread ? nothingToCall : source;
    },
    regExp: Object.assign((pattern: string, flags: string) => linearPattern(pattern, flags), {
      code: "require('re2js')",
    }),
  },
};

const lettersInAStep = 100;

type AnyAjv = Ajv | Ajv2019 | Ajv2020;

function once(make: () => AnyAjv): () => AnyAjv {
  let made: AnyAjv | undefined;
  return () => {
    if (made !== undefined) return made;
    const ajv = withBoundedWork(withFormats(make()));
    // What the draft says of schemas is compiled with the first that it is asked about.
    void workMeter.within(Number.POSITIVE_INFINITY, () => ajv.validateSchema({}));
    made = ajv;
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
    code(keyword: KeywordCxt) {
      const { gen, data, schema } = keyword;
      if (schema === true) keyword.pass(_`${gen.scopeValue("func", { ref: areUnique })}(${data})`);
    },
  });
  for (const [keyword, valuesOf] of Object.entries(comparing)) compareOnce(ajv, keyword, valuesOf);
  withMeter(ajv);
  return ajv;
}

/** The values that a value is compared with. */
const comparing: Readonly<Record<string, (schema: unknown) => readonly Json[]>> = {
  enum: (schema) => schema as readonly Json[],
  const: (schema) => [schema as Json],
};

/** Ajv lists the members of what is checked anew for each object that it compares it with; what is no object is compared as ever. */
function compareOnce(ajv: AnyAjv, keyword: string, valuesOf: (schema: unknown) => readonly Json[]): void {
  const rule = ajv.RULES.all[keyword];
  if (typeof rule !== "object") return;
  const definition = rule.definition as CodeKeywordDefinition;
  const { code } = definition;
  definition.code = (context, type) => {
    const values = valuesOf(context.schema);
    if (!values.some(isLarge)) return code(context, type);
    context.pass(_`${context.gen.scopeValue("func", { ref: isOneOf(values) })}(${context.data})`);
  };
}

function isOneOf(values: readonly Json[]): (value: Json) => boolean {
  const plain = new Set(values.filter((value) => !isLarge(value)));
  const texts = new Set(values.filter(isLarge).map((value) => canonicalJson(value)));
  return (value) => (isLarge(value) ? texts.has(paidText(value)) : plain.has(value));
}

function isLarge(value: Json): boolean {
  return typeof value === "object" && value !== null;
}

function areUnique(items: readonly Json[]): boolean {
  const texts = new Set<string>();
  for (const item of items) texts.add(paidText(item));
  return texts.size === items.length;
}

/** What is made of many small values takes longer than a long text. */
function paidText(value: Json): string {
  const text = canonicalJson(value);
  workMeter.pay(4 + (isLarge(value) ? text.length : text.length / 4));
  return text;
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

const costInAStep = 8;
/** At worst, each letter meets each instruction. */
const instructionsInAStep = 4;
/** Each is one more value that the code of its schema has to find. */
const stepsOfPattern = 24;

/**
 * Of the schema that is being compiled. A new one for each: a `Map` that is cleared leaves its table behind with all that was in it and a reference to the
 * next one, so that as soon as one of them is old, all that follow stay, with their patterns, until the whole heap is looked through.
 */
let patterns = new Map<string, LinearPattern & RegExp>();

/** Matches in linear time, and pays for it. What RE2 does not know (look-around, back references) is refused when the schema is compiled. */
function linearPattern(pattern: string, flags: string): LinearPattern & RegExp {
  const known = patterns.get(pattern);
  if (known !== undefined) return known;
  const guessed = patternCost(pattern);
  workMeter.pay(stepsOfPattern + guessed / costInAStep);
  const compiled = RE2JS.compile(pattern);
  const instructions = compiled.programSize();
  // One may be more than was thought, and RE2 has a bound of its own for it; the next one is not compiled then.
  workMeter.pay(Math.max(0, instructions - guessed) / costInAStep);
  const linear = {
    test: (text: string) => {
      // Where there is no letter, each instruction is still met once.
      workMeter.pay(4 + ((text.length + 1) * instructions) / instructionsInAStep);
      return compiled.matcher(text).find();
    },
    // Ajv takes patterns with the same text for the same: without it, the first one would be matched in the place of all others.
    toString: () => `/${pattern}/${flags}`,
  } as LinearPattern & RegExp;
  patterns.set(pattern, linear);
  return linear;
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
