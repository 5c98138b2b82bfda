import type { Broker } from "@osbert/broker";
import type { AdoptOutcome } from "@osbert/broker/admin";
import type { Journal } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { Applications } from "../applications/applications.js";
import type { Cluster } from "../cluster/cluster.js";
import { flowId, flowPart, namespaceKey, namespaceResource, wirePart } from "../flows/flow-record.js";
import { defaultFlowSettings, type FlowSettings } from "../flows/flow-settings.js";
import { byEventFlow } from "../wiring/hurry-waiting.js";
import { type ClaimedImport, claimImported } from "./claim-imported.js";
import { type ImportFinding, type PlannedInstance, type PredecessorMapping, planImport } from "./plan-import.js";
import { readPredecessorObjects } from "./predecessor-objects.js";

export interface ImportFlowsOptions {
  /** It is only read. */
  readonly cluster: Cluster;
  /** Running. */
  readonly broker: Pick<Broker, "journal" | "operator">;
  readonly applications: Applications;
  /** As those of the wiring. */
  readonly settings?: Partial<FlowSettings>;
  /** Tells what would be done, and does nothing. Default false. */
  readonly dryRun?: boolean;
  /** Who imports, for the journals of instances. */
  readonly operator: string;
  /** The name under which the platform knew the application broker. Default `application-broker`. */
  readonly predecessor?: string;
  /** Of the services that are made by each mapping, where services have revisions. Default: that of what is offered now. */
  readonly revisions?: Readonly<Record<PredecessorMapping, string>>;
  readonly signal?: AbortSignal;
}

/** What came of an instance, or would come of it in a dry run. */
export interface ImportedInstance {
  readonly namespace: string;
  /** Of its resource. */
  readonly name: string;
  readonly id: string;
  readonly serviceId: string;
  readonly planId: string;
  /** `refused`: see the findings. */
  readonly outcome: AdoptOutcome | "refused";
  /** `null`: it has no events. */
  readonly application: string | null;
  /** The Subscription that carries them. `null`: one is made. */
  readonly subscription: string | null;
}

export interface ImportReport {
  readonly dryRun: boolean;
  readonly instances: readonly ImportedInstance[];
  readonly findings: readonly ImportFinding[];
}

/**
 * Takes over what the application broker has left: its instances, each with its flow, and with the Subscriptions and Brokers that are there. Nothing is
 * written to the cluster, and nothing is provisioned anew. Killed anywhere, it is run again; done twice, it is done once: what was changed or deleted
 * here since stays so. Rejects while it is not known what applications offer.
 */
export async function importFlows(options: ImportFlowsOptions): Promise<ImportReport> {
  const { cluster, broker, applications, signal, dryRun = false, predecessor = "application-broker" } = options;
  if (applications.state !== "current")
    throw new Error(`what applications offer is not known yet (${applications.state}): import later`);
  const settings = { ...defaultFlowSettings, ...options.settings };
  const found = await readPredecessorObjects(cluster, settings, signal);
  const plan = planImport(found, { applications, broker: predecessor });
  const findings: ImportFinding[] = [...plan.findings];
  const instances: ImportedInstance[] = [];
  for (const planned of plan.instances) {
    signal?.throwIfAborted();
    const object = `ServiceInstance ${planned.namespace}/${planned.name}`;
    const outcome = await adopt(options, planned, dryRun).catch((error: unknown) => {
      if (!(error instanceof BrokerError)) throw error;
      findings.push({ level: "left out", object, message: error.message });
      return "refused" as const;
    });
    instances.push(imported(planned, outcome));
    // The instance first: a deletion that comes in between finds it, and the claim, which comes too late then, is none.
    const isTakenOver = outcome === "adopted" || outcome === "adopted already";
    if (dryRun || !isTakenOver || planned.flow === null) continue;
    const claimed = await claimFlow(broker.journal, planned, planned.flow);
    if (claimed === "full") {
      const message = "its namespace has as many flows as it may have: it is taken over without its events";
      findings.push({ level: "to do", object, message });
    }
  }
  return { dryRun, instances, findings };
}

function adopt(
  { broker, operator, revisions }: ImportFlowsOptions,
  { namespace, id, name, serviceId, planId, parameters, mapping, namespaceUid }: PlannedInstance,
  dryRun: boolean,
): Promise<AdoptOutcome> {
  return broker.operator.adopt(
    { platform: namespace, instance: id },
    {
      ...{ serviceId, planId, parameters, revision: revisions?.[mapping] ?? null },
      ...{ organizationGuid: null, spaceGuid: namespaceUid },
      context: { platform: "kubernetes", namespace, instance_name: name },
    },
    { operator, reason: "taken over from the application broker", requestId: null },
    dryRun,
  );
}

async function claimFlow(
  journal: Journal,
  { namespace, id }: PlannedInstance,
  flow: NonNullable<PlannedInstance["flow"]>,
): Promise<ClaimedImport> {
  const { application, service } = flow;
  const wanted = {
    ...{ flow: flowId(namespace, id), namespace, platform: namespace, instance: id },
    ...{ application, service },
  };
  const { result } = await journal.transact(
    namespaceKey(namespace),
    namespaceResource.decide((resource, now) => claimImported(resource, wanted, flow, now)),
    { by: byEventFlow, parts: [flowPart(wanted.flow), wirePart(application)] },
  );
  return result;
}

function imported(
  { namespace, name, id, serviceId, planId, flow }: PlannedInstance,
  outcome: ImportedInstance["outcome"],
): ImportedInstance {
  const { application = null, subscription = null } = flow ?? {};
  return {
    ...{ namespace, name, id, serviceId, planId, outcome, application },
    subscription: subscription?.name ?? null,
  };
}
