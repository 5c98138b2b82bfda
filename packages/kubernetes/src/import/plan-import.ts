import type { Applications } from "../applications/applications.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { managedBy, managedByLabel } from "../flows/desired-objects.js";
import { type PredecessorObjects, predecessorLabels } from "./predecessor-objects.js";
import { type FoundInstance, readServiceInstance } from "./service-instance.js";

/** How the application broker made services: of services of applications, or of whole applications with a plan for each service. */
export type PredecessorMapping = "services" | "applications";

/** An instance that is to be taken over. */
export interface PlannedInstance extends FoundInstance {
  readonly mapping: PredecessorMapping;
  /** Of its namespace. */
  readonly namespaceUid: string;
  /** `null`: no events come with it. */
  readonly flow: PlannedFlow | null;
}

export interface PlannedFlow {
  readonly application: string;
  /** The id of the application's service. */
  readonly service: string;
  /** The Subscription that brings its events. `null`: there is none, and one is made as for every flow. */
  readonly subscription: SeenOnce | null;
  /** The Broker that they end in, which was there before. `null`: there is none, or it is ours. */
  readonly broker: Pick<SeenOnce, "uid"> | null;
}

export interface SeenOnce {
  readonly name: string;
  readonly uid: string;
}

/**
 * What a person should know of. `left out`: it is not taken over. `to do`: it is left as it is, and somebody has to decide on it. `note`: it is
 * taken over, and something about it is not as one would think.
 */
export interface ImportFinding {
  readonly level: "left out" | "to do" | "note";
  /** Such as "ServiceInstance shop/orders". */
  readonly object: string;
  readonly message: string;
}

export interface ImportPlan {
  readonly instances: readonly PlannedInstance[];
  readonly findings: readonly ImportFinding[];
}

export interface ImportFacts {
  readonly applications: Pick<Applications, "service" | "isGranted">;
  /** The name under which the platform knew the application broker. */
  readonly broker: string;
}

/** Pure: what is taken over of what was read, in which form, and what is not and why. */
export function planImport(found: PredecessorObjects, { applications, broker }: ImportFacts): ImportPlan {
  const findings: ImportFinding[] = [];
  const catalog = { classes: byPlace(found.classes), plans: byPlace(found.plans) };
  const namespaces = byPlace(found.namespaces);
  const brokers = new Map(found.brokers.map((object) => [object.metadata.namespace ?? "", object]));
  const subscriptions = found.subscriptions.filter(({ metadata }) => metadata.labels?.[managedByLabel] !== managedBy);
  const taken: (Omit<PlannedInstance, "flow"> & { readonly of: PlannedService })[] = [];
  for (const object of sorted(found.instances)) {
    const name = nameOf(object);
    const read = readServiceInstance(object, catalog, broker);
    if (read.kind === "foreign") continue;
    const leftOut = (message: string) => void findings.push({ level: "left out", object: name, message });
    if (read.kind === "unusable") {
      leftOut(read.why);
      continue;
    }
    const { instance } = read;
    const namespace = namespaces.get(`/${instance.namespace}`);
    const of = serviceOf(instance, applications);
    if (of === undefined) leftOut(`no application offers service ${instance.serviceId} with plan ${instance.planId}`);
    else if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined)
      leftOut("its namespace is being deleted");
    else if (!applications.isGranted(instance.namespace, of.application, of.service))
      leftOut(`its namespace is not granted ${of.service} of ${of.application}: its events would be stopped`);
    else {
      taken.push({ ...instance, mapping: of.mapping, namespaceUid: namespace.metadata.uid ?? "", of });
      if (instance.hasSecretParameters) {
        const message = "its parameters from Secrets are not read: a repeat of its request is a conflict";
        findings.push({ level: "note", object: name, message });
      }
      if (instance.deleting) {
        const message = "it is being deleted; it is taken over so that its deletion finds it";
        findings.push({ level: "note", object: name, message });
      }
    }
  }
  const needed = new Map<string, Set<string>>();
  for (const { namespace, of } of taken) {
    if (!of.events) continue;
    const wire = wireKey(namespace, of.application);
    needed.set(wire, (needed.get(wire) ?? new Set<string>()).add(of.service));
  }
  const chosen = chooseSubscriptions(subscriptions, needed, findings);
  const instances = taken.map(({ of, ...instance }): PlannedInstance => {
    if (!of.events) return { ...instance, flow: null };
    const { application, service } = of;
    const subscription = chosen.get(wireKey(instance.namespace, application)) ?? null;
    if (subscription === null) {
      const object = `ServiceInstance ${instance.namespace}/${instance.name}`;
      findings.push({
        level: "note",
        object,
        message: `no Subscription brings it events of ${application}: one is made`,
      });
    }
    const sink = brokers.get(instance.namespace);
    const isAdopted = sink !== undefined && sink.metadata.labels?.[managedByLabel] !== managedBy;
    const adopted = isAdopted ? { uid: sink.metadata.uid ?? "" } : null;
    return { ...instance, flow: { application, service, subscription, broker: adopted } };
  });
  findings.push(...namespaceFindings(found, instances, brokers));
  return { instances, findings };
}

