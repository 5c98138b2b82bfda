import type { Json } from "@osbert/journal";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { bindingId, bindingInPhase, isBindingPart } from "../records/binding-record.js";
import { type InstanceData, inPhase, instanceData, instancePart, instanceRecord } from "../records/instance-record.js";
import { deletedBy, type InstanceResource, instanceResource } from "../records/instance-resource.js";
import { laneOf } from "../records/lane.js";
import { instanceOperation, someBindingOperation } from "../records/open-operations.js";
import type { Verb } from "../service/verb.js";
import { concurrencyError, mustWait } from "./concurrency.js";
import { deadlineMsOf } from "./deadline.js";
import { accepted, type Decision, refused } from "./decision.js";
import { decideDeprovision } from "./deprovision.js";

import { decideUnbind } from "./unbind.js";
import { decideUpdate } from "./update.js";

/** What trying an operation again takes besides what is stored. */
export interface RetryFacts {
  readonly operation: string;
  readonly verb: Verb;
  readonly part: string | null;
  /** How it ended; `null`: it has not. */
  readonly ended: "succeeded" | "failed" | "cancelled" | null;
  /** What it was asked. */
  readonly input: Json;
  readonly isPaused: boolean;
  /** In which the service is as it was at the instance's revision, or at the one to which the operation leads. */
  readonly catalog: BrokerCatalog;
  /** The instance's, when the catalog was chosen. */
  readonly revision: string | null;
  readonly cascade: boolean;
}

/**
 * One that waits for its next attempt goes on now. One that failed or was cancelled begins anew, with what it was asked: only if it
 * was the last on its instance or binding, so that nothing that came after it is undone.
 */
export function decideRetry(resource: InstanceResource | undefined, facts: RetryFacts, now: number): Decision {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined) return refused("not-found", "there is no such instance");
  if (facts.ended === null) return hurry(resource, facts, now);
  if (facts.ended === "succeeded") return refused("conflict", "the operation has succeeded; there is nothing to retry");
  if (!facts.catalog.services.has(data.serviceId))
    return refused("conflict", "the service is not offered any more; bring it back, or purge the instance");
  switch (facts.verb) {
    case "provision":
      return provision(resource, data, facts);
    case "update":
      return update(resource, data, facts);
    case "deprovision":
      return deprovision(resource, data, facts);
    case "bind":
      return bind(resource, data, facts);
    case "unbind":
      return unbind(resource, facts);
  }
}

function hurry(resource: InstanceResource, { operation, isPaused }: RetryFacts, now: number): Decision {
  const open = resource.open.find(({ id }) => id === operation);
  if (open === undefined) return refused("conflict", "the operation is behind others, or has ended just now");
  if (open.cancel !== null) return refused("conflict", "the operation was cancelled and is about to end");
  if (isPaused) return refused("conflict", "the service is paused; resume it");
  if (open.readyAt > now) return accepted({ hurry: [operation] });
  return refused("conflict", "the operation does not wait for its time: it runs, or is about to");
}

/** B9: with the request as it was recorded, and what earlier attempts have saved. */
function provision(resource: InstanceResource, data: InstanceData, { operation, catalog }: RetryFacts): Decision {
  const record = instanceRecord(resource);
  if (data.phase !== "failed" || record === undefined || data.last?.id !== operation) return passed(data.phase);
  const { serviceId, planId } = data;
  return accepted({
    data: inPhase(data, { phase: "creating" }),
    // Nobody waits for its end any more, to be told the dashboard's address.
    parts: { [instancePart]: { ...record, awaited: false } },
    labels: { service: serviceId, plan: planId },
    accept: [{ kind: "provision", lane: laneOf(serviceId), deadlineMs: deadlineMsOf(catalog, "provision", serviceId) }],
  });
}

function update(
  resource: InstanceResource,
  data: InstanceData,
  { operation, catalog, input, revision }: RetryFacts,
): Decision {
  if (data.last?.id !== operation) return passed(data.phase);
  const { prepared, awaited: _, identity, ...request } = instanceResource.input("update", input);
  const deadlineMs = deadlineMsOf(catalog, "update", data.serviceId);
  // Its source had nothing against it when it was accepted.
  const facts = { request, catalog, revision, planRefusal: null, prepared, awaited: false, identity, deadlineMs };
  return decideUpdate(resource, facts);
}

function deprovision(resource: InstanceResource, data: InstanceData, facts: RetryFacts): Decision {
  const { operation, catalog, cascade, input } = facts;
  if (data.last?.id !== operation) return passed(data.phase);
  const deadlineMs = deadlineMsOf(catalog, "deprovision", data.serviceId);
  const identity = deletedBy(instanceResource.input("deprovision", input));
  return decideDeprovision(resource, { request: null, cascade, identity, deadlineMs });
}

function bind(resource: InstanceResource, data: InstanceData, { operation, part, catalog }: RetryFacts): Decision {
  const record = isBindingPart(part) ? resource.parts.get(part) : undefined;
  if (!isBindingPart(part) || record?.phase !== "failed" || record.last?.id !== operation) return passed(record?.phase);
  const busy = instanceOperation(resource);
  if (busy !== undefined || data.phase !== "ready") return mustWait(concurrencyError.instanceBusy(busy?.kind));
  return accepted({
    data: { ...data, bindings: data.bindings + 1 },
    parts: instanceResource.part(part, bindingInPhase(record, { phase: "creating" })),
    accept: [
      {
        kind: "bind",
        part,
        mode: "shared",
        lane: laneOf(data.serviceId),
        deadlineMs: deadlineMsOf(catalog, "bind", data.serviceId),
      },
    ],
  });
}

function unbind(resource: InstanceResource, { operation, part, catalog, input }: RetryFacts): Decision {
  const record = isBindingPart(part) ? resource.parts.get(part) : undefined;
  const data = instanceData(resource);
  if (part === null || data === undefined || record?.last?.id !== operation) return passed(record?.phase);
  if (someBindingOperation(resource)?.part === part) return mustWait(concurrencyError.bindingBusy());
  const deadlineMs = deadlineMsOf(catalog, "unbind", data.serviceId);
  const binding = bindingId(part) ?? "";
  const identity = deletedBy(instanceResource.input("unbind", input));
  return decideUnbind(resource, { binding, request: null, identity, deadlineMs });
}

function passed(phase: string | undefined): Decision {
  const is = phase === undefined ? "nothing of it is left" : `the phase is now "${phase}"`;
  return refused("conflict", `something else was done since the operation ended (${is}); it cannot be begun anew`);
}
