import type { OpenOperation, TypedKind, TypedOutcome } from "@osbert/journal";
import { type BrokerErrorCode, brokerErrors } from "@osbert/protocol";
import {
  type BindingPart,
  type BindingRecord,
  bindingId,
  bindingInPhase,
  bindingNotDeleted,
  isBindingPart,
} from "../records/binding-record.js";
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
import {
  type InstanceChange,
  type InstanceResource,
  type InstanceResult,
  type InstanceShape,
  instanceResource,
} from "../records/instance-resource.js";
import { bindingOperation, instanceOperation } from "../records/open-operations.js";
import { undoing } from "../records/undo.js";
import type { Verb } from "../service/verb.js";
import { updatedBy } from "./update.js";

/**
 * What the end of an operation means for its instance. Pure; part of the commit that ends the operation, so that nobody ever sees one
 * without the other.
 */
export type Settle<Name extends Verb> = NonNullable<TypedKind<InstanceShape, Name>["settle"]>;

export const settleProvision: Settle<"provision"> = (resource, operation, outcome) => {
  const { data, record } = instanceOf(resource);
  const last = endedOperation(operation.id, "provision", outcome);
  if (outcome.kind === "succeeded") {
    return change(inPhase(data, { phase: "ready", updating: null }, { last }), withResult(record, outcome.result));
  }
  const undo = undoing(record.undo, operation.steps);
  // Refused before anything was done, now or by an earlier attempt: there is nothing to undo, and the id is free.
  if (isRejection(outcome) && undo.length === 0 && record.state === null && data.phase === "creating") {
    return { ...change(inPhase(data, { phase: "gone" }, { last }), null), gone: true, labels: {} };
  }
  if (data.phase !== "creating") return change({ ...data, last }, { ...record, undo });
  return { ...change(inPhase(data, { phase: "failed" }, { last }), { ...record, undo }), labels: failedLabels(data) };
};

export const settleUpdate: Settle<"update"> = (resource, operation, outcome) => {
  const { data, record } = instanceOf(resource);
  const last = endedOperation(operation.id, "update", outcome);
  if (outcome.kind !== "succeeded") {
    // One that was told to stop may end after another one was accepted.
    const isLast = instanceOperation(resource)?.kind !== "update";
    return change({ ...(isLast ? notUpdating(data) : data), last }, record);
  }
  const result = outcome.result;
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

export const settleDeprovision: Settle<"deprovision"> = (resource, operation, outcome) => {
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

export const settleBind: Settle<"bind"> = (resource, operation, outcome) => {
  const { data } = instanceOf(resource);
  const found = bindingOf(resource, operation);
  if (found === undefined) return {};
  const { part, record } = found;
  const last = endedOperation(operation.id, "bind", outcome);
  if (outcome.kind === "succeeded") {
    const { binding, state } = outcome.result;
    return putPart(part, bindingInPhase(record, { phase: "ready", binding }, { state, undo: [], last }));
  }
  const counted = { ...data, bindings: Math.max(0, data.bindings - 1) };
  const undo = undoing(record.undo, operation.steps);
  if (isRejection(outcome) && undo.length === 0 && record.state === null && record.phase === "creating") {
    return { data: remember(counted, part, last), parts: instanceResource.part(part, null) };
  }
  // Told to stop by an unbind, it leaves its steps to that.
  const settled =
    record.phase === "creating"
      ? bindingInPhase(record, { phase: "failed" }, { undo, last })
      : { ...record, undo, last };
  return { data: counted, ...putPart(part, settled) };
};

export const settleUnbind: Settle<"unbind"> = (resource, operation, outcome) => {
  const { data } = instanceOf(resource);
  const found = bindingOf(resource, operation);
  if (found === undefined) return {};
  const { part, record } = found;
  const last = endedOperation(operation.id, "unbind", outcome);
  if (outcome.kind !== "succeeded") {
    const isLast = bindingOperation(resource, part)?.kind !== "unbind";
    return putPart(part, isLast ? bindingNotDeleted(record, { last }) : { ...record, last });
  }
  // A binding that failed was taken out of the count when it did.
  const wasReady = record.phase === "deleting" && record.phaseBefore === "ready";
  const bindings = wasReady ? Math.max(0, data.bindings - 1) : data.bindings;
  return { data: remember({ ...data, bindings }, part, last), parts: instanceResource.part(part, null) };
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

function instanceOf(resource: InstanceResource): { readonly data: InstanceData; readonly record: InstanceRecord } {
  const data = instanceData(resource);
  const record = instanceRecord(resource);
  if (data === undefined || record === undefined) throw new Error(`the record of instance ${resource.key} is missing`);
  return { data, record };
}

/** `undefined`: there is none (any more). */
function bindingOf(
  resource: InstanceResource,
  { part }: OpenOperation,
): { readonly part: BindingPart; readonly record: BindingRecord } | undefined {
  if (!isBindingPart(part)) return undefined;
  const record = resource.parts.get(part);
  return record === undefined ? undefined : { part, record };
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

function change(data: InstanceData, record: InstanceRecord | null): InstanceChange {
  return { data, parts: { [instancePart]: record } };
}

function putPart(part: BindingPart, record: BindingRecord): InstanceChange {
  return { parts: instanceResource.part(part, record) };
}

/** The author has refused the request with a 4xx of its own. */
function isRejection(outcome: TypedOutcome<unknown>): boolean {
  if (outcome.kind !== "failed") return false;
  const { rejected, code } = (outcome.error.details ?? {}) as { rejected?: boolean; code?: BrokerErrorCode };
  return (
    rejected === true || (code !== undefined && Object.hasOwn(brokerErrors, code) && brokerErrors[code].status < 500)
  );
}
