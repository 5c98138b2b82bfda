import type { Json, OpenOperation, Outcome, Resource, ResourceChange } from "@osbert/journal";
import {
  type Binding,
  type BrokerErrorCode,
  brokerErrors,
  type InstanceMetadata,
  type JsonObject,
} from "@osbert/protocol";
import { type BindingRecord, bindingId, bindingInPhase, bindingNotDeleted } from "../records/binding-record.js";
import { type EndedOperation, endedOperation } from "../records/ended-operation.js";
import {
  type InstanceData,
  type InstanceRecord,
  inPhase,
  instanceData,
  instancePart,
  instanceRecord,
  notDeleted,
  notUpdating,
} from "../records/instance-record.js";
import { bindingOperation, instanceOperation } from "../records/open-operations.js";
import { undoing } from "../records/undo.js";
import { type UpdateRequest, updatedBy } from "./update.js";

/**
 * What the end of an operation means for its instance. Pure; part of the commit that ends the operation, so that nobody ever sees one
 * without the other.
 */
export type Settle = (resource: Resource, operation: OpenOperation, outcome: Outcome) => ResourceChange;

/** What `provision` and `update` hand over to the end. */
export interface InstanceResult {
  readonly state: JsonObject | null;
  readonly dashboardUrl: string | null;
  /** The one that the first answer carried, or that the platform waited for. */
  readonly dashboardTold: string | null;
  readonly metadata: InstanceMetadata | null;
  /** The update that was done. */
  readonly update: (UpdateRequest & { readonly revision?: string | null }) | null;
}

export interface BindingResult {
  readonly binding: Binding;
  readonly state: JsonObject | null;
}

export const settleProvision: Settle = (resource, operation, outcome) => {
  const { data, record } = instanceOf(resource);
  const last = endedOperation(operation.id, "provision", outcome);
  if (outcome.kind === "succeeded") {
    return change(
      inPhase(data, { phase: "ready", updating: null }, { last }),
      withResult(record, outcome.result as unknown as InstanceResult),
    );
  }
  const undo = undoing(record.undo, operation.steps);
  // Refused before anything was done, now or by an earlier attempt: there is nothing to undo, and the id is free.
  if (isRejection(outcome) && undo.length === 0 && record.state === null && data.phase === "creating") {
    return { ...change(inPhase(data, { phase: "gone" }, { last }), null), gone: true, labels: {} };
  }
  if (data.phase !== "creating") return change({ ...data, last }, { ...record, undo });
  return { ...change(inPhase(data, { phase: "failed" }, { last }), { ...record, undo }), labels: failedLabels(data) };
};

export const settleUpdate: Settle = (resource, operation, outcome) => {
  const { data, record } = instanceOf(resource);
  const last = endedOperation(operation.id, "update", outcome);
  if (outcome.kind !== "succeeded") {
    // One that was told to stop may end after another one was accepted.
    const isLast = instanceOperation(resource)?.kind !== "update";
    return change({ ...(isLast ? notUpdating(data) : data), last }, record);
  }
  const result = outcome.result as unknown as InstanceResult;
  const { update } = result;
  const planId = update?.planId ?? record.planId;
  // That of another plan says nothing about this one.
  const maintenanceBefore = planId === record.planId ? record.maintenanceVersion : null;
  const updated: InstanceRecord = {
    ...withResult(record, result),
    planId,
    ...updatedBy(update, record),
    maintenanceVersion: update?.maintenance?.version ?? maintenanceBefore,
  };
  const { serviceId } = updated;
  return {
    ...change(
      { ...notUpdating(data), planId, ...(update?.revision !== undefined && { revision: update.revision }), last },
      updated,
    ),
    labels: { service: serviceId, plan: planId },
  };
};

export const settleDeprovision: Settle = (resource, operation, outcome) => {
  const { data, record } = instanceOf(resource);
  const last = endedOperation(operation.id, "deprovision", outcome);
  if (outcome.kind !== "succeeded") {
    // One that was told to stop may end after another one was accepted.
    const isLast = instanceOperation(resource)?.kind !== "deprovision";
    const settled = isLast ? notDeleted(data, { last }) : { ...data, last };
    return settled.phase === "failed"
      ? { ...change(settled, record), labels: failedLabels(data) }
      : change(settled, record);
  }
  return { ...change(inPhase(data, { phase: "gone" }, { bindings: 0, last }), null), gone: true, labels: {} };
};

