import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { knownCatalog } from "../catalog/catalog.js";
import { deadlineMsOf, defaultDeadlineMs } from "../decisions/deadline.js";
import { decideDeprovision } from "../decisions/deprovision.js";
import { decideProvision, type ProvisionRequest, provisionProblem } from "../decisions/provision.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceParts, instanceRecord } from "../records/instance-record.js";
import { answer, inProgressAnswer, madeBy } from "./answer.js";
import { answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import { checkPrepared } from "./check-prepared.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalMaintenanceInfo, optionalObject, requiredText } from "./fields.js";
import { instanceBody } from "./instance-body.js";
import { runPipeline } from "./pipeline.js";

/** PUT /v2/service_instances/:instance. */
export async function provision(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readProvision(asked.body);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller } = asked;
  const { identity, platform } = caller;
  const { serviceId, planId, organizationGuid, spaceGuid, context, parameters } = request;
  const catalog = knownCatalog(ports.catalog());
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const rule = answerRule(ports, "provision", acceptsIncomplete, serviceId, offered);
  const problem = provisionProblem(catalog, request);
  const plan = offered?.name ?? "";
  const instance = { id: asked.instance, platform, serviceId, planId, organizationGuid, spaceGuid, context };
  const input = { plan, parameters, instance, identity, partial: undefined };
  const prepared = problem === null ? checkPrepared("prepare", offered?.service.prepare?.(input)) : {};
  const deadlineMs = deadlineMsOf(catalog, "provision", serviceId);
  const revision = offered?.service.revision ?? null;
  const facts = { request, problem, prepared, revision, identity, awaited: !rule.mayGoOn, deadlineMs };
  const done = await runPipeline(ports, {
    verb: "provision",
    key: instanceKey(platform, asked.instance),
    binding: "",
    serviceId,
    service: catalog.services.get(serviceId)?.service,
    parts: instanceParts,
    likelyNew: true,
    caller,
    rule,
    decide: (resource) => decideProvision(resource, facts),
    about: () => ({ plan, instance, binding: null, parameters }),
    undo: (resource) =>
      decideDeprovision(resource, { request: null, cascade: true, identity, deadlineMs: defaultDeadlineMs }),
  });
  const record = instanceRecord(done.resource);
  const known = instanceBody(
    record?.dashboardUrl ?? prepared.dashboardUrl ?? null,
    record?.metadata ?? prepared.metadata ?? null,
  );
  switch (done.kind) {
    case "done already":
      return answer("exists already", known);
    case "gone":
      throw new BrokerError("gone", "the instance is gone");
    case "in progress":
      return inProgressAnswer("in progress", { ...known, operation: done.operation }, ports);
    case "succeeded": {
      const { dashboardUrl, metadata } = done.result;
      return answer(madeBy(done.began), { ...known, ...instanceBody(dashboardUrl, metadata) });
    }
  }
}

function readProvision(body: JsonObject): ProvisionRequest {
  return {
    serviceId: requiredText(body, "service_id"),
    planId: requiredText(body, "plan_id"),
    organizationGuid: requiredText(body, "organization_guid"),
    spaceGuid: requiredText(body, "space_guid"),
    context: optionalObject(body, "context") ?? {},
    parameters: optionalObject(body, "parameters") ?? {},
    maintenance: optionalMaintenanceInfo(body),
  };
}
