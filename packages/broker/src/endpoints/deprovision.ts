import type { Answer } from "@osbert/server";
import { decideDeprovision } from "../decisions/deprovision.js";
import { instanceParts } from "../records/instance-record.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { runDelete } from "./run-delete.js";

/** DELETE /v2/service_instances/:instance. */
export function deprovision(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const { cascade, forceDeleteUnknown } = ports;
  return runDelete(ports, asked, {
    verb: "deprovision",
    what: "instance",
    isForced: forceDeleteUnknown.instances,
    parts: instanceParts,
    decide: (resource, facts) => decideDeprovision(resource, { ...facts, cascade }),
    about: ({ parameters }) => ({ binding: null, parameters }),
  });
}
