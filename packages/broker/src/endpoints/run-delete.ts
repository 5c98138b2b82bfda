import { BrokerError, type OriginatingIdentity } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { deadlineMsOf, defaultDeadlineMs } from "../decisions/deadline.js";
import type { Decision } from "../decisions/decision.js";
import type { DeleteRequest } from "../decisions/deprovision.js";
import { instanceKey } from "../records/instance-key.js";
import { type InstanceRecord, instanceData, revisionOf } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import type { HookRequest } from "../service/service.js";
import { answer, inProgressAnswer } from "./answer.js";
import { answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { readDelete } from "./fields.js";
import { instanceInfo, planName } from "./instance-info.js";
import { runPipeline } from "./pipeline.js";

/** What one delete has of its own. */
export interface Delete {
  readonly verb: "deprovision" | "unbind";
  readonly what: "instance" | "binding";
  /** B14: of what is not there it is said that it was deleted. */
  readonly isForced: boolean;
  /** The parts of the resource that the decision looks at. */
  readonly parts: readonly string[];
  readonly decide: (resource: InstanceResource | undefined, facts: DeleteFacts) => Decision;
  /** What the author's hook is shown of it. */
  readonly about: (record: InstanceRecord, resource: InstanceResource) => Pick<HookRequest, "binding" | "parameters">;
}

interface DeleteFacts {
  readonly request: DeleteRequest;
  readonly identity: OriginatingIdentity | null;
  readonly deadlineMs: number;
}

/** Both deletes, from the query to the answer. */
export async function runDelete(ports: EndpointPorts, asked: VerbRequest, own: Delete): Promise<Answer> {
  const { verb, what, parts } = own;
  const request = readDelete(asked.query);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { serviceId, planId } = request;
  const { identity, platform } = asked.caller;
  const key = instanceKey(platform, asked.instance);
  const decide = (deadlineMs: number) => (resource: InstanceResource | undefined) =>
    own.decide(resource, { request, identity, deadlineMs });
  const catalog = await deleteCatalog(ports, key, parts, decide(defaultDeadlineMs));
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const done = await runPipeline(ports, {
    verb,
    asked,
    key,
    serviceId,
    catalog,
    parts,
    rule: answerRule(ports, verb, acceptsIncomplete, serviceId, offered),
    decide: decide(deadlineMsOf(catalog, verb, serviceId)),
    about: (of, resource) => ({
      plan: planName(catalog, of),
      instance: instanceInfo(asked, of),
      ...own.about(of, resource),
    }),
  });
  switch (done.kind) {
    case "gone":
    case "done already":
      if (own.isForced) return answer("deleted", {});
      throw new BrokerError("gone", `there is no such ${what}`);
    case "in progress":
      return inProgressAnswer("in progress", { operation: done.operation }, ports);
    case "succeeded":
      return answer("deleted", {});
  }
}

/**
 * The catalog that a delete is held against: in it the service is as it was at the instance's revision, which does the delete and whose hook
 * may refuse it. What would not begin now is told without asking what it was made of.
 */
async function deleteCatalog(
  ports: EndpointPorts,
  key: string,
  parts: readonly string[],
  decide: (resource: InstanceResource | undefined) => Decision,
): Promise<BrokerCatalog> {
  const present = ports.catalog();
  if (!ports.hasRevisions) return present;
  const resource = instanceResource.resource(await ports.journal.read(key, parts));
  const data = instanceData(resource);
  if (data === undefined || decide(resource).kind !== "accepted") return present;
  // A delete is taken also while the source cannot tell; then it goes on later, and the service that is offered now is asked.
  return ports.catalogOf(data.serviceId, revisionOf(data)).catch(() => present);
}
