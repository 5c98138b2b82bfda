import type { BindingInfo, InstanceInfo } from "@osbert/broker";
import type { JsonObject, MaintenanceInfo, OriginatingIdentity } from "@osbert/protocol";
import type { Action, BundleSpec } from "../formats/bundle-spec.js";
import { allParameterNames, parameterNames } from "../formats/hide-parameters.js";
import type { JobSecrets } from "../runners/runner.js";
import { secretValues } from "./operator-secrets.js";

/** What an action is about, as the broker tells it. */
export interface ActionFacts {
  readonly action: Action;
  readonly service: { readonly id: string; readonly name: string };
  readonly plan: { readonly id: string; readonly name: string };
  readonly instance: InstanceInfo;
  readonly identity: OriginatingIdentity | null;
  /** What the user sent for this action; of deprovision what the instance has, of unbind what its binding was made with. */
  readonly parameters: JsonObject;
  /** What the instance has, before this action; of those that do not ask for it, nothing. */
  readonly instanceParameters: JsonObject;
  /** What earlier actions have left: of the instance, and of the binding. */
  readonly state: BundleState;
  readonly bindingState: BundleState;
  readonly binding: BindingInfo | null;
  readonly previous: { readonly plan: string; readonly parameters: JsonObject } | null;
  readonly maintenance: MaintenanceInfo | null;
}

/**
 * What is kept between the actions of a bundle. `credentials` are those that a classic bundle gave at provision (or at bind): its later
 * actions want them back.
 */
export interface BundleState {
  readonly state: JsonObject;
  readonly credentials: JsonObject | null;
}

/** As `Service.state`: a bundle may keep any object. */
export const bundleStateSchema = {
  type: "object",
  properties: { state: { type: "object" }, credentials: { type: ["object", "null"] } },
} as const;

export const nothingKept: BundleState = { state: {}, credentials: null };

/** What a bundle gets, with the secrets that it may have. `runAction` adds the action, its idempotency key and the bundle's version. */
export function actionInput(spec: BundleSpec, facts: ActionFacts, secrets: JobSecrets): JsonObject {
  const values = secretValues(secrets);
  const isClassic = spec.format === "apb";
  const plan = spec.plans.find(({ name }) => name === facts.plan.name);
  // To a classic bundle they are variables, which all its actions may use.
  const names = plan === undefined ? [] : isClassic ? allParameterNames(plan) : parameterNames(plan, facts.action);
  const given = Object.entries(values).filter(([key]) => names.includes(key));
  const filled = { ...facts, parameters: { ...facts.parameters, ...Object.fromEntries(given) } };
  if (isClassic) return classicInput(filled);
  return Object.keys(values).length === 0 ? ownInput(filled) : { ...ownInput(filled), secrets: values };
}

function ownInput(facts: ActionFacts): JsonObject {
  const { action, service, plan, instance, identity, binding, previous, maintenance, state, bindingState } = facts;
  // Nobody sends any for these two: what such an action needs, its bundle has said in its state.
  const parameters = action === "deprovision" || action === "unbind" ? {} : facts.parameters;
  const { id, platform, organizationGuid, spaceGuid, context } = instance;
  return {
    service,
    plan,
    parameters,
    instance: { id, platform, organizationGuid, spaceGuid, context },
    ...(binding !== null && { binding: bindingInput(binding), bindingState: bindingState.state }),
    ...(previous !== null && { previous }),
    ...(maintenance !== null && { maintenance: { version: maintenance.version } }),
    state: state.state,
    identity: identityInput(identity),
  };
}

/**
 * The extra variables of a classic bundle: those of the user beside those of the broker, which count more. Its playbooks have no other
 * memory of what an instance was asked for with: an update runs with all parameters that the instance is to have, a deprovision with those
 * that it has, and an unbind finds them in a variable of their own.
 */
function classicInput(facts: ActionFacts): JsonObject {
  const { action, service, plan, parameters, instanceParameters, instance, identity, binding } = facts;
  const { state, bindingState } = facts;
  const { context } = instance;
  return {
    ...(action === "update" && instanceParameters),
    ...parameters,
    ...(action === "unbind" && { provision_params: instanceParameters }),
    cluster: context.platform === "openshift" ? "openshift" : "kubernetes",
    namespace: typeof context.namespace === "string" ? context.namespace : "",
    _apb_plan_id: plan.name,
    _apb_service_class_id: service.id,
    _apb_service_instance_id: instance.id,
    _apb_last_requesting_user: identity === null ? "" : userOf(identity),
    ...(binding !== null && { _apb_service_binding_id: binding.id }),
    ...(action !== "provision" && state.credentials !== null && { _apb_provision_creds: state.credentials }),
    ...(action === "unbind" && bindingState.credentials !== null && { _apb_bind_creds: bindingState.credentials }),
    // What bind has left is the binding's.
    ...(action !== "provision" && { _apb_state: { ...state.state, ...bindingState.state } }),
  };
}

function bindingInput({ id, appGuid, bindResource, context }: BindingInfo): JsonObject {
  return { id, appGuid, bindResource, context };
}

function identityInput(identity: OriginatingIdentity | null): JsonObject | null {
  return identity === null ? null : { platform: identity.platform, value: identity.value };
}

function userOf({ value }: OriginatingIdentity): string {
  for (const name of ["username", "user_name", "user_id"]) {
    const text = value[name];
    if (typeof text === "string") return text;
  }
  return "";
}
