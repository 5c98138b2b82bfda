import type { Context, JsonObject } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { type InstanceData, type InstanceRecord, instanceData, instancePart } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import { accepted, type Decision, refused } from "./decision.js";
import { adoptedFingerprint } from "./provision.js";
import { sizeProblem } from "./size-problem.js";

/** An instance that is there already, made by another broker before this one. */
export interface AdoptedInstance {
  /** As the platform knows it. */
  readonly serviceId: string;
  readonly planId: string;
  /** Of the service, where it has revisions: by which the instance goes on. `null`: by the one that is offered now. */
  readonly revision: string | null;
  /** `null`: not known; a repeat of the request that made it is recognised all the same. */
  readonly organizationGuid: string | null;
  readonly spaceGuid: string | null;
  readonly context: Context;
  readonly parameters: JsonObject;
}

/** `exists`: one of this id was made here, or is being made. `gone`: it was here, and was deleted. Both stay as they are. */
export type AdoptOutcome = "adopted" | "adopted already" | "exists" | "gone";

/** What deciding takes besides what is stored. */
export interface AdoptFacts {
  readonly adopted: AdoptedInstance;
  /** In which the service is as it is at the instance's revision. */
  readonly catalog: BrokerCatalog;
}

/** Takes in an instance as it is: it is ready, and none of the author's functions is called. What was ever known of its id is not touched. */
export function decideAdopt(
  resource: InstanceResource | undefined,
  { adopted, catalog }: AdoptFacts,
  now: number,
): Decision {
  const { serviceId, planId, context, parameters } = adopted;
  const data = instanceData(resource);
  if (data?.phase === "gone") return { kind: "gone" };
  if (data !== undefined) return { kind: "done already" };
  const service = catalog.services.get(serviceId);
  if (service === undefined) return refused("bad-request", `service ${serviceId} is not offered by this broker`);
  if (!service.plans.has(planId)) return refused("bad-request", `plan ${planId} is not a plan of service ${serviceId}`);
  const tooLarge = sizeProblem({ parameters, context });
  if (tooLarge !== null) return tooLarge;
  const revision = service.service.revision ?? null;
  const ready: InstanceData = {
    ...{ phase: "ready", updating: null, serviceId, planId, bindings: 0, last: null, removed: [] },
    ...(revision !== null && { revision, revisionAt: now }),
    created: adoptedFingerprint(adopted),
    adopted: true,
  };
  const record: InstanceRecord = {
    ...{ serviceId, planId, parameters, context: context as JsonObject },
    organizationGuid: adopted.organizationGuid ?? "",
    spaceGuid: adopted.spaceGuid ?? "",
    ...{ maintenanceVersion: null, dashboardUrl: null, dashboardTold: null, awaited: false, metadata: null },
    ...{ state: null, undo: [], identity: null },
  };
  return accepted({
    data: ready,
    parts: { [instancePart]: record },
    labels: { service: serviceId, plan: planId },
    gone: false,
  });
}

/** What came of it, for whoever adopts. */
export function adoptOutcome(resource: InstanceResource | undefined, decision: Decision): AdoptOutcome {
  switch (decision.kind) {
    case "accepted":
      return "adopted";
    case "gone":
      return "gone";
    case "done already":
      return instanceData(resource)?.adopted === true ? "adopted already" : "exists";
    case "refused":
      throw decision.error;
    case "repeated":
      return "exists";
  }
}
