import { BrokerError } from "@osbert/protocol";
import { type InstanceRecord, instanceRecord } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import type { Service } from "../service/service.js";
import type { Verb } from "../service/verb.js";
import { withinRule } from "./answer-rule.js";
import type { EndpointPorts } from "./endpoint.js";
import type { PipelineRequest } from "./pipeline-request.js";

/** The author may refuse what would begin now. What was accepted before, or cannot be done anyway, is not the hook's business. */
export async function askBeforeHook(ports: EndpointPorts, request: PipelineRequest, service: Service): Promise<void> {
  const { key, parts, asked, verb, rule, serviceId } = request;
  const { journal } = ports;
  const resource = instanceResource.resource(await journal.read(key, parts));
  const decision = withinRule(request.decide(resource, journal.now()), rule, ports, serviceId);
  if (decision.kind !== "accepted") return;
  const record = resource === undefined ? undefined : instanceRecord(resource);
  const about = request.about(record as InstanceRecord, resource as InstanceResource);
  const { identity, requestId } = asked.caller;
  try {
    await service.hooks?.before?.({ ...about, verb, service: service.name, identity, requestId });
  } catch (error) {
    throw error instanceof BrokerError ? withoutFlags(error, verb) : error;
  }
}

/** ERR-04, ERR-05: only where they may stand. */
function withoutFlags(error: BrokerError, verb: Verb): BrokerError {
  if (verb === "update" || (verb === "deprovision" && error.updateRepeatable === undefined)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  return new BrokerError(code, message, {
    cause,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(verb === "deprovision" && error.instanceUsable !== undefined && { instanceUsable: error.instanceUsable }),
  });
}
