import { createHash } from "node:crypto";
import {
  BrokerError,
  checkCatalog,
  draft04,
  type Finding,
  type ServiceOffering,
  type ServicePlan,
} from "@osbert/protocol";
import { compileSchema, type Schema, type Validate } from "@osbert/server/schemas";
import { idProblem, maxCatalogIdBytes } from "../records/ids.js";
import type { PlanDefinition, Service } from "../service/service.js";
import { schemaPlace, toOffering } from "./offering.js";
import { publishedSchema, type SchemaDraft } from "./published-schema.js";

/** A plan with everything that deciding about it takes. */
export interface OfferedPlan {
  readonly service: Service;
  readonly offering: ServiceOffering;
  readonly name: string;
  readonly definition: PlanDefinition;
  readonly plan: ServicePlan;
  /** Checks of parameters, where there is a schema. */
  readonly validate: { readonly provision: Validate; readonly update: Validate; readonly bind: Validate };
}

export interface OfferedService {
  readonly service: Service;
  readonly offering: ServiceOffering;
  readonly plans: ReadonlyMap<string, OfferedPlan>;
  /** Checks of what the author's functions return as state. */
  readonly validateState: Validate;
  readonly validateBindingState: Validate;
}

/** What the broker offers, checked and compiled. Immutable: a change is another one. */
export interface BrokerCatalog {
  /** By their ids. */
  readonly services: ReadonlyMap<string, OfferedService>;
  /** Services that were offered before: their instances are still deleted by their functions. */
  readonly retired: ReadonlyMap<string, OfferedService>;
  /** The answer to GET /v2/catalog, as it goes out. */
  readonly body: string;
  /** The same, encoded once. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Changes with the body. */
  readonly etag: string;
  /** What the specification advises against, but allows. */
  readonly warnings: readonly Finding[];
}

/** Thrown where services break the specification. The message names every fault and its place. */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
  /** Every fault, with its place. */
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super(
      `the catalog breaks ${findings.length} rule${findings.length === 1 ? "" : "s"} of the specification:\n${findings.map(line).join("\n")}`,
    );
    this.findings = findings;
  }
}

/** How a catalog is published. */
export interface CatalogOptions {
  /** The draft of JSON Schema in which the schemas of parameters are published. Default: `draft-04`. */
  readonly schemaDraft?: SchemaDraft;
}

/**
 * Checks the services against every rule of the specification; throws a CatalogError with all faults and their paths. What cannot be said
 * in the draft that the catalog speaks is a warning.
 */
export function buildCatalog(services: readonly Service[], options: CatalogOptions = {}): BrokerCatalog {
  const findings: Finding[] = [];
  const offerings = services.map((service, index) =>
    toOffering(service, (schema, place) => publish(schema, `services[${index}].${place}`, options, findings)),
  );
  const body = JSON.stringify({ services: offerings });
  findings.push(
    ...checkCatalog(JSON.parse(body)),
    ...offerings.flatMap((offering, index) => checkIds(offering, services[index]?.revision, index)),
    ...services.flatMap(checkFunctions),
  );
  const offered = services.map((service, index) => {
    const compile: Compile = (schema, what, place) => {
      if (schema === undefined) return anything;
      try {
        return compileSchema(schema, what);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        findings.push({ level: "error", path: `services[${index}].${place}`, message });
        return anything;
      }
    };
    return offer(service, offerings[index] as ServiceOffering, compile);
  });
  const errors = findings.filter(({ level }) => level === "error");
  if (errors.length > 0) throw new CatalogError(errors);
  return {
    services: new Map(offered.map((service) => [service.offering.id, service])),
    retired: new Map(),
    body,
    bytes: new TextEncoder().encode(body),
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`,
    warnings: findings.filter(({ level }) => level === "warning"),
  };
}

/** What is offered before a source has said so. */
export const unknownCatalog: BrokerCatalog = {
  services: new Map(),
  retired: new Map(),
  body: "",
  bytes: new Uint8Array(),
  etag: "",
  warnings: [],
};

/** Throws a 503 while nobody knows what is offered: an empty catalog would be taken for the truth. */
export function knownCatalog(catalog: BrokerCatalog): BrokerCatalog {
  if (catalog !== unknownCatalog) return catalog;
  throw new BrokerError("unavailable", "what this broker offers is not known yet; ask again later", {
    retryAfterSeconds: 5,
  });
}

function publish(schema: Schema, path: string, { schemaDraft = "draft-04" }: CatalogOptions, findings: Finding[]) {
  try {
    const { schema: published, losses } = publishedSchema(schema, schemaDraft);
    for (const { pointer, message } of losses) findings.push({ level: "warning", path: `${path}#${pointer}`, message });
    return published;
  } catch (error) {
    findings.push({ level: "error", path, message: error instanceof Error ? error.message : String(error) });
    return { $schema: draft04 };
  }
}

