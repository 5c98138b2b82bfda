import { BrokerError } from "@osbert/protocol";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceData } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import type { EndpointPorts } from "./endpoint.js";
import type { PipelineRequest } from "./pipeline-request.js";

/**
 * What a platform that waited for a create is told of its failure. ERR-07: a 4xx says that nothing is there, and platforms clean up after a
 * 5xx alone; so one that the author refuses after steps of it were recorded, which a delete has to undo, is a 5xx, in the author's words.
 */
export async function createFailure(
  { journal }: EndpointPorts,
  { verb, key, asked: { binding } }: PipelineRequest,
  failure: BrokerError,
): Promise<BrokerError> {
  if (failure.status >= 500) return failure;
  const resource = instanceResource.resource(await journal.read(key, [bindingPart(binding)]));
  const left = verb === "provision" ? instanceData(resource) : bindingRecord(resource, binding);
  return left?.phase === "failed" ? new BrokerError("operation-failed", failure.message, { cause: failure }) : failure;
}
