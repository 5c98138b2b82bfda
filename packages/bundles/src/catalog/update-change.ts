import { canonicalJson, type Json, type JsonObject } from "@osbert/protocol";
import type { BundleSpec, PlanSpec } from "../formats/bundle-spec.js";

/** A plan that an instance comes from, as a revision has it: there it may have another name by now. */
export function planFrom({ plans }: Pick<BundleSpec, "plans">, from: string): PlanSpec | undefined {
  return plans.find(({ name }) => name === from) ?? plans.find(({ previousNames }) => previousNames.includes(from));
}

/** Whether an update asks for other parameters than there are. */
export function changesParameters(from: JsonObject, to: JsonObject): boolean {
  return Object.entries(to).some(([name, value]) => !isSame(from[name], value));
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return one !== undefined && other !== undefined && canonicalJson(one) === canonicalJson(other);
}
