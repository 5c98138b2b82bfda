import { buildCatalog, CatalogError, type Service } from "@osbert/broker";
import type { Finding } from "@osbert/protocol";
import type { BundleSpec } from "./bundle-spec.js";
import { schemaCostProblem } from "./schema-cost.js";
import type { At, SpecReader } from "./spec-reader.js";
import { toService } from "./to-service.js";

/** Where an author's file has what a plan has. */
export interface PlanPlaces {
  readonly plan: (index: number) => At;
  readonly schemas: { readonly provision: string; readonly update: string; readonly bind: string };
}

/**
 * Makes a catalog of the bundle alone, as the broker will: what breaks a rule there, or cannot be compiled, is a problem here and now, and
 * never when someone asks for the catalog (F5-82).
 */
export function checkOffer(reader: SpecReader, spec: BundleSpec, places: PlanPlaces): void {
  const cost = schemaCostProblem(spec.plans);
  if (cost !== null) {
    const { at, message } = cost;
    reader.problem(at === null ? ["plans"] : [...places.plan(at.plan), places.schemas[at.verb]], message);
    return;
  }
  const plans = spec.plans.map(({ name }, index) => ({ id: `plan-${index}`, name }));
  const naming = { id: "service", name: spec.name, plans, revision: "0", version: "0.0.0" };
  const service: Service = { ...toService(spec, naming), update: nothing, bind: async () => ({}) };
  const tell = ({ path, message, level }: Finding) => {
    const at = placeOf(path, places);
    if (level === "error") reader.problem(at, message);
    else reader.advise(at, message);
  };
  try {
    buildCatalog([service], { areNew: true, isTrial: true }).warnings.forEach(tell);
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    error.findings.forEach(tell);
  }
}

const nothing = async () => undefined;

/** `services[0].plans[1].schemas.service_instance.create.parameters` as a place in the author's file. */
function placeOf(path: string, { plan, schemas }: PlanPlaces): At {
  const [, index, inPlan = ""] = /^services\[0\]\.plans\[(\d+)\]\.?(.*)$/s.exec(path) ?? [];
  if (index === undefined) return stepsOf(path.replace(/^services\[0\]\.?/, ""));
  for (const [place, verb] of Object.entries(schemaVerbs))
    if (inPlan.startsWith(`schemas.${place}.parameters`)) return [...plan(Number(index)), schemas[verb]];
  return [...plan(Number(index)), ...stepsOf(inPlan)];
}

const schemaVerbs = {
  "service_instance.create": "provision",
  "service_instance.update": "update",
  "service_binding.create": "bind",
} as const;

function stepsOf(path: string): At {
  return [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name = ""]) =>
    index === undefined ? name : Number(index),
  );
}
