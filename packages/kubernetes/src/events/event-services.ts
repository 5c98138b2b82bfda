import type {
  AdminRoutes,
  Audience,
  PlanDefinition,
  Service,
  ServiceJudge,
  ServiceSource,
  ServiceSourcePorts,
} from "@osbert/broker";
import { type Journal, type OperationKinds, RetryLater } from "@osbert/journal";
import type { Finding } from "@osbert/protocol";
import type { Schema } from "@osbert/server/schemas";
import { declaredGateway, type GatewayUrl } from "../applications/api-credentials.js";
import type { ApplicationKind } from "../applications/application.js";
import { ApplicationCatalog } from "../applications/application-catalog.js";
import type { Applications } from "../applications/applications.js";
import type { AppliedChange } from "../applications/follow-applications.js";
import type { ApplicationFinding, CatalogMapping, ServiceOffer } from "../applications/offer-applications.js";
import { namespaceOf } from "../applications/platform-namespace.js";
import type { ReconcileRules } from "../applications/reconcile-applications.js";
import type { FoundService, Wiring, WiringFunctions } from "../applications/wiring.js";
import type { Cluster } from "../cluster/cluster.js";
import { bindApis } from "./bind-apis.js";
import { eventAdmin, type ImportFlowsNow } from "./event-admin.js";

export interface EventServicesOptions {
  readonly cluster: Cluster;
  /** How services are made of Kyma's applications. */
  readonly mapping: CatalogMapping;
  /** What makes instances. */
  readonly wiring: Wiring;
  /** Kinds of resources that describe applications. Default: Kyma's and Osbert's own. */
  readonly kinds?: readonly ApplicationKind[];
  /** The namespace of the Secrets that applications name. Default `kyma-integration`. */
  readonly secretNamespace?: string;
  /** Where the gateway to an API is. Default: as the application says. */
  readonly gateway?: GatewayUrl;
  /** When removals are held, and how long what was removed is remembered. */
  readonly rules?: Partial<ReconcileRules>;
  /** Takes over what the application broker has left, when an operator asks for it: `importFlows`, with the broker of these services. */
  readonly importFlows?: ImportFlowsNow;
  /** Told of what was changed by what this process has seen. */
  readonly observe?: (change: AppliedChange) => void;
}

/** Services that applications offer, for `createBroker`: a platform is a namespace, and sees what it was granted. */
export interface EventServices extends ServiceSource {
  readonly audience: Audience;
  /** What is known of applications, in this process. */
  readonly applications: Applications;
  /** What is wrong with applications, and what of them is not offered as they say. */
  readonly findings: readonly ApplicationFinding[];
}

/** A source of services for `createBroker`. */
export function openEventServices(options: EventServicesOptions): EventServices {
  return new ApplicationServices(options);
}

/** A bind waits for a Secret for so long. */
const bindMs = 10 * 60_000;
/** What a platform that asks before anything is known is told. */
const unknownWaitMs = 60_000;
const elsewhereMs = 5_000;

class ApplicationServices implements EventServices {
  readonly kinds: OperationKinds;
  readonly admin: AdminRoutes;
  readonly audience: Audience;
  readonly judge: ServiceJudge;
  readonly instanceMetadata?: NonNullable<ServiceSource["instanceMetadata"]>;
  readonly #options: EventServicesOptions;
  readonly #catalog: ApplicationCatalog;
  #ports: ServiceSourcePorts | undefined;
  #services: readonly Service[] | undefined;
  #findings: readonly ApplicationFinding[] = [];
  /** What was made of an offer, and whether it can be offered, for as long as the offer says the same. */
  #made = new Map<string, Made>();

