import { checkOffering, draft04, type Finding, type OfferingIds, type ServiceOffering } from "@osbert/protocol";
import { checkOrRefuse, compileOrRefuse, type Schema } from "@osbert/server/schemas";
import { idProblem, maxCatalogIdBytes } from "../records/ids.js";
import type { PlanDefinition, Service } from "../service/service.js";
import { type AnswerPart, anything, type OfferedService, OfferedWhenNeeded, offer } from "./offered-service.js";
import { toOffering } from "./offering.js";
import { publishedSchema, type SchemaDraft } from "./published-schema.js";

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
  /**
   * Nobody has an instance of these services as they are: a schema that would take too much work to compile is an error. Else it is a warning, and
   * nothing but parameters is refused: an earlier version may have taken it, and what was made then must still be deleted. Default false.
   */
  readonly areNew?: boolean;
  /**
   * Nobody offers these services: they are only to be judged. Nothing of them is remembered, and no parameters can be checked with what is made. What is remembered by an object, and refers to it, stays
   * until the whole heap is looked through: of thousands that are judged one after the other, with their compiled schemas, that is hundreds of
   * megabytes. Default false.
   */
  readonly isTrial?: boolean;
}

/** A service as a catalog needs it, and what is to be said of it alone: paths are what stands behind the service's own. */
export interface BuiltService {
  readonly draft: SchemaDraft | undefined;
  readonly offered: OfferedService;
  readonly part: AnswerPart;
  readonly ids: OfferingIds;
  readonly findings: readonly Finding[];
}

/** One for all: there are thousands of services with nothing to say of them. */
const noFindings: readonly Finding[] = [];

const encoder = new TextEncoder();

const builtBefore = new WeakMap<Service, BuiltService>();

/** Of a service that was built before, the very same object, what it was then. */
export function buildService(service: Service, options: BuildOptions): BuiltService {
  const before = builtBefore.get(service);
  if (before !== undefined && before.draft === options.schemaDraft) return before;
  const findings: Finding[] = [];
  const offering = toOffering(service, (schema, place) => publish(schema, place, options, findings));
  findings.push(...checkIds(offering, service.revision), ...checkFunctions(service));
  const text = JSON.stringify(offering);
  // In memory of its own, until it is put into a block: a `Buffer` would share that with others, which stay, and would stay with them.
  const part: AnswerPart = { bytes: encoder.encode(text) };
  const offered =
    options.areChecked === true
      ? new OfferedWhenNeeded(service, part)
      : offer(service, offering, (schema, what, place) => {
          try {
            if (schema === undefined) return anything;
            const tooMuch = ({ message }: Error) => {
              findings.push({ level: options.areNew === true ? "error" : "warning", path: place, message });
            };
            if (options.isTrial !== true) return compileOrRefuse(schema, what, tooMuch);
            checkOrRefuse(schema, what, tooMuch);
            return anything;
          } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            findings.push({ level: "error", path: place, message });
            return anything;
          }
        });
  const { id, name, plans } = offering;
  const found = [
    ...(options.areChecked === true ? [] : checkOffering(JSON.parse(text))),
    ...findings.map(({ path, ...rest }) => ({ ...rest, path: path === "" ? "" : `.${path}` })),
  ];
  const built: BuiltService = {
    draft: options.schemaDraft,
    offered,
    part,
    ids: { id, name, planIds: plans.map((plan) => plan.id) },
    findings: found.length === 0 ? noFindings : found,
  };
  // What is refused may be an object that its author mends.
  if (options.isTrial !== true && built.findings.every(({ level }) => level !== "error"))
    builtBefore.set(service, built);
  return built;
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
