import { isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import type { Action, BundleSpec, JsonSchema, PlanSpec } from "./bundle-spec.js";

/**
 * A bundle whose plans ask nobody for these parameters, because the operator gives them (F5-83): they are in no schema and in no form. Pure.
 * It depends on the names alone: whether there is a value at this moment changes nothing.
 */
export function hideParameters(spec: BundleSpec, names: ReadonlySet<string>): BundleSpec {
  return names.size === 0 ? spec : { ...spec, plans: spec.plans.map((plan) => hideInPlan(plan, names)) };
}

/** The parameters that an action of a plan may be given, by its schema. Those that take things away are given none. */
export function parameterNames({ schemas }: PlanSpec, action: Action): readonly string[] {
  return action === "unbind" || action === "deprovision" ? [] : namesIn(schemas[action]);
}

/** All parameters of a plan, of whichever action. */
export function allParameterNames({ schemas }: PlanSpec): readonly string[] {
  return [schemas.provision, schemas.update, schemas.bind].flatMap(namesIn);
}

function namesIn(schema: JsonSchema | null): readonly string[] {
  return isJsonObject(schema?.properties) ? Object.keys(schema.properties) : [];
}

export function hideInPlan(plan: PlanSpec, names: ReadonlySet<string>): PlanSpec {
  if (names.size === 0) return plan;
  const { provision, update, bind } = plan.schemas;
  const hide = (schema: JsonSchema | null) => (schema === null ? null : hideInSchema(schema, names));
  return {
    ...plan,
    metadata: isJsonObject(plan.metadata.schemas)
      ? { ...plan.metadata, schemas: hideInForms(plan.metadata.schemas, names) }
      : plan.metadata,
    schemas: { provision: hide(provision), update: hide(update), bind: hide(bind) },
  };
}

/** Keywords whose schemas are about the same object. */
const sameObject = ["allOf", "anyOf", "oneOf", "then", "else"] as const;
/** Keywords that ask whether something is so, with those that follow from it. Of what is hidden nobody knows it: they are left out. */
const questions = { if: ["if", "then", "else"], not: ["not"] } as const;
/** Keywords with an entry for a parameter. */
const byParameter = ["properties", "dependencies", "dependentRequired", "dependentSchemas"] as const;

function hideInSchema(schema: JsonObject, names: ReadonlySet<string>): JsonObject {
  const { required, ...others } = schema;
  const hidden: Record<string, Json> = others;
  for (const keyword of byParameter) {
    const entries = schema[keyword];
    if (!isJsonObject(entries)) continue;
    const kept = Object.entries(entries).filter(([name]) => !names.has(name));
    hidden[keyword] = Object.fromEntries(
      keyword === "properties" ? kept : kept.map(([name, needs]) => [name, hideInNeeds(needs, names)]),
    );
  }
  for (const keyword of ["if", "not"] as const) {
    const asked = schema[keyword];
    if (asked === undefined || JSON.stringify(hideInNeeds(asked, names)) === JSON.stringify(asked)) continue;
    for (const each of questions[keyword]) delete hidden[each];
  }
  for (const keyword of sameObject) {
    const inner = hidden[keyword];
    if (inner !== undefined) hidden[keyword] = hideInNeeds(inner, names);
  }
  if (!Array.isArray(required)) return required === undefined ? hidden : { ...hidden, required };
  const left = required.filter((name) => typeof name !== "string" || !names.has(name));
  // To draft-04 an empty list is none.
  return left.length === 0 ? hidden : { ...hidden, required: left };
}

/** A schema, a list of schemas, or a list of names. */
function hideInNeeds(needs: Json, names: ReadonlySet<string>): Json {
  if (Array.isArray(needs))
    return needs.filter((each) => typeof each !== "string" || !names.has(each)).map((each) => hideInNeeds(each, names));
  return isJsonObject(needs) ? hideInSchema(needs, names) : needs;
}

/** Forms of OpenShift's web console: an item is a name, or an object with the name as its key, or a box with items. */
function hideInForms(value: JsonObject, names: ReadonlySet<string>): JsonObject {
  const hide = (each: Json): Json => {
    if (Array.isArray(each)) return each.filter((item) => !isNamed(item, names)).map(hide);
    return isJsonObject(each) ? hideInForms(each, names) : each;
  };
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, hide(each)]));
}

function isNamed(item: Json, names: ReadonlySet<string>): boolean {
  const name = isJsonObject(item) ? item.key : item;
  return typeof name === "string" && names.has(name);
}
