import type { Answer } from "@osbert/server";
import { deadlineMsOf } from "../decisions/deadline.js";
import { decideDeprovision } from "../decisions/deprovision.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceParts } from "../records/instance-record.js";
import { answer, goneAnswer, inProgressAnswer } from "./answer.js";
import { answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { readDelete } from "./fields.js";
import { instanceInfo, planName } from "./instance-info.js";
import { runPipeline } from "./pipeline.js";

/** DELETE /v2/service_instances/:instance. */
export async function deprovision(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readDelete(asked.query);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller } = asked;
  const { serviceId, planId } = request;
  const { cascade, forceDeleteUnknown } = ports;
  const catalog = ports.catalog();
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const rule = answerRule(ports, "deprovision", acceptsIncomplete, serviceId, offered);
  const deadlineMs = deadlineMsOf(catalog, "deprovision", serviceId);
  const facts = { request, cascade, identity: caller.identity, deadlineMs };
  const done = await runPipeline(ports, {
    verb: "deprovision",
    key: instanceKey(caller.platform, asked.instance),
    binding: "",
    serviceId,
    service: catalog.services.get(serviceId)?.service,
    parts: instanceParts,
    likelyNew: false,
    caller,
    rule,
    decide: (resource) => decideDeprovision(resource, facts),
    about: (of) => ({
      plan: planName(catalog, of),
      instance: instanceInfo(asked, of),
      binding: null,
      parameters: of.parameters,
    }),
    undo: null,
  });
  switch (done.kind) {
    case "gone":
    case "done already":
      return goneAnswer("instance", forceDeleteUnknown.instances);
    case "in progress":
      return inProgressAnswer("in progress", { operation: done.operation }, ports);
    case "succeeded":
      return answer("deleted", {});
  }
}
