import { isKeepable, limits } from "@osbert/journal";
import type { BundleSpec, PlanSpec, SpecProblem } from "../formats/bundle-spec.js";
import {
  fingerprint,
  legacyName,
  legacyPlanId,
  legacyServiceId,
  planIdOfName,
  serviceIdOfPlace,
} from "../identity/service-id.js";
import { maintenanceVersion } from "./maintenance-version.js";
import type { ChannelRef, Revision } from "./observation.js";
import {
  type CurrentRevision,
  maxHistory,
  maxKnownPlans,
  type PlanIdentity,
  type RefusalCode,
  type RevisionFacts,
  type ServiceRecord,
  type TombstoneRecord,
} from "./records.js";
import type { Rules } from "./rules.js";

/** What a revision is judged by, besides itself. */
export interface AdmissionFacts {
  readonly ref: ChannelRef;
  /** What the ref is known as. */
  readonly known: ServiceRecord | TombstoneRecord | null;
  /** The source's first name. */
  readonly source: string;
  readonly rules: Rules;
  /** Ids of plans that have instances. */
  readonly plansInUse: ReadonlySet<string>;
  readonly now: number;
}

export type Admission =
  | {
      readonly kind: "admitted";
      /** What is kept of it beside what was read. */
      readonly facts: RevisionFacts;
      readonly idFrom: ServiceRecord["idFrom"];
      readonly current: CurrentRevision;
      readonly history: ServiceRecord["history"];
      readonly knownPlans: readonly PlanIdentity[];
      readonly remark: "unchanged" | "downgraded" | null;
    }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly problems: readonly SpecProblem[] };

/** Whether a revision becomes the current one of its spec, and under which ids. Ids that were given once are never given up. */
export function admitRevision(revision: Revision, facts: AdmissionFacts): Admission {
  const { spec, digest, artifact, parserVersion } = revision;
  const { known, now } = facts;
  if (spec.plans.length === 0) return refused("no plans", "plans", "a bundle needs at least one plan");
  const service = serviceIdentity(spec, facts);
  if (service.kind === "refused") return service;
  const other = givenAnotherId(spec, facts);
  if (other !== undefined)
    return refused(
      "id changed",
      `plans.${other.plan}.id`,
      `the id is ${other.id} now, and platforms know the plan ${other.plan} as ${other.known}; give it that id again, or leave it out; another plan needs another name`,
    );
  const plans = planIdentities(spec, service.id, facts);
  const twice = plans.find((plan, index) => plans.findIndex(({ id }) => id === plan.id) < index);
  if (twice !== undefined) {
    const first = plans.find(({ id }) => id === twice.id);
    return refused(
      "plan id twice",
      `plans.${twice.name}.id`,
      `plans ${first?.name} and ${twice.name} would both have the id ${twice.id}; give one of them an id of its own`,
    );
  }
  const alike = plans.find(({ id }) => id === service.id);
  if (alike !== undefined)
    return refused(
      "plan id twice",
      `plans.${alike.name}.id`,
      `plan ${alike.name} would have the id of the service itself; give it an id of its own`,
    );
  const unkeepable = plans.find(({ id }) => !isKeepableId(id));
  if (unkeepable !== undefined)
    return refused("invalid", `plans.${unkeepable.name}.id`, `an id has 1 to ${maxIdLength} letters`);
  const history = known?.kind === "service" ? known.history : [];
  const before = known?.kind === "service" ? known.current : null;
  const version = maintenanceVersion(spec.bundleVersion, digest, history, before?.version ?? null);
  if (version.kind === "not semantic")
    return refused("version", "bundleVersion", "bundleVersion is not a semantic version, such as 1.2.0");
  const dropped = droppedInUse(before, plans, facts);
  if (dropped.length > 0 && !(known?.kind === "service" && known.confirmed === digest))
    return {
      kind: "refused",
      code: "plans in use",
      problems: dropped.map(({ name, id }) =>
        problem(
          `plans.${name}`,
          `plan ${name} (${id}) has instances and is not in it; confirm it, or put the plan back`,
        ),
      ),
    };
  const specFingerprint = fingerprint(spec);
  const kept: RevisionFacts = {
    serviceId: service.id,
    ref: facts.ref,
    version: version.version,
    plans,
    fingerprint: specFingerprint,
    readAt: now,
  };
  // Before it is accepted, so that a commit is never refused by the store for its size.
  if (Buffer.byteLength(JSON.stringify({ digest, spec, artifact, parserVersion, ...kept })) > limits.jsonBytes - 1_024)
    return refused("too large", "", `the bundle's description is larger than ${limits.jsonBytes} bytes`);
  const name = facts.rules.identity.scheme === "legacy" ? legacyName(facts.source, spec.name) : spec.name;
  const current = { digest, version: version.version, at: now, name, fingerprint: specFingerprint, plans };
  return {
    kind: "admitted",
    facts: kept,
    idFrom: service.from,
    current,
    history: [{ digest, version: version.version, at: now }, ...history.filter((kept) => kept.digest !== digest)].slice(
      0,
      maxHistory,
    ),
    knownPlans: remembered(known?.knownPlans ?? [], plans),
    remark: version.remark,
  };
}

