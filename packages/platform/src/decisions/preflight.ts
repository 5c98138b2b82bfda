import {
  isBindable,
  isDeeperThan,
  isJsonObject,
  isPlanUpdateable,
  type Json,
  type ServicePlan,
} from "@osbert/protocol";
import type { BrokerHealth, OfferingRecord } from "../records/broker-record.js";
import { type Freeze, freezeOf } from "../records/freeze-record.js";
import type { Phase } from "../records/instance-record.js";
import { isName, nameRule } from "../records/name.js";
import type { PreflightFinding, PreflightReport, PreflightRule } from "../records/preflight-report.js";
import { isVisible, type Visibility } from "../records/visibility-record.js";
import { hasMoreBytes } from "./byte-length.js";

/** What is wanted, as far as it can be looked at before a broker is asked. Plans by id; parameters as JSON text. */
export type PreflightIntent =
  | { readonly op: "create"; readonly plan: string; readonly parameters: string | null }
  | { readonly op: "update"; readonly plan: string | null; readonly parameters: string | null }
  | { readonly op: "refresh" }
  | { readonly op: "upgrade"; readonly version: string; readonly plan?: string }
  | { readonly op: "adopt"; readonly plan: string }
  | { readonly op: "bind"; readonly binding: string; readonly parameters: string | null }
  | { readonly op: "rotate"; readonly binding: string; readonly predecessorExpiresAt: string | null }
  | { readonly op: "unbind" }
  /** `isLocal`: nothing is asked of the broker. */
  | { readonly op: "delete"; readonly isLocal?: boolean };

/** What the intent meets: the state that the queue before it leads to, and this process's copy of the catalog. */
export interface PreflightState {
  readonly space: string;
  readonly name: string;
  readonly brokerName: string;
  /** `undefined`: not registered. */
  readonly health: BrokerHealth | undefined;
  readonly offering: OfferingRecord | undefined;
  /** `null`: there is no instance yet. */
  readonly instance: {
    readonly phase: Phase;
    /** As projected. */
    readonly plan: string;
    readonly usable: boolean;
    readonly bindings: number;
  } | null;
  readonly freezes: readonly Freeze[];
  readonly visibilities: readonly Visibility[];
  /** What was found before: what quotas say, which are counted and not looked at. */
  readonly found?: readonly PreflightFinding[];
  readonly now: number;
  readonly checkParameters: CheckParameters;
}

export type SchemaUse = "create" | "update" | "bind";

/** What a plan's schema says to parameters. `unusable`: the schema itself cannot be read, which is no fault of the user's. */
export type SchemaVerdict =
  | { readonly kind: "fine" }
  | { readonly kind: "violated"; readonly message: string }
  | { readonly kind: "unusable"; readonly message: string };

export type CheckParameters = (plan: ServicePlan, use: SchemaUse, parameters: Json) => SchemaVerdict;

/** Of the text of parameters. */
export const largestParametersBytes = 262_144;
const deepestParameters = 100;

/**
 * Looks ahead (E6): cheap, advisory, made when an intent is taken and again before it is sent. Instances whose offering or plan left the
 * catalog go on: only what would lead to what left is refused (E10-11).
 */
export function preflight(intent: PreflightIntent, state: PreflightState): PreflightReport {
  const findings = together(
    lookAtNames(intent, state),
    lookAtBroker(intent, state),
    lookAtPhase(intent, state),
    lookAtFreezes(intent, state),
    lookAtPlan(intent, state),
    state.found ?? nothing,
  );
  return { ok: findings.every(({ severity }) => severity !== "error"), findings };
}

const nothing: readonly PreflightFinding[] = [];

/** Most looks find nothing: then there is nothing to copy. */
function together(...looks: readonly (readonly PreflightFinding[])[]): readonly PreflightFinding[] {
  const found = looks.filter((findings) => findings.length > 0);
  return found.length === 0 ? nothing : found.flat();
}

function lookAtNames(intent: PreflightIntent, { name }: PreflightState): readonly PreflightFinding[] {
  const isNew = intent.op === "create" || intent.op === "adopt";
  const found = isNew && !isName(name) ? [nameFault("/name", "an instance")] : [];
  const binds = intent.op === "bind" || intent.op === "rotate";
  return binds && !isName(intent.binding) ? [...found, nameFault("/binding", "a binding")] : found;
}

function nameFault(path: string, what: string): PreflightFinding {
  return error("name", `the name of ${what} ${nameRule}`, path);
}