/** A source may drop services for as long as the process lives. */
const mostRetired = 1_000;

/** The next catalog, which knows the services that only the present one has. Pure. */
export function retiring(present: BrokerCatalog, next: BrokerCatalog): BrokerCatalog {
  const before = [...present.retired, ...present.services];
  return { ...next, retired: new Map(before.filter(([id]) => !next.services.has(id)).slice(-mostRetired)) };
}

/** Compiles a schema, or notes where one that is none stands. */
type Compile = (schema: Schema | undefined, what: string, place: string) => Validate;

/** Instances are found by the ids of their service and plan: those must be such that every store keeps them alike. */
function checkIds({ id, plans }: ServiceOffering, revision: unknown, index: number): Finding[] {
  const ids: readonly (readonly [path: string, text: unknown])[] = [
    [`services[${index}].id`, id],
    [`services[${index}].revision`, revision],
    ...plans.map((plan, at) => [`services[${index}].plans[${at}].id`, plan.id] as const),
  ];
  return ids.flatMap(([path, text]) => {
    // What else is no text breaks another rule, which says so.
    const isWrong = typeof text !== "string" && text !== undefined && path.endsWith(".revision");
    const message = typeof text === "string" ? idProblem(text, maxCatalogIdBytes) : isWrong ? "must be a text" : null;
    return message === null ? [] : [{ level: "error" as const, path, message }];
  });
}

/** What the catalog promises must have a function behind it. */
function checkFunctions(service: Service, index: number): Finding[] {
  const findings: Finding[] = [];
  const path = `services[${index}]`;
  const needs = (fn: "bind" | "update", why: string) => {
    if (typeof service[fn] !== "function")
      findings.push({ level: "error", path, message: `${why}, but there is no ${fn} function` });
  };
  const plans: readonly PlanDefinition[] = Object.values(service.plans ?? {});
  if (service.bindable || plans.some(({ bindable }) => bindable)) needs("bind", "can be bound");
  if (service.planUpdateable || plans.some(({ planUpdateable }) => planUpdateable))
    needs("update", "plans can be changed");
  if (plans.some(({ update }) => update !== undefined)) needs("update", "has a schema for updates");
  return findings;
}

function offer(service: Service, offering: ServiceOffering, compile: Compile): OfferedService {
  const plans = new Map<string, OfferedPlan>();
  for (const [index, plan] of offering.plans.entries()) {
    const definition = (service.plans as Record<string, PlanDefinition>)[plan.name] as PlanDefinition;
    const compiled = (verb: "provision" | "update" | "bind") =>
      compile(definition[verb], "parameters", schemaPlace(index, verb));
    const validate = { provision: compiled("provision"), update: compiled("update"), bind: compiled("bind") };
    plans.set(plan.id, { service, offering, name: plan.name, definition, plan, validate });
  }
  return {
    service,
    offering,
    plans,
    validateState: compile(service.state, `the state of ${service.name}`, "state"),
    validateBindingState: compile(service.bindingState, `the binding state of ${service.name}`, "bindingState"),
  };
}

const anything: Validate = () => null;

function line({ path, message }: Finding): string {
  return `  ${path === "" ? "the catalog" : path} ${message}`;
}