/** F5-19: plans with instances that a revision lacks, if they are more than it may lack. */
function droppedInUse(
  before: CurrentRevision | null,
  plans: readonly PlanIdentity[],
  { plansInUse, rules }: AdmissionFacts,
): readonly PlanIdentity[] {
  const used = (before?.plans ?? []).filter(({ id }) => plansInUse.has(id));
  const dropped = used.filter(({ id }) => !plans.some((plan) => plan.id === id));
  return dropped.length > rules.guard.planShare * used.length ? dropped : [];
}

type ServiceIdentity =
  | { readonly kind: "identity"; readonly id: string; readonly from: ServiceRecord["idFrom"] }
  | (Admission & { readonly kind: "refused" });

function serviceIdentity(spec: BundleSpec, { known, ref, source, rules }: AdmissionFacts): ServiceIdentity {
  if (known !== null) {
    if (spec.id !== null && spec.id !== known.serviceId)
      return refused(
        "id changed",
        "id",
        `the id is ${spec.id} now, and platforms know the service as ${known.serviceId}; give it that id again, or leave it out`,
      );
    return { kind: "identity", id: known.serviceId, from: known.idFrom };
  }
  if (spec.id !== null)
    return isKeepableId(spec.id)
      ? { kind: "identity", id: spec.id, from: "spec" }
      : refused("invalid", "id", `an id has 1 to ${maxIdLength} letters`);
  if (rules.identity.scheme === "legacy")
    return { kind: "identity", id: legacyServiceId(legacyName(source, spec.name)), from: "legacy" };
  return {
    kind: "identity",
    id: serviceIdOfPlace(rules.identity.namespace, { source, repository: ref.repository, channel: ref.channel }),
    from: "place",
  };
}

/** F5-41: a plan that its service has had, with an id that no plan of it has had: to platforms, its instances would be of a plan that is gone. */
function givenAnotherId(spec: BundleSpec, { known }: AdmissionFacts) {
  const plans = known?.knownPlans ?? [];
  const before = idBefore(spec, plans);
  for (const plan of spec.plans) {
    const id = before(plan);
    if (plan.id !== null && id !== undefined && plans.every((each) => each.id !== plan.id))
      return { plan: plan.name, id: plan.id, known: id };
  }
  return undefined;
}

/** F5-41: a plan is known by its id, else by its name, else by an earlier name that no other plan has now. */
function planIdentities(spec: BundleSpec, serviceId: string, facts: AdmissionFacts): readonly PlanIdentity[] {
  const before = idBefore(spec, facts.known?.knownPlans ?? []);
  const { identity } = facts.rules;
  const derived = ({ name }: PlanSpec) =>
    identity.scheme === "legacy"
      ? legacyPlanId(legacyName(facts.source, spec.name), name)
      : planIdOfName(serviceId, name, identity.namespace);
  return spec.plans.map((plan) => ({ name: plan.name, id: plan.id ?? before(plan) ?? derived(plan) }));
}

/** The id that platforms know a plan by, as far as its names tell. */
function idBefore({ plans }: BundleSpec, knownPlans: readonly PlanIdentity[]): (plan: PlanSpec) => string | undefined {
  const known = new Map(knownPlans.map(({ name, id }) => [name, id]));
  const present = new Set(plans.map(({ name }) => name));
  return ({ name, previousNames }) =>
    known.get(name) ?? previousNames.filter((each) => !present.has(each)).flatMap((each) => known.get(each) ?? [])[0];
}

/** The present ones are the last to be forgotten. */
function remembered(known: readonly PlanIdentity[], present: readonly PlanIdentity[]): readonly PlanIdentity[] {
  const names = new Set(present.map(({ name }) => name));
  return [...present, ...known.filter(({ name }) => !names.has(name))].slice(
    0,
    Math.max(maxKnownPlans, present.length),
  );
}

const maxIdLength = 60;

/** Also in a label, in any alphabet. */
function isKeepableId(id: string): boolean {
  return id.length > 0 && id.length <= maxIdLength && isKeepable(id);
}

function refused(code: RefusalCode, path: string, message: string): Admission & { readonly kind: "refused" } {
  return { kind: "refused", code, problems: [problem(path, message)] };
}

function problem(path: string, message: string): SpecProblem {
  return { path, message, line: null, advice: false };
}
