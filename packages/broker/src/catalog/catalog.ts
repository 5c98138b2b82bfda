import { createHash, hash as hashOf } from "node:crypto";
import {
  BrokerError,
  checkOffering,
  checkUnique,
  draft04,
  type Finding,
  type OfferingIds,
  type ServiceOffering,
  type ServicePlan,
} from "@osbert/protocol";
import type { Schema, Validate } from "@osbert/server/schemas";
import { idProblem, maxCatalogIdBytes } from "../records/ids.js";
import type { PlanDefinition, Service } from "../service/service.js";
import { compileRefusing } from "./compile-refusing.js";
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
  /** The answer to GET /v2/catalog, as it goes out. Made when it is asked for. */
  readonly body: string;
  /** The same, encoded once, when it is first asked for. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Changes with the body. */
  readonly etag: string;
  /** When it was last changed, for all processes that offer it; `null`: that is not known. */
  readonly changedAt: number | null;
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

/** How a catalog is made, for those who make it again and again. */
export interface BuildOptions extends CatalogOptions {
  /**
   * These services were checked before, each by itself and with its schemas, and consist of JSON: they are not checked again but for what no two
   * may have in common, and a schema is compiled by the first request that needs it. Thousands of them would keep a start waiting. Default false.
   */
  readonly areChecked?: boolean;
}

/**
 * Checks the services against every rule of the specification; throws a CatalogError with all faults and their paths. What cannot be said
 * in the draft that the catalog speaks is a warning. A service that was in a catalog before, the very same object, is not compiled again.
 */
export function buildCatalog(services: readonly Service[], options: BuildOptions = {}): BrokerCatalog {
  const built = services.map((service) => buildService(service, options));
  const findings = [...checkUnique(built.map(({ ids }) => ids))];
  for (const [index, { findings: found }] of built.entries())
    for (const { path, ...rest } of found) findings.push({ ...rest, path: `services[${index}]${path}` });
  const errors = findings.filter(({ level }) => level === "error");
  if (errors.length > 0) throw new CatalogError(errors);
  let bytes: Uint8Array<ArrayBuffer> | undefined;
  const answer = () => {
    bytes ??= answerOf(built);
    return bytes;
  };
  const hash = createHash("sha256");
  const offered = new Map<string, OfferedService>();
  for (const each of built) {
    hash.update(each.hash);
    offered.set(each.ids.id, each.offered);
  }
  return {
    services: offered,
    retired: new Map(),
    get body() {
      return Buffer.from(answer()).toString();
    },
    get bytes() {
      return answer();
    },
    etag: `"${hash.digest("base64url").slice(0, 27)}"`,
    changedAt: null,
    warnings: findings.filter(({ level }) => level === "warning"),
  };
}

/** Put together of bytes alone: as texts, thousands of services would be there three times for a moment. */
function answerOf(built: readonly BuiltService[]): Uint8Array<ArrayBuffer> {
  const [head, tail] = ['{"services":[', "]}"].map((text) => Buffer.from(text)) as [Buffer, Buffer];
  const commas = Math.max(0, built.length - 1);
  const length = built.reduce((sum, { bytes }) => sum + bytes.length, head.length + commas + tail.length);
  const answer = new Uint8Array(length);
  answer.set(head);
  let at = head.length;
  for (const [index, { bytes }] of built.entries()) {
    if (index > 0) answer[at++] = comma;
    answer.set(bytes, at);
    at += bytes.length;
  }
  answer.set(tail, at);
  return answer;
}

const comma = ",".charCodeAt(0);

/** The same catalog but for this. Its answer, which may be large, is not made for that. */
export function catalogWith(
  catalog: BrokerCatalog,
  changes: Partial<Pick<BrokerCatalog, "services" | "retired" | "changedAt">>,
): BrokerCatalog {
  const members = { ...Object.getOwnPropertyDescriptors(catalog), ...Object.getOwnPropertyDescriptors(changes) };
  return Object.defineProperties({}, members) as BrokerCatalog;
}

/** A service as a catalog needs it, and what is to be said of it alone: paths are what stands behind the service's own. */
interface BuiltService {
  readonly draft: SchemaDraft | undefined;
  readonly offered: OfferedService;
  /** Its part of the answer. Outside of the heap of JavaScript, which is looked through again and again. */
  readonly bytes: Uint8Array;
  readonly hash: string;
  readonly ids: OfferingIds;
  readonly findings: readonly Finding[];
}

const builtBefore = new WeakMap<Service, BuiltService>();

