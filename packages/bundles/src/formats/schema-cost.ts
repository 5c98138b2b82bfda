import { isJsonObject, type Json } from "@osbert/protocol";
import { patternCost } from "@osbert/server/schemas";
import type { PlanSpec } from "./bundle-spec.js";

/** Of one schema, as platforms take it; of all schemas of a bundle together, which is what can be compiled in a few seconds. */
const mostBytes = { schema: 65_536, bundle: 131_072 };
/**
 * Of all patterns of all schemas together. About a second of work. What one schema may take is bounded where it is compiled; but a bundle may have
 * hundreds of plans, and a pattern of a few letters is work as 1,000 of them are.
 */
const mostPatternCost = 200_000;

export interface SchemaProblem {
  /** `null`: it is of all of them together. */
  readonly at: { readonly plan: number; readonly verb: keyof PlanSpec["schemas"] } | null;
  readonly message: string;
}

/** Why the schemas of a bundle would take too long to compile; `null`: they do not. To find that out takes time in proportion to them. */
export function schemaCostProblem(plans: readonly PlanSpec[]): SchemaProblem | null {
  let all = 0;
  let cost = 0;
  for (const [plan, { schemas }] of plans.entries())
    for (const verb of ["provision", "update", "bind"] as const) {
      const schema = schemas[verb];
      if (schema === null) continue;
      const bytes = Buffer.byteLength(JSON.stringify(schema));
      if (bytes > mostBytes.schema)
        return { at: { plan, verb }, message: `must have at most ${mostBytes.schema} bytes, not ${bytes}` };
      all += bytes;
      // One that a schema has in many places is compiled once.
      for (const pattern of new Set(patternsIn(schema))) cost += patternCost(pattern);
    }
  if (all > mostBytes.bundle)
    return { at: null, message: `must have schemas of at most ${mostBytes.bundle} bytes together, not ${all}` };
  if (cost > mostPatternCost)
    return { at: null, message: "have patterns that are too long, or repeat too often; write smaller counts in {}" };
  return null;
}

function* patternsIn(value: Json): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* patternsIn(item);
  if (!isJsonObject(value)) return;
  const { pattern, patternProperties } = value;
  if (typeof pattern === "string") yield pattern;
  if (isJsonObject(patternProperties)) yield* Object.keys(patternProperties);
  for (const member of Object.values(value)) yield* patternsIn(member);
}
