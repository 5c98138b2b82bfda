import type { JsonObject } from "@osbert/protocol";
import { compileOrRefuse } from "@osbert/server/schemas";
import { actionInput, type BundleState } from "../catalog/action-input.js";
import { secretValues } from "../catalog/operator-secrets.js";
import type { Action, BundleSpec, PlanSpec } from "../formats/bundle-spec.js";
import { hideInPlan } from "../formats/hide-parameters.js";
import type { JobSecrets } from "../runners/runner.js";
import { AuthorError } from "./author-error.js";

/** What an author says of an action to be run; the rest is made up as a platform would have it. */
export interface LocalRequest {
  readonly action: Action;
  readonly plan: PlanSpec;
  readonly parameters: JsonObject;
  /** What the instance was made with; of no use to a provision. */
  readonly previousParameters: JsonObject;
  readonly instance: string;
  readonly binding: string;
  readonly state: BundleState;
  readonly bindingState: BundleState;
  /** As an operator would give them; those of nobody are left out. */
  readonly secrets?: JobSecrets;
}

/** The input of an action, as the broker would send it. Parameters that it would refuse are thrown as an AuthorError. */
export function localInput(spec: BundleSpec, request: LocalRequest): JsonObject {
  const { action, plan, parameters, previousParameters, state, bindingState, secrets = {} } = request;
  checkParameters(request, new Set(Object.keys(secretValues(secrets))));
  const isOfBinding = action === "bind" || action === "unbind";
  const service = { id: spec.id ?? spec.name, name: spec.name };
  const planId = plan.id ?? plan.name;
  const context = { platform: "osbert-bundle" };
  const facts = {
    ...{ action, service, plan: { id: planId, name: plan.name }, parameters, state, bindingState },
    instanceParameters: previousParameters,
    identity: null,
    instance: {
      ...{ id: request.instance, platform: "", serviceId: service.id, planId, context },
      ...{ organizationGuid: "local-organization", spaceGuid: "local-space" },
    },
    binding: isOfBinding ? { id: request.binding, appGuid: "local-app", bindResource: {}, context } : null,
    previous: action === "update" ? { plan: plan.name, parameters: previousParameters } : null,
    maintenance: null,
  };
  return actionInput(spec, facts, secrets);
}

/** The plan of that name; without one, the first. */
export function planNamed({ plans }: BundleSpec, name: string | undefined): PlanSpec {
  const plan = name === undefined ? plans[0] : plans.find((each) => each.name === name);
  if (plan !== undefined) return plan;
  throw new AuthorError(`there is no plan ${name}; there are ${plans.map((each) => each.name).join(", ")}`);
}

function checkParameters({ action, plan, parameters }: LocalRequest, hidden: ReadonlySet<string>): void {
  if (action === "deprovision" || action === "unbind") return;
  const schema = hideInPlan(plan, hidden).schemas[action];
  const fault = schema === null ? null : compileOrRefuse(schema, "parameters")(parameters);
  if (fault !== null) throw new AuthorError(`the broker would refuse this ${action}: ${fault}`);
}
