import type { Json, JsonObject } from "@osbert/protocol";
import { defaultDraft } from "@osbert/server/schemas";
import { didYouMean, type ValueNode } from "@osbert/server/yaml";
import { RE2JS } from "re2js";
import { readName } from "./read-name.js";
import { type Fields, flagOf, type SpecReader } from "./spec-reader.js";

/** A parameter of a classic bundle, as JSON Schema says it. */
export interface ApbParameter {
  readonly name: string;
  readonly type: SchemaType;
  readonly schema: JsonObject;
  readonly required: boolean;
  readonly updatable: boolean;
  readonly displayType: string | null;
  readonly displayGroup: string | null;
  /** It is asked for only where all of these have one of their values. No values: where it is given at all. */
  readonly dependencies: ReadonlyMap<string, readonly Json[]>;
}

type SchemaType = "string" | "integer" | "number" | "boolean" | "object" | "array" | "null";

const types: ReadonlyMap<string, SchemaType> = new Map(
  Object.entries({
    ...{ string: "string", enum: "string", int: "integer", integer: "integer", number: "number" },
    ...{ bool: "boolean", boolean: "boolean", object: "object", array: "array", nil: "null", null: "null" },
  } as const),
);

const known = [
  ...["name", "title", "type", "description", "default", "required", "updatable", "enum", "pattern"],
  ...["maxlength", "max_length", "min_length", "multiple_of", "minimum", "maximum"],
  ...["exclusive_minimum", "exclusive_maximum", "display_type", "display_group", "dependencies"],
];

/** Reads `parameters` or `bind_parameters` of a plan. Those with a problem are left out. */
export function readApbParameters(reader: SpecReader, plan: Fields, field: string): readonly ApbParameter[] {
  const read = plan.items(field).flatMap((node, index): readonly (readonly [ApbParameter, Fields])[] => {
    const fields = reader.fields(node, plan.at(field, index));
    const parameter = readParameter(reader, fields);
    return parameter === undefined ? [] : [[parameter, fields]];
  });
  const byName = new Map<string, ApbParameter>();
  for (const [parameter, fields] of read) {
    if (byName.has(parameter.name)) fields.problem("name", "is there twice; give one of them another name");
    byName.set(parameter.name, parameter);
  }
  return read.map(([parameter, fields]) => ({
    ...parameter,
    dependencies: readDependencies(reader, fields, parameter, byName),
  }));
}

function readParameter(reader: SpecReader, fields: Fields): ApbParameter | undefined {
  fields.only(known, "advise");
  const name = readName(fields, "name", "database_name");
  const written = fields.requiredText("type", "string");
  const type = written === undefined ? undefined : types.get(written.toLowerCase());
  if (written !== undefined && type === undefined)
    fields.problem("type", `must be ${[...types.keys()].join(", ")}${didYouMean(written, types.keys())}`);
  const texts = {
    title: fields.text("title"),
    description: optionalText(fields, "description"),
    display_type: fields.text("display_type"),
    display_group: fields.text("display_group"),
  };
  const flags = { required: fields.flag("required") ?? false, updatable: fields.flag("updatable") ?? false };
  if (name === undefined || type === undefined) return undefined;
  if (name === "cluster" || name === "namespace" || name.startsWith("_apb_"))
    fields.advise("name", "is a name that the broker gives a value to; users cannot change it");
  const choices = choicesOf(reader, fields, type, written?.toLowerCase() === "enum");
  const schema = {
    type,
    ...(texts.title !== undefined && { title: texts.title }),
    ...(texts.description !== undefined && { description: texts.description }),
    ...(choices !== undefined && { enum: choices }),
    ...(type === "string" && textRules(fields)),
    ...((type === "number" || type === "integer") && numberRules(fields)),
    ...defaultOf(reader, fields, type, choices),
  };
  return {
    ...{ name, type, schema, ...flags },
    displayType: texts.display_type ?? null,
    displayGroup: texts.display_group ?? null,
    dependencies: new Map(),
  };
}

