import type { ServiceOffering, ServicePlan } from "@osbert/protocol";
import { compileOrRefuse, type Schema, type Validate, type ValidateOrRefuse } from "@osbert/server/schemas";
import type { PlanDefinition, Service } from "../service/service.js";
import { schemaPlace } from "./offering.js";

/** A plan with everything that deciding about it takes. */
export interface OfferedPlan {
  readonly service: Service;
  readonly offering: ServiceOffering;
  readonly name: string;
  readonly definition: PlanDefinition;
  readonly plan: ServicePlan;
  /** Checks of parameters, where there is a schema. None throws. */
  readonly validate: {
    readonly provision: ValidateOrRefuse;
    readonly update: ValidateOrRefuse;
    readonly bind: ValidateOrRefuse;
  };
}

export interface OfferedService {
  readonly service: Service;
  readonly offering: ServiceOffering;
  readonly plans: ReadonlyMap<string, OfferedPlan>;
  /** Checks of what the author's functions return as state. */
  readonly validateState: Validate;
  readonly validateBindingState: Validate;
}

/** Compiles a schema, or notes where one that is none stands. */
export type Compile = (schema: Schema | undefined, what: string, place: string) => ValidateOrRefuse;

/** A service with all that deciding about it takes. */
export function offer(service: Service, offering: ServiceOffering, compile: Compile): OfferedService {
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

/**
 * The part of the catalog's answer that is a service's. Outside of the heap of JavaScript, which is looked through again and again. It is the same
 * bytes always; where they lie is told by whoever puts parts together last (see catalog-blocks.ts).
 */
export interface AnswerPart {
  bytes: Uint8Array;
}

/** Where there is no schema. */
export const anything: Validate = () => null;

/**
 * Of thousands of services, few are asked for: of the others there is no more than their part of the answer. What was made of one is forgotten
 * when enough others were asked for since.
 */
export class OfferedWhenNeeded implements OfferedService {
  readonly service: Service;
  readonly #part: AnswerPart;
  #made: OfferedService | undefined;

  constructor(service: Service, part: AnswerPart) {
    this.service = service;
    this.#part = part;
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

  forget(): void {
    this.#made = undefined;
  }

  #offered(): OfferedService {
    if (this.#made === undefined) {
      this.#made = offer(
        this.service,
        JSON.parse(new TextDecoder().decode(this.#part.bytes)) as ServiceOffering,
        compiledWhenNeeded,
      );
      madeLast[nextMade]?.forget();
      madeLast[nextMade] = this;
      nextMade = (nextMade + 1) % mostMade;
    }
    return this.#made;
  }
}

/** So many are at hand, in this process. Who looks for something in all services, as operators do, would else leave all of them behind. */
const mostMade = 512;
const madeLast: OfferedWhenNeeded[] = [];
let nextMade = 0;

function compiledWhenNeeded(schema: Schema | undefined, what: string): ValidateOrRefuse {
  if (schema === undefined) return anything;
  let compiled: ValidateOrRefuse | undefined;
  return (value, ifTooMuch) => {
    compiled ??= compileOrRefuse(schema, what);
    return compiled(value, ifTooMuch);
  };
}