  constructor(options: EventServicesOptions) {
    const { cluster, mapping, wiring, kinds, rules, secretNamespace = "kyma-integration", observe } = options;
    this.#options = options;
    const catalog = new ApplicationCatalog({
      ...{ cluster, mapping, secretNamespace },
      ...(kinds !== undefined && { kinds }),
      ...(rules !== undefined && { rules }),
      ...(observe !== undefined && { told: observe }),
    });
    this.#catalog = catalog;
    this.kinds = { ...catalog.operations, ...wiring.kinds };
    this.admin = eventAdmin({
      ...{ catalog, findings: () => this.findings, wiring: wiring.admin, importFlows: options.importFlows },
    });
    this.audience = audienceOf(catalog, () => this.#ports?.journal);
    this.judge = judgeOf(catalog);
    if (wiring.instanceMetadata !== undefined)
      this.instanceMetadata = async (address, serviceId) => wiring.instanceMetadata?.(address, serviceId);
  }

  get applications(): Applications {
    return this.#catalog;
  }

  get services(): readonly Service[] | undefined {
    return this.#services;
  }

  get changedAt(): number | null {
    const { changedAt, isKnown } = this.#catalog.stored.data;
    return isKnown ? changedAt : null;
  }

  get findings(): readonly ApplicationFinding[] {
    const { applications } = this.#catalog.stored;
    const ofResources = [...applications.values()].flatMap(({ application: { name }, findings, removedAt }) =>
      removedAt === null ? findings.map((finding: Finding) => ({ ...finding, application: name })) : [],
    );
    return [...ofResources, ...this.#findings];
  }

  async open(ports: ServiceSourcePorts): Promise<void> {
    const { cluster, wiring } = this.#options;
    this.#ports = ports;
    await this.#catalog.open(ports.journal, () => {
      this.#build();
      this.#ports?.changed();
    });
    this.#build();
    await wiring.open({ journal: ports.journal, cluster, applications: this.#catalog });
  }

  async resolve(serviceId: string, revision: string): Promise<Service | undefined> {
    const offer = this.#catalog.kept(serviceId, revision);
    return offer === undefined ? undefined : this.#toService(offer);
  }

  close(): void {
    this.#options.wiring.close();
    this.#catalog.close();
    this.#ports = undefined;
  }

  /** What cannot be offered by itself is left out, so that it does not hold up the rest. */
  #build(): void {
    const { offer } = this.#catalog;
    if (offer === undefined || this.#ports === undefined) return;
    const made = new Map<string, Made>();
    const findings: ApplicationFinding[] = [...offer.findings];
    for (const each of offer.services) {
      const text = JSON.stringify(each);
      const before = this.#made.get(each.id);
      const present = before?.text === text ? before : this.#make(each, text);
      made.set(each.id, present);
      if (present.problem === null) continue;
      const application = each.plans[0]?.content.application ?? "";
      const message = `cannot be offered: ${present.problem}`;
      findings.push({ level: "warning", application, path: `services ${JSON.stringify(each.id)}`, message });
    }
    this.#made = made;
    this.#findings = findings;
    this.#services = [...made.values()].flatMap(({ service, problem }) => (problem === null ? [service] : []));
  }

  #make(offer: ServiceOffer, text: string): Made {
    const service = this.#toService(offer);
    try {
      this.#ports?.check([service]);
      return { text, service, problem: null };
    } catch (error) {
      const [, ...lines] = (error instanceof Error ? error.message : String(error)).split("\n");
      return {
        text,
        service,
        problem: lines.slice(0, 3).join("; ").slice(0, 500).trim() || "it breaks the specification",
      };
    }
  }

  #toService(offer: ServiceOffer): Service {
    const { wiring, cluster, gateway = declaredGateway } = this.#options;
    const found = (serviceId: string, planId: string) => this.#found(serviceId, planId);
    const functions = (planId: string): WiringFunctions => wiring.functions(found(offer.id, planId));
    const planIdOf = (name: string) => offer.plans.find((plan) => plan.name === name)?.id;
    const service: Service = {
      ...wiring.service,
      ...{ id: offer.id, name: offer.name, description: offer.description, tags: offer.tags, metadata: offer.metadata },
      revision: offer.revision,
      bindable: offer.isBindable,
      // The plans of one service of an application are parts of the same.
      planUpdateable: wiring.changesPlans === true && offer.revision === "own-1" && offer.plans.length > 1,
      plans: Object.fromEntries(offer.plans.map((plan) => [plan.name, planOf(plan, wiring)])),
      deadlineMs: { bind: bindMs, ...wiring.service?.deadlineMs },
      provision: async (operation, input) => functions(input.instance.planId).provision?.(operation, input),
      update: async (operation, input) =>
        functions(planIdOf(input.plan) ?? input.instance.planId).update?.(operation, input),
      deprovision: async (operation, input) => functions(input.instance.planId).deprovision?.(operation, input),
      bind: bindApis({ cluster, applications: this.#catalog, gateway, found }, offer.revision),
      // Nothing was made: what was given out ends with what the application does about it.
      unbind: async () => undefined,
    };
    return service;
  }

  #found(serviceId: string, planId: string): FoundService {
    const content = this.#catalog.content(serviceId, planId);
    const found = content && this.#catalog.found(content);
    if (found === undefined)
      throw new RetryLater("nothing is known of the application in this process", { afterMs: elsewhereMs });
    return found;
  }
}

interface Made {
  readonly text: string;
  readonly service: Service;
  /** Why it cannot be offered. */
  readonly problem: string | null;
}

const noParameters: Schema = { type: "object", additionalProperties: false };

function planOf(
  { id, description, metadata, isBindable, parameters, content }: ServiceOffer["plans"][number],
  wiring: Wiring,
): PlanDefinition {
  return {
    ...wiring.plan?.({ events: content.events, apis: content.apis }),
    ...{ id, description, bindable: isBindable, bindingRotatable: isBindable },
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(parameters !== null && { provision: parameters as Schema }),
    ...(isBindable && { bind: noParameters }),
  };
}

/** Platforms are namespaces: those that were granted something, and those that still have instances. */
function audienceOf(catalog: ApplicationCatalog, journal: () => Journal | undefined): Audience {
  return {
    async has(platform) {
      if (namespaceOf(platform) === undefined) return false;
      // Before anything is known, nobody is told that there is nothing.
      if (catalog.offer === undefined) return true;
      if (catalog.hasGrants(platform)) return true;
      const found = await journal()?.find({ prefix: `${encodeURIComponent(platform)}/`, limit: 1 });
      return (found?.items.length ?? 0) > 0 || (found?.next ?? null) !== null;
    },
    version: (platform) => (catalog.offer === undefined ? undefined : catalog.grantsVersion(platform)),
    sees(platform, serviceId, planId) {
      const content = catalog.content(serviceId, planId);
      return content !== undefined && catalog.isGranted(platform, content.application, content.service);
    },
    changedAt: () => catalog.stored.data.changedAt,
  };
}

function judgeOf(catalog: ApplicationCatalog): ServiceJudge {
  return {
    /** What was not granted yet may begin: it is for the wiring to wait for the grant. */
    provision(serviceId) {
      if (catalog.offer === undefined)
        return {
          ...{ kind: "not known yet", why: "what applications offer is not known yet" },
          ...{ waitMs: unknownWaitMs, retryAfterSeconds: 5 },
        };
      const isOffered = catalog.offer.services.some(({ id }) => id === serviceId);
      if (isOffered || !catalog.knows(serviceId)) return { kind: "allowed" };
      return { kind: "refused", code: "service-retired", why: "the application does not offer this any more" };
    },
    planChange: () => null,
    /** What was offered is remembered for longer than a request is under way, and then for as long as it has instances. */
    async accepted(serviceId) {
      if (catalog.knows(serviceId)) return null;
      return { kind: "refused", code: "service-retired", why: "the application does not offer this any more" };
    },
  };
}