/** An empty one is as good as none. */
function optionalText(fields: Fields, name: string): string | undefined {
  const node = fields.node(name);
  return node?.kind === "scalar" && node.text.trim() === "" ? undefined : fields.text(name);
}

function textRules(fields: Fields): JsonObject {
  const length = (name: string) => {
    const number = fields.number(name);
    if (number === undefined || (Number.isInteger(number) && number >= 0)) return number;
    return fields.problem(name, "must be a whole number, at least 0");
  };
  const oldest = length("maxlength");
  const longest = length("max_length") ?? oldest;
  const shortest = length("min_length");
  const pattern = readPattern(fields);
  return {
    // 0 was how Go said that there is none.
    ...(longest !== undefined && longest > 0 && { maxLength: longest }),
    ...(shortest !== undefined && { minLength: shortest }),
    ...(pattern !== undefined && { pattern }),
  };
}

/** What RE2 does not know was dropped without a word by the predecessor, and then anything went. */
function readPattern(fields: Fields): string | undefined {
  const pattern = optionalText(fields, "pattern");
  if (pattern === undefined) return undefined;
  try {
    RE2JS.compile(pattern);
    return pattern;
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : "it cannot be read";
    return fields.problem("pattern", `cannot be matched in linear time (RE2): ${why.slice(0, 200)}`);
  }
}

function numberRules(fields: Fields): JsonObject {
  const multipleOf = fields.number("multiple_of");
  if (multipleOf !== undefined && multipleOf <= 0) fields.problem("multiple_of", "must be more than 0");
  return {
    ...(multipleOf !== undefined && { multipleOf }),
    ...limitRules(fields, "minimum", "exclusive_minimum", "exclusiveMinimum"),
    ...limitRules(fields, "maximum", "exclusive_maximum", "exclusiveMaximum"),
  };
}

/** In draft-04 a flag says that the limit itself is not allowed, in later ones a number is another limit: both are read. */
function limitRules(
  fields: Fields,
  name: "minimum" | "maximum",
  exclusiveName: string,
  keyword: "exclusiveMinimum" | "exclusiveMaximum",
): JsonObject {
  const limit = fields.number(name);
  const node = fields.node(exclusiveName);
  const isNumber = node?.kind === "scalar" && typeof node.value === "number";
  const exclusive = isNumber ? fields.number(exclusiveName) : fields.flag(exclusiveName) === true ? limit : undefined;
  const isReplaced = !isNumber && exclusive !== undefined;
  return {
    ...(limit !== undefined && !isReplaced && { [name]: limit }),
    ...(exclusive !== undefined && { [keyword]: exclusive }),
  };
}

function choicesOf(reader: SpecReader, fields: Fields, type: SchemaType, isEnum: boolean): readonly Json[] | undefined {
  const items = fields.items("enum");
  if (items.length === 0)
    return isEnum ? fields.problem("enum", "is missing; list the values that are allowed") : undefined;
  const values = items.flatMap((node, index) => {
    const value = typedValue(node, type);
    if (value === undefined) reader.problem(fields.at("enum", index), `must be a value of type ${type}`);
    return value === undefined ? [] : [value];
  });
  return [...new Set(values)];
}

/** A default is a proposal to users; one that does not fit is left out, and the bundle can be used. */
function defaultOf(
  reader: SpecReader,
  fields: Fields,
  type: SchemaType,
  choices: readonly Json[] | undefined,
): { readonly default?: Json } {
  const node = fields.node("default");
  if (node === undefined) return {};
  const value =
    type === "object" || type === "array" ? reader.json(node, fields.at("default")) : typedValue(node, type);
  const fits = value !== undefined && (choices === undefined || choices.includes(value));
  if (fits && (type !== "object" || node.kind === "map") && (type !== "array" || node.kind === "list"))
    return { default: value };
  if (node.kind !== "scalar" || node.text.trim() !== "")
    fields.advise("default", `is not ${choices === undefined ? `of type ${type}` : "one of enum"}; it is left out`);
  return {};
}