interface PlannedService {
  readonly mapping: PredecessorMapping;
  readonly application: string;
  readonly service: string;
  readonly events: boolean;
}

/** Which service of which application it is of, by the ids that the application broker gave. */
function serviceOf(
  { serviceId, planId }: FoundInstance,
  applications: ImportFacts["applications"],
): PlannedService | undefined {
  const known = applications.service(serviceId);
  if (known !== undefined && planId === `${serviceId}-plan`) return planned("services", known);
  const ofPlan = applications.service(planId);
  if (ofPlan !== undefined && ofPlan.application.externalId === serviceId) return planned("applications", ofPlan);
  return undefined;
}

function planned(
  mapping: PredecessorMapping,
  { application, service }: NonNullable<ReturnType<Applications["service"]>>,
): PlannedService {
  return { mapping, application: application.name, service: service.id, events: service.events };
}

/**
 * One Subscription for an application and a namespace. The application broker made one for each service of an application, and so every event came as
 * often: the others are a person's to remove, and those that nobody needs, too.
 */
function chooseSubscriptions(
  subscriptions: readonly ClusterObject[],
  needed: ReadonlyMap<string, ReadonlySet<string>>,
  findings: ImportFinding[],
): ReadonlyMap<string, SeenOnce> {
  const chosen = new Map<string, SeenOnce>();
  const isOfService = ({ metadata: { labels = {} } }: ClusterObject) => {
    const services = needed.get(wireKey(labels[predecessorLabels.namespace], labels[predecessorLabels.application]));
    return services?.has(labels[predecessorLabels.service] ?? "") ?? false;
  };
  const present = sorted(subscriptions).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  for (const object of [...present.filter(isOfService), ...present.filter((each) => !isOfService(each))]) {
    const { name, uid = "", labels = {} } = object.metadata;
    const [namespace, application] = [labels[predecessorLabels.namespace], labels[predecessorLabels.application]];
    const wire = wireKey(namespace, application);
    const other = chosen.get(wire);
    const toDo = (message: string) => void findings.push({ level: "to do", object: nameOf(object), message });
    if (!needed.has(wire)) toDo("no instance that is taken over needs it: remove it, unless somebody else does");
    else if (other === undefined) chosen.set(wire, { name, uid });
    else toDo(`it brings the events of ${application} to ${namespace} once more, beside ${other.name}: remove it`);
  }
  return chosen;
}

/** What the label of namespaces tells beside the instances. */
function namespaceFindings(
  { namespaces }: PredecessorObjects,
  instances: readonly PlannedInstance[],
  brokers: ReadonlyMap<string, ClusterObject>,
): readonly ImportFinding[] {
  const flowing = new Set(instances.filter(({ flow }) => flow !== null).map(({ namespace }) => namespace));
  return sorted(namespaces).flatMap((object): readonly ImportFinding[] => {
    const { name, labels } = object.metadata;
    const finding = (message: string): ImportFinding => ({ level: "note", object: nameOf(object), message });
    if (flowing.has(name))
      return brokers.has(name) ? [] : [finding("it has no Broker: one is made, as for every flow")];
    const isLabelled = labels?.[predecessorLabels.injection] === "enabled";
    return isLabelled
      ? [finding("it was prepared for events and no instance is taken over in it: it stays as it is")]
      : [];
  });
}

function wireKey(namespace: string | undefined, application: string | undefined): string {
  return JSON.stringify([namespace, application]);
}

function nameOf({ kind, metadata: { namespace, name } }: ClusterObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

function byPlace(objects: readonly ClusterObject[]): ReadonlyMap<string, ClusterObject> {
  return new Map(objects.map((object) => [`${object.metadata.namespace ?? ""}/${object.metadata.name}`, object]));
}

/** So that the same cluster gives the same plan. */
function sorted(objects: readonly ClusterObject[]): readonly ClusterObject[] {
  const key = ({ metadata: { namespace = "", name } }: ClusterObject) => `${namespace}/${name}`;
  return [...objects].sort((one, other) => (key(one) < key(other) ? -1 : 1));
}
