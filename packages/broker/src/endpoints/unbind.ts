import type { Answer } from "@osbert/server";
import { deadlineMsOf } from "../decisions/deadline.js";
import { decideUnbind } from "../decisions/unbind.js";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { instanceKey } from "../records/instance-key.js";
import { instancePart } from "../records/instance-record.js";
import { answer, goneAnswer, inProgressAnswer } from "./answer.js";
import { answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { readDelete } from "./fields.js";
import { instanceInfo, planName } from "./instance-info.js";
import { runPipeline } from "./pipeline.js";

/** DELETE …/service_bindings/:binding. */
export async function unbind(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readDelete(asked.query);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller, binding } = asked;
  const { serviceId, planId } = request;
  const catalog = ports.catalog();
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const rule = answerRule(ports, "unbind", acceptsIncomplete, serviceId, offered);
  const deadlineMs = deadlineMsOf(catalog, "unbind", serviceId);
  const facts = { binding, request, identity: caller.identity, deadlineMs };
  const done = await runPipeline(ports, {
    verb: "unbind",
    key: instanceKey(caller.platform, asked.instance),
    binding,
    serviceId,
    service: catalog.services.get(serviceId)?.service,
    parts: [instancePart, bindingPart(binding)],
    likelyNew: false,
    caller,
    rule,
    decide: (resource) => decideUnbind(resource, facts),
    about: (of, resource) => {
      const {
        parameters = {},
        appGuid = null,
        bindResource = {},
        context = {},
      } = bindingRecord(resource, binding) ?? {};
      const info = { id: binding, appGuid, bindResource, context };
      return { plan: planName(catalog, of), instance: instanceInfo(asked, of), binding: info, parameters };
    },
    undo: null,
  });
  switch (done.kind) {
    case "gone":
    case "done already":
      return goneAnswer("binding", ports.forceDeleteUnknown.bindings);
    case "in progress":
      return inProgressAnswer("in progress", { operation: done.operation }, ports);
    case "succeeded":
      return answer("deleted", {});
  }
}