function buildService(service: Service, options: BuildOptions): BuiltService {
  const before = builtBefore.get(service);
  if (before !== undefined && before.draft === options.schemaDraft) return before;
  const findings: Finding[] = [];
  const offering = toOffering(service, (schema, place) => publish(schema, place, options, findings));
  findings.push(...checkIds(offering, service.revision), ...checkFunctions(service));
  const text = JSON.stringify(offering);
  const bytes = Buffer.from(text);
  const offered =
    options.areChecked === true
      ? new OfferedWhenNeeded(service, bytes)
      : offer(service, offering, (schema, what, place) => {
          try {
            return schema === undefined ? anything : compileRefusing(schema, what);
          } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            findings.push({ level: "error", path: place, message });
            return anything;
          }
        });
  const { id, name, plans } = offering;
  const built: BuiltService = {
    draft: options.schemaDraft,
    offered,
    bytes,
    hash: hashOf("sha256", bytes, "base64url"),
    ids: { id, name, planIds: plans.map((plan) => plan.id) },
    findings: [
      ...(options.areChecked === true ? [] : checkOffering(JSON.parse(text))),
      ...findings.map(({ path, ...rest }) => ({ ...rest, path: path === "" ? "" : `.${path}` })),
    ],
  };
  // What is refused may be an object that its author mends.
  if (built.findings.every(({ level }) => level !== "error")) builtBefore.set(service, built);
  return built;
}

/** Of thousands of services, few are asked for: of the others there is no more than their part of the answer. */
class OfferedWhenNeeded implements OfferedService {
  readonly service: Service;
  readonly #bytes: Buffer;
  #made: OfferedService | undefined;

  constructor(service: Service, bytes: Buffer) {
    this.service = service;
    this.#bytes = bytes;
  }

  get offering(): ServiceOffering {
    return this.#offered().offering;
  }

  get plans(): ReadonlyMap<string, OfferedPlan> {
    return this.#offered().plans;
  }

  get validateState(): Validate {
    return this.#offered().validateState;
  }

  get validateBindingState(): Validate {
    return this.#offered().validateBindingState;
  }

  #offered(): OfferedService {
    this.#made ??= offer(this.service, JSON.parse(this.#bytes.toString()) as ServiceOffering, compiledWhenNeeded);
    return this.#made;
  }
}

function compiledWhenNeeded(schema: Schema | undefined, what: string): Validate {
  if (schema === undefined) return anything;
  let compiled: Validate | undefined;
  return (value) => {
    compiled ??= compileRefusing(schema, what);
    return compiled(value);
  };
}

/** What is offered before a source has said so. */
export const unknownCatalog: BrokerCatalog = {
  services: new Map(),
  retired: new Map(),
  body: "",
  bytes: new Uint8Array(),
  etag: "",
  changedAt: null,
  warnings: [],
};

/** Throws a 503 while nobody knows what is offered: an empty catalog would be taken for the truth. */
export function knownCatalog(catalog: BrokerCatalog): BrokerCatalog {
  if (catalog !== unknownCatalog) return catalog;
  throw new BrokerError("unavailable", "what this broker offers is not known yet; ask again later", {
    retryAfterSeconds: 5,
  });
}

function publish(schema: Schema, path: string, options: BuildOptions, findings: Finding[]) {
  const { schemaDraft = "draft-04", areChecked = false } = options;
  try {
    // What an author wrote in code may hold an `undefined`: once to JSON and back.
    const written = areChecked ? schema : JSON.parse(JSON.stringify(schema));
    const { schema: published, losses } = publishedSchema(written, schemaDraft);
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
  const gone: (readonly [string, OfferedService])[] = [];
  for (const known of [present.retired, present.services])
    for (const [id, offered] of known) if (!next.services.has(id)) gone.push([id, offered]);
  return catalogWith(next, { retired: new Map(gone.slice(-mostRetired)) });
}

/** Compiles a schema, or notes where one that is none stands. */
type Compile = (schema: Schema | undefined, what: string, place: string) => Validate;

/** Instances are found by the ids of their service and plan: those must be such that every store keeps them alike. */
function checkIds({ id, plans }: ServiceOffering, revision: unknown): Finding[] {
  const ids: readonly (readonly [path: string, text: unknown])[] = [
    ["id", id],
    ["revision", revision],
    ...plans.map((plan, at) => [`plans[${at}].id`, plan.id] as const),
  ];
  return ids.flatMap(([path, text]) => {
    // What else is no text breaks another rule, which says so.
    const isWrong = typeof text !== "string" && text !== undefined && path === "revision";
    const message = typeof text === "string" ? idProblem(text, maxCatalogIdBytes) : isWrong ? "must be a text" : null;
    return message === null ? [] : [{ level: "error" as const, path, message }];
  });
}

/** What the catalog promises must have a function behind it. */
function checkFunctions(service: Service): Finding[] {
  const findings: Finding[] = [];
  const needs = (fn: "bind" | "update", why: string) => {
    if (typeof service[fn] !== "function")
      findings.push({ level: "error", path: "", message: `${why}, but there is no ${fn} function` });
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