export const settleBind: Settle = (resource, operation, outcome) => {
  const { data } = instanceOf(resource);
  const { part, record } = bindingOf(resource, operation);
  if (record === undefined) return {};
  const last = endedOperation(operation.id, "bind", outcome);
  if (outcome.kind === "succeeded") {
    const { binding, state } = outcome.result as unknown as BindingResult;
    return putPart(part, bindingInPhase(record, { phase: "ready", binding }, { state, undo: [], last }));
  }
  const counted = { ...data, bindings: Math.max(0, data.bindings - 1) };
  const undo = undoing(record.undo, operation.steps);
  if (isRejection(outcome) && undo.length === 0 && record.state === null && record.phase === "creating") {
    return { data: remember(counted, part, last) as unknown as Json, parts: { [part]: null } };
  }
  // Told to stop by an unbind, it leaves its steps to that.
  const settled =
    record.phase === "creating"
      ? bindingInPhase(record, { phase: "failed" }, { undo, last })
      : { ...record, undo, last };
  return { data: counted as unknown as Json, ...putPart(part, settled) };
};

export const settleUnbind: Settle = (resource, operation, outcome) => {
  const { data } = instanceOf(resource);
  const { part, record } = bindingOf(resource, operation);
  if (record === undefined) return {};
  const last = endedOperation(operation.id, "unbind", outcome);
  if (outcome.kind !== "succeeded") {
    const isLast = bindingOperation(resource, part)?.kind !== "unbind";
    return putPart(part, isLast ? bindingNotDeleted(record, { last }) : { ...record, last });
  }
  // A binding that failed was taken out of the count when it did.
  const wasReady = record.phase === "deleting" && record.phaseBefore === "ready";
  const bindings = wasReady ? Math.max(0, data.bindings - 1) : data.bindings;
  return { data: remember({ ...data, bindings }, part, last) as unknown as Json, parts: { [part]: null } };
};

/** What has failed is found by an operator without looking at all that has not. It costs nothing where nothing fails. */
function failedLabels({ serviceId, planId }: InstanceData): Readonly<Record<string, string>> {
  return { service: serviceId, plan: planId, phase: "failed" };
}

/** So many bindings that went are remembered, for platforms that ask late and without saying for which operation. */
const rememberedBindings = 16;

function remember(data: InstanceData, part: string, last: EndedOperation): InstanceData {
  const removed = [...data.removed, [bindingId(part) ?? "", last] as const].slice(-rememberedBindings);
  return { ...data, removed };
}

function instanceOf(resource: Resource): { readonly data: InstanceData; readonly record: InstanceRecord } {
  const data = instanceData(resource);
  const record = instanceRecord(resource);
  if (data === undefined || record === undefined) throw new Error(`the record of instance ${resource.key} is missing`);
  return { data, record };
}

function bindingOf(
  resource: Resource,
  operation: OpenOperation,
): { readonly part: string; readonly record: BindingRecord | undefined } {
  const part = operation.part ?? "";
  return { part, record: resource.parts.get(part) as unknown as BindingRecord | undefined };
}

function withResult(record: InstanceRecord, result: InstanceResult): InstanceRecord {
  return {
    ...record,
    state: result.state ?? record.state,
    dashboardUrl: result.dashboardUrl ?? record.dashboardUrl,
    dashboardTold: result.dashboardTold ?? record.dashboardTold,
    metadata: result.metadata ?? record.metadata,
    undo: [],
  };
}

function change(data: InstanceData, record: InstanceRecord | null): ResourceChange {
  return { data: data as unknown as Json, parts: { [instancePart]: record as unknown as Json } };
}

function putPart(part: string, record: BindingRecord): ResourceChange {
  return { parts: { [part]: record as unknown as Json } };
}

/** The author has refused the request with a 4xx of its own. */
function isRejection(outcome: Outcome): boolean {
  if (outcome.kind !== "failed") return false;
  const { rejected, code } = (outcome.error.details ?? {}) as { rejected?: boolean; code?: BrokerErrorCode };
  return (
    rejected === true || (code !== undefined && Object.hasOwn(brokerErrors, code) && brokerErrors[code].status < 500)
  );
}
