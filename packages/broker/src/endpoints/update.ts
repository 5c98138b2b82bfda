import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import type { BrokerCatalog } from "../catalog/catalog.js";
import type { OfferedPlan } from "../catalog/offered-service.js";
import { deadlineMsOf } from "../decisions/deadline.js";
import { decideUpdate, isUpgrade } from "../decisions/update.js";
import { checkPrepared } from "../operations/check-instance.js";
import { instanceKey } from "../records/instance-key.js";
import {
  type InstanceRecord,
  instanceData,
  instanceParts,
  instanceRecord,
  revisionOf,
} from "../records/instance-record.js";
import { instanceResource, type UpdateRequest } from "../records/instance-resource.js";
import type { Prepared } from "../service/service.js";
import { answer, inProgressAnswer, instanceBody } from "./answer.js";
import { answerRule, begins, readAcceptsIncomplete } from "./answer-rule.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalMaintenanceInfo, optionalObject, optionalText, requiredText } from "./fields.js";
import { instanceInfo, planName } from "./instance-info.js";
import { runPipeline } from "./pipeline.js";

/** PATCH /v2/service_instances/:instance. */
export async function update(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readUpdate(asked.body);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller } = asked;
  const { identity } = caller;
  const { serviceId } = request;
  const key = instanceKey(caller.platform, asked.instance);
  const before = instanceResource.resource(await ports.journal.read(key, instanceParts));
  const record = instanceRecord(before);
  const planId = request.planId ?? record?.planId ?? "";
  const data = instanceData(before);
  const revision = revisionOf(data);
  const present = ports.catalog();
  // What is not there, or is under way already, is told without asking what it was made of.
  const mayBegin = revision === null || (data?.phase === "ready" && data.updating === null);
  const own = mayBegin ? await ports.catalogOf(record?.serviceId ?? serviceId, revision) : present;
  const upgrades = isUpgrade(request, planId, own.services.get(serviceId), present.services.get(serviceId));
  const catalog = upgrades ? present : own;
  const offered = catalog.services.get(serviceId)?.plans.get(planId);
  const rule = answerRule(ports, "update", acceptsIncomplete, serviceId, offered);
  const deadlineMs = deadlineMsOf(catalog, "update", serviceId);
  const heldAgainst = mayBegin ? revision : null;
  const unprepared = {
    request,
    catalog,
    revision: heldAgainst,
    planRefusal:
      record === undefined
        ? null
        : (ports.judge?.planChange(serviceId, record.planId, planId, caller.platform) ?? null),
    prepared: {},
    awaited: !rule.mayGoOn,
    identity,
    deadlineMs,
  };
  // The author is not asked about what would be refused: its parameters may be anything.
  const prepared =
    record !== undefined && offered?.service.prepareUpdate !== undefined && begins(decideUpdate(before, unprepared))
      ? prepare(asked, request, record, offered, own)
      : {};
  const facts = { ...unprepared, prepared };
  const done = await runPipeline(ports, {
    verb: "update",
    asked,
    key,
    serviceId,
    catalog,
    parts: instanceParts,
    rule,
    decide: (resource) => decideUpdate(resource, facts),
    about: (of) => ({
      plan: offered?.name ?? planId,
      instance: instanceInfo(asked, of),
      binding: null,
      parameters: request.parameters ?? {},
    }),
  });
  const known = instanceBody(prepared.dashboardUrl ?? null, prepared.metadata ?? null);
  switch (done.kind) {
    case "done already":
      return answer("updated", {});
    case "gone":
      throw new BrokerError("not-found", "there is no such instance");
    case "in progress":
      return inProgressAnswer("in progress", { ...known, operation: done.operation }, ports);
    case "succeeded": {
      const { dashboardUrl, metadata } = done.result;
      return answer("updated", { ...known, ...instanceBody(dashboardUrl, metadata) });
    }
  }
}

function readUpdate(body: JsonObject): UpdateRequest {
  // Information only; but it has to be what it says it is.
  optionalObject(body, "previous_values");
  return {
    serviceId: requiredText(body, "service_id"),
    planId: optionalText(body, "plan_id"),
    context: optionalObject(body, "context"),
    parameters: optionalObject(body, "parameters"),
    maintenance: optionalMaintenanceInfo(body),
  };
}

function prepare(
  asked: VerbRequest,
  { parameters, maintenance }: UpdateRequest,
  record: InstanceRecord,
  { name, service }: OfferedPlan,
  own: BrokerCatalog,
): Prepared {
  const { identity } = asked.caller;
  const previous = { plan: planName(own, record), parameters: record.parameters };
  const instance = instanceInfo(asked, record);
  const input = { plan: name, parameters: parameters ?? {}, instance, identity, state: record.state ?? {}, previous };
  return checkPrepared("prepareUpdate", service.prepareUpdate?.({ ...input, maintenance }));
}
