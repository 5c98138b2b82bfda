import type { Answer } from "@osbert/server";
import { decideUnbind } from "../decisions/unbind.js";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instancePart } from "../records/instance-record.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { runDelete } from "./run-delete.js";

/** DELETE …/service_bindings/:binding. */
export function unbind(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const { binding } = asked;
  return runDelete(ports, asked, {
    verb: "unbind",
    what: "binding",
    isForced: ports.forceDeleteUnknown.bindings,
    parts: [instancePart, bindingPart(binding)],
    decide: (resource, facts) => decideUnbind(resource, { ...facts, binding }),
    about: (_, resource) => {
      const {
        parameters = {},
        appGuid = null,
        bindResource = {},
        context = {},
      } = bindingRecord(resource, binding) ?? {};
      return { binding: { id: binding, appGuid, bindResource, context }, parameters };
    },
  });
}
