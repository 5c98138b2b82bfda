import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { type BrokerCatalog, knownCatalog } from "../catalog/catalog.js";
import type { Judgement } from "../catalog/service-source.js";
import { deadlineMsOf, defaultDeadlineMs } from "../decisions/deadline.js";
import { type Decision, refused } from "../decisions/decision.js";
import { decideDeprovision } from "../decisions/deprovision.js";
import { decideProvision, type ProvisionRequest, provisionProblem, unavailable } from "../decisions/provision.js";
import { sizeProblem } from "../decisions/size-problem.js";
import { checkPrepared } from "../operations/check-instance.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData, instanceParts, instanceRecord } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { answer, inProgressAnswer, instanceBody, madeBy } from "./answer.js";
import { type AnswerRule, answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalMaintenanceInfo, optionalObject, requiredText } from "./fields.js";
import { runPipeline } from "./pipeline.js";

/** PUT /v2/service_instances/:instance. */
export async function provision(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readProvision(asked.body);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller } = asked;
  const { identity, platform } = caller;
  const { serviceId, planId, organizationGuid, spaceGuid, context, parameters } = request;
  const key = instanceKey(platform, asked.instance);
  const judgement = await judge(ports, key, request, platform);
  // Taken after the source was asked, which may take its time.
  const catalog = judgement.kind === "allowed" ? knownCatalog(ports.catalog()) : ports.catalog();
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const rule = answerRule(ports, "provision", acceptsIncomplete, serviceId, offered);
  const problem = problemOf(judgement, catalog, request, rule);
  const notKnownYet = judgement.kind === "not known yet" ? judgement : null;
  const plan = offered?.name ?? "";
  const instance = { id: asked.instance, platform, serviceId, planId, organizationGuid, spaceGuid, context };
  const input = { plan, parameters, instance, identity, partial: undefined };
  const mayPrepare = problem === null && notKnownYet === null;
  const prepared = mayPrepare ? checkPrepared("prepare", offered?.service.prepare?.(input)) : {};
  const deadlineMs = deadlineMsOf(catalog, "provision", serviceId);
  const revision = notKnownYet === null ? (offered?.service.revision ?? null) : null;
  const awaited = !rule.mayGoOn;
  const facts = { request, problem, prepared, revision, notKnownYet, identity, awaited, deadlineMs };
  const done = await runPipeline(ports, {
    verb: "provision",
    asked,
    key,
    serviceId,
    catalog,
    parts: instanceParts,
    likelyNew: true,
    rule,
    decide: (resource, now) => decideProvision(resource, facts, now),
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

/** What the source of the services says. Whom it would have to ask is asked only about what would begin. */
async function judge(
  { judge: source, journal }: EndpointPorts,
  key: string,
  { serviceId, planId }: ProvisionRequest,
  platform: string,
): Promise<Judgement> {
  const judgement = source?.provision(serviceId, planId, platform) ?? allowed;
  if (judgement.kind !== "ask first") return judgement;
  const phase = instanceData(instanceResource.resource(await journal.read(key)))?.phase;
  return phase === undefined || phase === "gone" || phase === "failed" ? judgement.ask() : allowed;
}

const allowed: Judgement = { kind: "allowed" };

/** Why no new instance can be made of a request; of what is not known yet, only what can be said already. */
function problemOf(
  judgement: Judgement,
  catalog: BrokerCatalog,
  request: ProvisionRequest,
  { mayGoOn }: AnswerRule,
): Decision | null {
  switch (judgement.kind) {
    case "allowed":
      return provisionProblem(catalog, request);
    case "refused":
      return refused(judgement.code, judgement.why);
    case "not known yet":
      if (!mayGoOn) return unavailable(judgement);
      return sizeProblem({ parameters: request.parameters, context: request.context });
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
