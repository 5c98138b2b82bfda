import { _, type Ajv, type Code, type CodeKeywordDefinition, type KeywordCxt, Name } from "ajv";

/** A schema, or a value beside it, would take longer than anyone has to wait for. Says nothing of whether the value is right. */
export class TooMuchWork extends Error {
  override readonly name = "TooMuchWork";
}

/**
 * How much work schemas may make. A step of a check is about 25 ns, so that the worst check takes some 50 ms; one of compiling is about 15 µs, so that
 * the worst schema takes some 300 ms, once. Measured with what is in test/schema-work.test.ts.
 */
export const mostSteps = { compile: 20_000, check: 2_000_000 } as const;

/**
 * Counts down what is left of the work that may be done. The code that Ajv generates pays before each keyword, and before it calls another schema: however
 * schemas refer to each other, and whatever the value looks like, each step was paid for.
 *
 * A bound that is found by looking at the schema alone would refuse trees that refer to themselves, which are usual. A thread that can be ended would cost
 * every request a copy of its parameters and a wait, and decisions could no longer be made in one piece. Paying costs a few nanoseconds a keyword.
 */
class WorkMeter {
  /** Generated code counts it down by itself: a call for each keyword would cost more than most of them do. */
  left = 0;
  /** Of what is compiled: names of properties that each merge of branches may have to copy; 0 where nobody asks which ones were evaluated. */
  evaluatedNames = 0;

  /** Runs it with so much. */
  within<Result>(steps: number, work: () => Result): Result {
    const before = this.left;
    this.left = steps;
    try {
      return work();
    } finally {
      this.left = before;
    }
  }

  pay(steps: number): void {
    this.left -= steps;
    if (this.left < 0) this.stop();
  }

  stop(): never {
    throw new TooMuchWork("it takes too much work");
  }
}

/** One for all: nothing is compiled or checked beside something else, and nothing of it waits. */
export const workMeter: WorkMeter = new WorkMeter();

/** Makes every keyword that this Ajv knows pay: when it is compiled, and in what is made of it. */
export function withMeter(ajv: Pick<Ajv, "RULES">): void {
  for (const rule of Object.values(ajv.RULES.all)) {
    if (typeof rule !== "object" || !("code" in rule.definition)) continue;
    const definition = rule.definition as CodeKeywordDefinition;
    const { code } = definition;
    definition.code = (keyword, type) => {
      const own = priceInSchema(keyword);
      workMeter.pay(compilePrice(keyword, own));
      const meter = keyword.gen.scopeValue("obj", { ref: workMeter });
      keyword.gen.code(_`if ((${meter}.left -= ${priceOf(keyword, own)}) < 0) ${meter}.stop()`);
      if (!ofMany.has(keyword.keyword)) return code(keyword, type);
      const before = keyword.gen.const("before", errors);
      code(keyword, type);
      const more = _`${stepsOfError} * (${errors} - ${before})`;
      keyword.gen.code(_`if (${errors} > ${before} && (${meter}.left -= ${more}) < 0) ${meter}.stop()`);
    };
  }
}

const calls: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
const branches: ReadonlySet<string> = new Set([
  ...["allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependencies", "dependentSchemas"],
]);
const listsOfNames: ReadonlySet<string> = new Set(["dependencies", "dependentRequired"]);
const overTexts: ReadonlySet<string> = new Set(["minLength", "maxLength"]);
const overItems: ReadonlySet<string> = new Set(["items", "additionalItems", "contains", "unevaluatedItems"]);
const overMembers: ReadonlySet<string> = new Set(["additionalProperties", "patternProperties", "propertyNames"]);
const countingMembers: ReadonlySet<string> = new Set(["minProperties", "maxProperties"]);
/** May find as much wrong as the schema has names in it. The type of a value is no keyword of Ajv's: nobody else pays for what is wrong with it. */
const ofMany: ReadonlySet<string> = new Set([
  ...["properties", "required", "prefixItems", "allOf", "dependencies", "dependentRequired", "dependentSchemas"],
]);
/** What they find wrong in a branch is made, and thrown away. */
const trying: ReadonlySet<string> = new Set(["anyOf", "oneOf"]);
/** An object of six members. */
const stepsOfError = 8;

/** What the code of a keyword walks through each time, besides subschemas, which pay for themselves. */
function priceOf({ keyword, data, schema }: KeywordCxt, own: number): Code {
  // All that went wrong so far is kept until the end, and copied after a call.
  const always = _`${own} + (${errors} >> 3)`;
  if (overTexts.has(keyword)) return _`${always} + (${data}.length >> 3)`;
  if (keyword === "format") return _`${always} + (typeof ${data} == "string" ? ${data}.length : 0)`;
  // Each may be wrong, in its type: see `ofMany`.
  if (overItems.has(keyword)) return _`${always} + (Array.isArray(${data}) ? ${stepsOfError} * ${data}.length : 0)`;
  if (overMembers.has(keyword)) return _`${always} + ${stepsOfError} * Object.keys(${data}).length`;
  if (countingMembers.has(keyword)) return _`${always} + 2 * Object.keys(${data}).length`;
  if (keyword === "unevaluatedProperties") {
    // Each is compared with each name that was looked at.
    const each = stepsOfError + Math.ceil(workMeter.evaluatedNames / 8);
    return _`${always} + ${each} * Object.keys(${data}).length`;
  }
  if (trying.has(keyword)) return _`${always} + ${(stepsOfError / 2) * (schema as readonly unknown[]).length}`;
  return always;
}

/** As Ajv calls the number of them in the code of every schema. */
const errors = new Name("errors");

/** Names, branches, values that are compared with, a call. */
function priceInSchema({ keyword, schema }: KeywordCxt): number {
  if (calls.has(keyword)) return 4 + workMeter.evaluatedNames;
  if (keyword === "enum" || keyword === "const") return 1 + Math.ceil(JSON.stringify(schema).length / 4);
  if (typeof schema !== "object" || schema === null) return 1;
  const members = Object.values(schema as object);
  const each = branches.has(keyword) ? 1 + workMeter.evaluatedNames : 1;
  return members.reduce<number>((sum, member) => sum + each + (Array.isArray(member) ? member.length : 0), 1);
}

/** Another function, another scope to look things up in: that of a call. And what Ajv writes out again and again. */
function compilePrice({ keyword, schema }: KeywordCxt, own: number): number {
  const copies = listsOfNames.has(keyword)
    ? Object.values(schema as object).reduce((sum, names) => sum + (Array.isArray(names) ? names.length ** 2 : 0), 0)
    : 0;
  return (calls.has(keyword) ? 8 : 1) + own / 8 + copies / 1_000;
}
