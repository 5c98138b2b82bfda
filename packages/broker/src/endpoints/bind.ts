import { BrokerError, type JsonObject } from "@osbert/protocol";
import type { Answer } from "@osbert/server";
import { type BindRequest, decideBind } from "../decisions/bind.js";
import { deadlineMsOf, defaultDeadlineMs } from "../decisions/deadline.js";
import { decideUnbind } from "../decisions/unbind.js";
import { type BindingRecord, bindingPart, bindingRecord, bindingTold } from "../records/binding-record.js";
import { checkId } from "../records/ids.js";
import { instanceKey } from "../records/instance-key.js";
import { instanceData, instancePart, instanceRecord, revisionOf } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";
import { answer, inProgressAnswer, madeBy } from "./answer.js";
import { answerRule, readAcceptsIncomplete } from "./answer-rule.js";
import { bindingForVersion } from "./binding-for-version.js";
import type { EndpointPorts, VerbRequest } from "./endpoint.js";
import { optionalObject, optionalText, requiredText, withoutEmpties } from "./fields.js";
import { instanceInfo, planName } from "./instance-info.js";
import { runPipeline } from "./pipeline.js";

/** PUT …/service_bindings/:binding, rotation included. */
export async function bind(ports: EndpointPorts, asked: VerbRequest): Promise<Answer> {
  const request = readBind(asked.body);
  const acceptsIncomplete = readAcceptsIncomplete(asked.query);
  const { caller, binding } = asked;
  const { identity, apiVersion } = caller;
  const { predecessor, appGuid, bindResource, context, parameters } = request;
  const key = instanceKey(caller.platform, asked.instance);
  const part = bindingPart(binding);
  const parts = predecessor === null ? [instancePart, part] : [instancePart, part, bindingPart(predecessor)];
  // Where there are no revisions, the request itself names what it is held against: the decision alone looks at what is stored.
  const looksFirst = ports.hasRevisions || request.serviceId === null || request.planId === null;
  const before = looksFirst ? instanceResource.resource(await ports.journal.read(key, parts)) : undefined;
  const record = instanceRecord(before);
  const revision = revisionOf(instanceData(before));
  const serviceId = request.serviceId ?? record?.serviceId ?? "";
  // What is not there, or is there already, is told without asking what it was made of.
  const isNew = instanceData(before)?.phase === "ready" && !isThere(bindingRecord(before, binding));
  const mayBegin = revision === null || isNew;
  const catalog = mayBegin ? await ports.catalogOf(record?.serviceId ?? serviceId, revision) : ports.catalog();
  const offered = catalog.services.get(serviceId)?.plans.get(request.planId ?? record?.planId ?? "");
  const rule = answerRule(ports, "bind", acceptsIncomplete, serviceId, offered);
  const deadlineMs = deadlineMsOf(catalog, "bind", serviceId);
  const heldAgainst = mayBegin ? revision : null;
  const facts = {
    binding,
    request,
    catalog,
    revision: looksFirst ? heldAgainst : undefined,
    identity,
    deadlineMs,
  };
  const done = await runPipeline(ports, {
    verb: "bind",
    asked,
    key,
    serviceId,
    catalog,
    parts,
    rule,
    decide: (resource, now) => decideBind(resource, facts, now),
    about: (of) => ({
      plan: planName(catalog, of),
      instance: instanceInfo(asked, of),
      binding: { id: binding, appGuid, bindResource, context },
      parameters,
    }),
    undo: (resource) => decideUnbind(resource, { binding, request: null, identity, deadlineMs: defaultDeadlineMs }),
  });
  switch (done.kind) {
    case "done already":
      return answer(
        "exists already",
        bindingForVersion(apiVersion, bindingTold(bindingRecord(done.resource, binding)) ?? {}),
      );
    case "gone":
      throw new BrokerError("not-found", "there is no such instance");
    case "in progress":
      return inProgressAnswer("in progress", { operation: done.operation }, ports);
    case "succeeded":
      return answer(madeBy(done.began), bindingForVersion(apiVersion, done.result.binding));
  }
}

function isThere(record: BindingRecord | undefined): boolean {
  return record !== undefined && record.phase !== "failed";
}

function readBind(body: JsonObject): BindRequest {
  const predecessor = optionalText(body, "predecessor_binding_id");
  // It is looked for in the store, as the ids of the path are.
  if (predecessor !== null) checkId(predecessor, "predecessor_binding_id");
  const read = predecessor === null ? requiredText : optionalText;
  const bindResource = withoutEmpties(optionalObject(body, "bind_resource") ?? {}, bindResourceTexts);
  return {
    serviceId: read(body, "service_id"),
    planId: read(body, "plan_id"),
    context: optionalObject(body, "context") ?? {},
    appGuid: optionalText(bindResource, "app_guid") ?? optionalText(body, "app_guid"),
    bindResource,
    parameters: optionalObject(body, "parameters") ?? {},
    predecessor,
  };
}

const bindResourceTexts = ["app_guid", "route", "space_guid", "credential_client_id"];