/** What was typed as a value of this type: `enum: [9.5, 9.6]` are two texts. */
function typedValue(node: ValueNode, type: SchemaType): Json | undefined {
  if (node.kind !== "scalar") return undefined;
  const { value, text } = node;
  switch (type) {
    case "string":
      return typeof value === "string" ? value : text;
    case "boolean":
      return flagOf(text);
    case "integer":
    case "number": {
      const number = text.trim() === "" ? Number.NaN : Number(text);
      return Number.isFinite(number) && (type === "number" || Number.isInteger(number)) ? number : undefined;
    }
    case "null":
      return value === null ? null : undefined;
    case "object":
    case "array":
      return undefined;
  }
}

function readDependencies(
  reader: SpecReader,
  parameter: Fields,
  { name: own }: ApbParameter,
  others: ReadonlyMap<string, ApbParameter>,
): ReadonlyMap<string, readonly Json[]> {
  const dependencies = new Map<string, readonly Json[]>();
  parameter.items("dependencies").forEach((node, index) => {
    const fields = reader.fields(node, parameter.at("dependencies", index));
    fields.only(["key", "value"], "advise");
    const key = fields.requiredText("key", "the_name_of_another_parameter")?.normalize("NFC");
    if (key === undefined) return;
    const other = others.get(key);
    if (other === undefined || key === own) {
      const near = didYouMean(
        key,
        [...others.keys()].filter((name) => name !== own),
      );
      fields.problem("key", `is none of the plan's other parameters${near}`);
      return;
    }
    const written = fields.node("value");
    const value = written === undefined ? undefined : typedValue(written, other.type);
    if (written !== undefined && value === undefined)
      fields.problem("value", `must be of the type of ${key}, ${other.type}`);
    dependencies.set(key, [...(dependencies.get(key) ?? []), ...(value === undefined ? [] : [value])]);
  });
  return dependencies;
}

/**
 * Parameters as a schema. Nothing else may be sent: extra variables win over all others in Ansible, and whoever may send any can change what
 * a playbook does.
 */
export function parametersSchema(parameters: readonly ApbParameter[], { isUpdate }: { readonly isUpdate: boolean }) {
  // An update sends what changes, and nothing has to.
  const required = isUpdate ? [] : parameters.filter((parameter) => parameter.required);
  const always = required.filter(({ dependencies }) => dependencies.size === 0).map(({ name }) => name);
  const sometimes = required.filter(({ dependencies }) => dependencies.size > 0).map(requiredWhere);
  return {
    $schema: defaultDraft,
    type: "object",
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    ...(always.length > 0 && { required: always }),
    ...(sometimes.length > 0 && { allOf: sometimes }),
    additionalProperties: false,
  };
}

/** All dependencies count, and not only the first. */
function requiredWhere({ name, dependencies }: ApbParameter): JsonObject {
  const valued = [...dependencies].filter(([, values]) => values.length > 0);
  return {
    if: {
      ...(valued.length > 0 && {
        properties: Object.fromEntries(valued.map(([key, values]) => [key, { enum: values }])),
      }),
      required: [...dependencies.keys()],
    },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: [name] },
  };
}

/** What the web console of OpenShift draws a form by: an ordered list, with neighbours of one group in a box. */
export function formDefinition(parameters: readonly ApbParameter[]): readonly Json[] {
  const form: Json[] = [];
  let box: { readonly group: string; readonly items: Json[] } | undefined;
  for (const { name, displayType, displayGroup } of parameters) {
    const item = displayType === null ? name : { key: name, type: displayType };
    if (displayGroup === null) {
      box = undefined;
      form.push(item);
      continue;
    }
    if (box?.group !== displayGroup) {
      box = { group: displayGroup, items: [] };
      form.push({ type: "fieldset", title: displayGroup, items: box.items });
    }
    box.items.push(item);
  }
  return form;
}
