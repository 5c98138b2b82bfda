import type { Json, Resource } from "@osbert/journal";
import type { OriginatingIdentity } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { type BindingRecord, bindingPrefix } from "../records/binding-record.js";
import { type InstanceData, instanceData, instancePart, instanceRecord } from "../records/instance-record.js";
import { laneOf } from "../records/lane.js";
import { doing, instanceOperation, someBindingOperation } from "../records/open-operations.js";
import type { Verb } from "../service/verb.js";
import { deadlineMsOf } from "./deadline.js";
import { accepted, refused, type Verdict } from "./decision.js";
import { decideDeprovision } from "./deprovision.js";

import { decideUnbind } from "./unbind.js";
import { decideUpdate, type UpdateInput } from "./update.js";

/** What trying an operation again takes besides what is stored. */
export interface RetryMatter {
  readonly operation: string;
  readonly verb: Verb;
  readonly part: string | null;
  /** How it ended; `null`: it has not. */
  readonly ended: "succeeded" | "failed" | "cancelled" | null;
  /** What it was asked. */
  readonly input: Json;
  readonly isPaused: boolean;
  readonly catalog: BrokerCatalog;
  readonly cascade: boolean;
}

/**
 * One that waits for its next attempt goes on now. One that failed or was cancelled begins anew, with what it was asked: only if it
 * was the last on its instance or binding, so that nothing that came after it is undone.
 */
export function decideRetry(resource: Resource | undefined, matter: RetryMatter, now: number): Verdict {
  const data = instanceData(resource);
  if (resource === undefined || data === undefined) return refused("not-found", "there is no such instance");
  if (matter.ended === null) return hurry(resource, matter, now);
  if (matter.ended === "succeeded")
    return refused("conflict", "the operation has succeeded; there is nothing to retry");
  if (!matter.catalog.services.has(data.serviceId))
    return refused("conflict", "the service is not offered any more; bring it back, or purge the instance");
  switch (matter.verb) {
    case "provision":
      return provision(resource, data, matter);
    case "update":
      return update(resource, data, matter);
    case "deprovision":
      return deprovision(resource, data, matter);
    case "bind":
      return bind(resource, data, matter);
    case "unbind":
      return unbind(resource, matter);
  }
}

function hurry(resource: Resource, { operation, isPaused }: RetryMatter, now: number): Verdict {
  const open = resource.open.find(({ id }) => id === operation);
  if (open === undefined) return refused("conflict", "the operation is behind others, or has ended just now");
  if (open.cancel !== null) return refused("conflict", "the operation was cancelled and is about to end");
  if (isPaused) return refused("conflict", "the service is paused; resume it");
  if (open.readyAt > now) return accepted({ hurry: [operation] });
  return refused("conflict", "the operation does not wait for its time: it runs, or is about to");
}

/** B9: with the request as it was recorded, and what earlier attempts have saved. */
function provision(resource: Resource, data: InstanceData, { operation, catalog }: RetryMatter): Verdict {
  const record = instanceRecord(resource);
  if (data.phase !== "failed" || record === undefined || data.last?.id !== operation) return passed(data.phase);
  const { serviceId, planId } = data;
  return accepted({
    data: { ...data, phase: "creating", phaseBefore: "failed" } as unknown as Json,
    // Nobody waits for its end any more, to be told the dashboard's address.
    parts: { [instancePart]: { ...record, awaited: false } as unknown as Json },
    labels: { service: serviceId, plan: planId },
    accept: [{ kind: "provision", lane: laneOf(serviceId), deadlineMs: deadlineMsOf(catalog, "provision", serviceId) }],
  });
}

function update(resource: Resource, data: InstanceData, { operation, catalog, input }: RetryMatter): Verdict {
  if (data.last?.id !== operation) return passed(data.phase);
  const { prepared, awaited: _, identity, ...ask } = input as unknown as UpdateInput;
  const deadlineMs = deadlineMsOf(catalog, "update", data.serviceId);
  return decideUpdate(resource, { ask, catalog, prepared, awaited: false, identity, deadlineMs });
}

function deprovision(resource: Resource, data: InstanceData, matter: RetryMatter): Verdict {
  const { operation, catalog, cascade, input } = matter;
  if (data.last?.id !== operation) return passed(data.phase);
  const deadlineMs = deadlineMsOf(catalog, "deprovision", data.serviceId);
  return decideDeprovision(resource, { ask: null, cascade, identity: identityOf(input), deadlineMs });
}

function bind(resource: Resource, data: InstanceData, { operation, part, catalog }: RetryMatter): Verdict {
  const record = bindingOf(resource, part);
  if (part === null || record?.phase !== "failed" || record.last?.id !== operation) return passed(record?.phase);
  const busy = instanceOperation(resource);
  if (busy !== undefined || data.phase !== "ready")
    return refused("concurrency", `the instance ${doing(busy?.kind ?? "")}; ask again when that is over`);
  return accepted({
    data: { ...data, bindings: data.bindings + 1 } as unknown as Json,
    parts: { [part]: { ...record, phase: "creating", phaseBefore: "failed" } as unknown as Json },
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

function unbind(resource: Resource, { operation, part, catalog, input }: RetryMatter): Verdict {
  const record = bindingOf(resource, part);
  const data = instanceData(resource);
  if (part === null || data === undefined || record?.last?.id !== operation) return passed(record?.phase);
  if (someBindingOperation(resource)?.part === part)
    return refused("concurrency", "the binding is being changed; ask again when that is over");
  const deadlineMs = deadlineMsOf(catalog, "unbind", data.serviceId);
  const binding = part.slice(bindingPrefix.length);
  return decideUnbind(resource, { binding, ask: null, identity: identityOf(input), deadlineMs });
}

function passed(phase: string | undefined): Verdict {
  const is = phase === undefined ? "nothing of it is left" : `the phase is now "${phase}"`;
  return refused("conflict", `something else was done since the operation ended (${is}); it cannot be begun anew`);
}

function bindingOf(resource: Resource, part: string | null): BindingRecord | undefined {
  return part === null ? undefined : (resource.parts.get(part) as unknown as BindingRecord | undefined);
}

function identityOf(input: Json): OriginatingIdentity | null {
  return (input as unknown as { identity?: OriginatingIdentity | null } | null)?.identity ?? null;
}