function lookAtBroker(intent: PreflightIntent, { brokerName, health }: PreflightState): readonly PreflightFinding[] {
  if (intent.op === "delete" && intent.isLocal === true) return [];
  if (health === undefined) return [error("broker-unknown", `there is no broker ${brokerName}`)];
  if (health.state !== "failing" && health.state !== "unauthorized") return [];
  const why = health.state === "failing" ? "does not answer" : "refuses the platform's credentials";
  return [warning("broker-unreachable", `the broker ${brokerName} ${why} at present; what is asked of it waits`)];
}

/** Phases in which there is nothing that a broker could change any more, or not yet again. */
const over: ReadonlySet<Phase> = new Set(["deleting", "gone", "abandoned", "unmanaged"]);

const unmanagedHint =
  "its broker was removed: abandon the instance, or adopt it from a broker that is registered and delete it then";

function lookAtPhase(intent: PreflightIntent, { instance }: PreflightState): readonly PreflightFinding[] {
  const { op } = intent;
  if (op === "create") {
    const isFree = instance === null || instance.phase === "gone" || instance.phase === "abandoned";
    return isFree ? [] : [error("phase", `there is an instance of that name, and it is ${instance.phase}`)];
  }
  if (op === "adopt") {
    const isFree = instance === null || ["gone", "abandoned", "unmanaged"].includes(instance.phase);
    return isFree ? [] : [error("phase", `there is an instance of that name, and it is ${instance.phase}`)];
  }
  if (instance === null) return [error("phase", "there is no such instance")];
  if (op === "delete") {
    // Whoever has its broker's name now may be another one.
    const isTaken = instance.phase === "unmanaged" && intent.isLocal !== true;
    return isTaken ? [error("phase", unmanagedHint)] : [];
  }
  if (over.has(instance.phase)) return [error("phase", `the instance is ${instance.phase}`)];
  if (op !== "bind" && op !== "rotate") return [];
  if (instance.phase === "failed") return [error("phase", "the instance could not be created")];
  // P-UPD-07
  return instance.usable ? [] : [error("unusable", "the broker said that the instance cannot be used")];
}

function lookAtFreezes(intent: PreflightIntent, state: PreflightState): readonly PreflightFinding[] {
  const { space, brokerName: broker, instance, freezes, now } = state;
  const plans = [instance?.plan, "plan" in intent ? intent.plan : null].filter((plan) => typeof plan === "string");
  // Whoever may delete an instance may end its bindings.
  const isDelete = intent.op === "delete" || intent.op === "unbind";
  const freeze = freezeOf(freezes, { space, broker, plans, isDelete }, now);
  if (freeze === undefined) return [];
  const message = `changes are frozen by ${freeze.by}: ${freeze.reason}`;
  return [freeze.effect === "reject" ? error("frozen", message) : warning("frozen", message)];
}

function lookAtPlan(intent: PreflightIntent, state: PreflightState): readonly PreflightFinding[] {
  const { offering, instance, health } = state;
  // What is there must always be possible to end, whatever became of the catalog.
  if (intent.op === "delete" || intent.op === "unbind" || health === undefined) return [];
  if (offering === undefined) return [error("offering-unknown", "the broker does not offer it", "/offering")];
  const present = planOf(offering, instance?.plan);
  switch (intent.op) {
    case "create":
    case "adopt": {
      const target = lookAtTarget(offering, intent.plan, state);
      const parameters = intent.op === "create" ? intent.parameters : null;
      return [...target.findings, ...lookAtParameters(state, target.plan, "create", parameters)];
    }
    case "update": {
      if (intent.plan === null || intent.plan === instance?.plan)
        return lookAtParameters(state, present, "update", intent.parameters);
      const target = lookAtTarget(offering, intent.plan, state);
      return [
        ...target.findings,
        ...lookAtPlanChange(offering, present, target.plan, instance?.bindings ?? 0),
        // The broker takes them as parameters of the plan that it changes to.
        ...lookAtParameters(state, target.plan, "update", intent.parameters),
      ];
    }
    case "refresh":
      return [];
    case "upgrade":
      return lookAtUpgrade(intent, instance?.plan, present);
    case "bind":
      return [...lookAtBindable(offering, present), ...lookAtParameters(state, present, "bind", intent.parameters)];
    case "rotate":
      return [...lookAtBindable(offering, present), ...lookAtRotation(intent, present, state.now)];
  }
}

/** A plan that something is to be of, from now on. */
function lookAtTarget(
  record: OfferingRecord,
  id: string,
  { visibilities, brokerName, space }: PreflightState,
): { readonly plan: ServicePlan | undefined; readonly findings: readonly PreflightFinding[] } {
  const plan = planOf(record, id);
  const name = record.offering.name;
  if (record.leftAt !== null)
    return { plan, findings: [error("offering-left", `${name} has left the catalog of its broker`, "/offering")] };
  if (plan === undefined) return { plan, findings: [error("plan-unknown", `${name} has no such plan`, "/plan")] };
  const what = { broker: brokerName, offering: record.offering.id, plan: id };
  if (!isVisible(visibilities, what, [space]))
    return { plan, findings: [error("plan-not-visible", `${name} has no plan ${plan.name} in this space`, "/plan")] };
  const hasLeft = Object.hasOwn(record.plansLeft, id);
  return {
    plan,
    findings: hasLeft ? [error("plan-left", `the plan ${plan.name} has left the catalog of its broker`, "/plan")] : [],
  };
}

function lookAtPlanChange(
  { offering }: OfferingRecord,
  present: ServicePlan | undefined,
  target: ServicePlan | undefined,
  bindings: number,
): readonly PreflightFinding[] {
  const findings: PreflightFinding[] = [];
  // P-UPD-01. Of a plan that nobody knows any more the offering's word counts.
  const isUpdateable = present === undefined ? offering.plan_updateable === true : isPlanUpdateable(offering, present);
  if (!isUpdateable)
    findings.push(
      error("plan-not-updateable", "the broker does not let instances of this plan change their plan", "/plan"),
    );
  if (target !== undefined && bindings > 0 && !isBindable(offering, target))
    findings.push(
      error("bindings-need-plan", `the plan ${target.name} cannot be bound, and the instance has bindings`, "/plan"),
    );
  return findings;
}

function lookAtUpgrade(
  { version, plan }: Extract<PreflightIntent, { readonly op: "upgrade" }>,
  presentId: string | undefined,
  present: ServicePlan | undefined,
): readonly PreflightFinding[] {
  // E10-51
  if (plan !== undefined && plan !== presentId)
    return [error("maintenance-with-plan", "maintenance and plan cannot be changed at once", "/plan")];
  const offered = present?.maintenance_info?.version;
  if (offered === version) return [];
  const message =
    offered === undefined
      ? "the plan has no maintenance version"
      : `the plan's maintenance version is ${offered}, not ${version}`;
  return [error("maintenance-unknown", message, "/maintenance")];
}

/** P-BIND-01. Of a plan that nobody knows any more the offering's word counts. */
function lookAtBindable({ offering }: OfferingRecord, plan: ServicePlan | undefined): readonly PreflightFinding[] {
  const bindable = plan === undefined ? offering.bindable : isBindable(offering, plan);
  return bindable ? [] : [error("plan-not-bindable", "the plan cannot be bound")];
}

/** P-ROT-01, P-ROT-02 */
function lookAtRotation(
  { predecessorExpiresAt }: Extract<PreflightIntent, { readonly op: "rotate" }>,
  plan: ServicePlan | undefined,
  now: number,
): readonly PreflightFinding[] {
  if (plan?.binding_rotatable !== true)
    return [error("binding-not-rotatable", "the broker does not rotate bindings of this plan")];
  const expiresAt = predecessorExpiresAt === null ? Number.NaN : Date.parse(predecessorExpiresAt);
  return expiresAt <= now ? [error("binding-expired", `the binding has expired at ${predecessorExpiresAt}`)] : [];
}

function lookAtParameters(
  { checkParameters }: PreflightState,
  plan: ServicePlan | undefined,
  use: SchemaUse,
  text: string | null,
): readonly PreflightFinding[] {
  if (text === null) return [];
  const path = "/parameters";
  if (hasMoreBytes(text, largestParametersBytes))
    return [error("parameters-too-large", `parameters have at most ${largestParametersBytes} bytes`, path)];
  const parameters = isDeeperThan(text, deepestParameters) ? undefined : parse(text);
  if (!isJsonObject(parameters))
    return [
      error("parameters-not-object", `parameters are a JSON object of at most ${deepestParameters} levels`, path),
    ];
  if (plan === undefined) return [];
  const verdict = checkParameters(plan, use, parameters);
  switch (verdict.kind) {
    case "fine":
      return [];
    case "violated":
      return [error("parameters-schema", verdict.message, path)];
    case "unusable":
      return [warning("schema-unusable", verdict.message, path)];
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function planOf({ offering }: OfferingRecord, id: string | undefined): ServicePlan | undefined {
  return offering.plans.find((plan) => plan.id === id);
}

function error(rule: PreflightRule, message: string, path: string | null = null): PreflightFinding {
  return { severity: "error", rule, path, message };
}

function warning(rule: PreflightRule, message: string, path: string | null = null): PreflightFinding {
  return { severity: "warning", rule, path, message };
}
