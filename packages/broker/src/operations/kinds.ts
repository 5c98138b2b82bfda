import { type Json, type Operation, type OperationKind, Permanent, RetryLater } from "@osbert/journal";
import { BrokerError, isJsonObject, type JsonObject, type OriginatingIdentity } from "@osbert/protocol";
import type { OfferedService } from "../catalog/catalog.js";
import {
  type BindingResult,
  type InstanceResult,
  type Settle,
  settleBind,
  settleDeprovision,
  settleProvision,
  settleUnbind,
  settleUpdate,
} from "../decisions/settle.js";
import type { UpdateOperationInput, UpdateRequest } from "../decisions/update.js";

import { type BindingRecord, bindingPart, bindingPrefix } from "../records/binding-record.js";
import { fingerprint } from "../records/fingerprint.js";
import type { ForcedResult, PassedOver } from "../records/forced-result.js";
import { type InstanceAddress, instanceAddress } from "../records/instance-key.js";
import { type InstanceData, type InstanceRecord, instancePart, revisionOf } from "../records/instance-record.js";
import {
  type BindingInfo,
  type BindResult,
  type HookRequest,
  type InstanceInfo,
  type Prepared,
  type ProvisionResult,
  toBinding,
  type Work,
} from "../service/service.js";
import type { Verb } from "../service/verb.js";
import { type Calls, callsOf } from "./calls.js";
import { checkBinding } from "./check-binding.js";
import { checkInstance } from "./check-instance.js";
import { checkState } from "./check-state.js";
import { toWork } from "./to-work.js";

/** What running takes besides the journal: what is offered, and the parts of an instance. */
export interface RunPorts {
  /** The service of an instance, at the instance's revision. Rejects where that cannot be told now. */
  readonly serviceOf: (
    serviceId: string,
    revision: string | null,
  ) => Promise<OfferedService | undefined> | OfferedService | undefined;
  readonly bindingsOf: (key: string) => Promise<readonly { readonly id: string; readonly value: Json }[]>;
  /** Told of a forced deletion that has passed something over, right before it ends. */
  readonly passedOver: (key: string, operation: string, calls: readonly PassedOver[]) => void;
}

/** The five kinds of operations: each runs the author's function and folds its end into the instance. */
export function operationKinds(ports: RunPorts): Readonly<Record<Verb, OperationKind>> {
  return {
    provision: kind(settleProvision, (operation) => provision(ports, operation)),
    update: kind(settleUpdate, (operation) => update(ports, operation)),
    deprovision: kind(settleDeprovision, (operation) => deprovision(ports, operation)),
    bind: kind(settleBind, (operation) => bind(ports, operation)),
    unbind: kind(settleUnbind, (operation) => unbind(ports, operation)),
  };
}

function kind(settle: Settle, run: (operation: Operation) => Promise<unknown>): OperationKind {
  return { reads: [instancePart], settle, run: (operation) => run(operation).catch(asRefusal) };
}

/** An author who throws a BrokerError refuses the request: there is nothing to retry. */
function asRefusal(error: unknown): never {
  if (!(error instanceof BrokerError)) throw error;
  const { code, instanceUsable, updateRepeatable, status } = error;
  const details = { code, instanceUsable, updateRepeatable, rejected: status < 500 };
  throw new Permanent(error.message, { cause: error, details });
}

async function provision(ports: RunPorts, operation: Operation): Promise<InstanceResult> {
  const { record, service, instance } = await load(ports, operation);
  const plan = planName(service, record.planId);
  const input = {
    plan,
    parameters: record.parameters,
    instance,
    identity: record.identity,
    partial: record.state ?? undefined,
  };
  const work = toWork(operation, saveInstanceState(operation));
  const result = (await service.service.provision?.(work, input)) as ProvisionResult<undefined> | undefined;
  await checkInstanceEnd(operation, "provision", service, result).catch(async (error: unknown) => {
    // Refused as a whole, it still says what there is to undo.
    if (isJsonObject(result?.state)) await saveInstanceState(operation)(result.state);
    throw error;
  });
  await after(service, operation, {
    verb: "provision",
    plan,
    instance,
    binding: null,
    parameters: record.parameters,
    identity: record.identity,
  });
  return toInstanceResult(result, null, record.awaited ? result : undefined);
}

async function update(ports: RunPorts, operation: Operation): Promise<InstanceResult> {
  const { record, service, instance } = await load(ports, operation);
  const { prepared, awaited, identity, ...ask } = operation.input as unknown as UpdateOperationInput;
  const plan = planName(service, ask.planId ?? record.planId);
  const input = {
    plan,
    parameters: ask.parameters ?? {},
    instance: ask.context === null ? instance : { ...instance, context: { ...instance.context, ...ask.context } },
    identity,
    state: record.state ?? {},
    previous: { plan: planName(service, record.planId), parameters: record.parameters },
    maintenance: ask.maintenance,
  };
  const work = toWork(operation, saveInstanceState(operation));
  const result = (await service.service.update?.(work, input)) as ProvisionResult<undefined> | undefined;
  // What nobody has touched is not judged: the schema may be younger than the instance.
  if (service.service.update !== undefined) await checkInstanceEnd(operation, "update", service, result);
  await after(service, operation, {
    verb: "update",
    plan,
    instance,
    binding: null,
    parameters: input.parameters,
    identity,
  });
  const all = { ...prepared, ...result };
  return toInstanceResult(all, ask, awaited ? all : prepared);
}

/** Bindings that are left go first, each with the author's own unbind. */
async function deprovision(ports: RunPorts, operation: Operation): Promise<ForcedResult | null> {
  const calls = callsOf(operation);
  await deprovisionWith(calls, ports, operation);
  const result = calls.result();
  if (result !== null && result.forced.length > 0) ports.passedOver(operation.key, operation.id, result.forced);
  return result;
}

async function deprovisionWith(calls: Calls, ports: RunPorts, operation: Operation): Promise<void> {
  const loaded = await load(ports, operation).catch((error: unknown) => calls.withoutService(error));
  const identity = askedBy(operation);
  let data = operation.data as unknown as InstanceData;
  // A page at a time: each binding is gone from the record before the next page is read.
  for (
    let left = await ports.bindingsOf(operation.key);
    left.length > 0;
    left = await ports.bindingsOf(operation.key)
  ) {
    for (const { id, value } of left) {
      const binding = value as unknown as BindingRecord;
      const name = id.slice(bindingPrefix.length);
      // Names of steps are short and must differ; ids of bindings may be long and alike.
      const prefix = `unbind ${name.length <= 40 ? name : fingerprint(name)}: `;
      if (loaded !== undefined) {
        const { service, record, instance } = loaded;
        await calls.call(`unbind ${name}`, (bend) =>
          runUnbind(operation, service, record, instance, identity, name, binding, prefix, bend),
        );
      }
      // Counted as they go: if the deprovision fails half-way, what is left is told right. One that failed was not counted.
      if (binding.phase === "ready") data = { ...data, bindings: Math.max(0, data.bindings - 1) };
      await operation.change({ data: data as unknown as Json, parts: { [id]: null } });
    }
  }
  if (loaded === undefined) return;
  const { service, record, instance } = loaded;
  const plan = planName(service, record.planId);
  const steps = await operation.recordedBy(record.undo);
  await calls.call("deprovision", async (bend) => {
    const work = bend(toWork(operation, saveInstanceState(operation)));
    await service.service.deprovision?.(work, { plan, instance, identity, state: record.state ?? undefined, steps });
    const { parameters } = record;
    await after(service, operation, { verb: "deprovision", plan, instance, binding: null, parameters, identity });
  });
}

async function bind(ports: RunPorts, operation: Operation): Promise<BindingResult> {
  const { record, service, instance, binding, bindingId } = await loadBinding(ports, operation);
  const previous =
    binding.predecessor === null
      ? undefined
      : (await operation.parts([bindingPart(binding.predecessor)])).get(bindingPart(binding.predecessor));
  const plan = planName(service, record.planId);
  const info = toBindingInfo(bindingId, binding);
  const input = {
    plan,
    parameters: binding.parameters,
    instance,
    binding: info,
    identity: binding.identity,
    state: record.state ?? {},
    predecessor:
      binding.predecessor === null
        ? null
        : { id: binding.predecessor, state: (previous as unknown as BindingRecord | undefined)?.state ?? undefined },
  };
  const work = toWork(operation, saveBindingState(operation, bindingPart(bindingId)));
  const result = (await service.service.bind?.(work, input)) as BindResult<undefined> | undefined;
  if (result == null) {
    throw new Permanent("bind returned nothing: return { credentials }, or {} for a binding that has nothing to give");
  }
  const wrong = checkBinding(result, service.offering);
  if (wrong !== null) throw new Permanent(`bind returned what cannot be given out: ${wrong}`);
  await checkState("bind", {
    returned: result.state,
    kept: async () => (await currentBinding(operation))?.state ?? null,
    validate: service.service.bindingState === undefined ? undefined : service.validateBindingState,
  });
  const told = toBinding(result);
  await after(service, operation, {
    verb: "bind",
    plan,
    instance,
    binding: info,
    parameters: binding.parameters,
    identity: binding.identity,
  });
  const saved = await currentBinding(operation);
  return { binding: told, state: (result.state as JsonObject | undefined) ?? saved?.state ?? null };
}

async function unbind(ports: RunPorts, operation: Operation): Promise<null> {
  const { record, service, instance, binding, bindingId } = await loadBinding(ports, operation);
  const identity = askedBy(operation);
  await runUnbind(operation, service, record, instance, identity, bindingId, binding, "");
  const plan = planName(service, record.planId);
  await after(service, operation, {
    verb: "unbind",
    plan,
    instance,
    binding: toBindingInfo(bindingId, binding),
    parameters: binding.parameters,
    identity,
  });
  return null;
}

async function runUnbind(
  operation: Operation,
  service: OfferedService,
  record: InstanceRecord,
  instance: InstanceInfo,
  identity: OriginatingIdentity | null,
  id: string,
  binding: BindingRecord,
  prefix: string,
  bend: (work: Work) => Work = (work) => work,
): Promise<void> {
  const steps = await operation.recordedBy(binding.undo);
  const input = {
    plan: planName(service, record.planId),
    instance,
    identity,
    binding: toBindingInfo(id, binding),
    state: record.state ?? undefined,
    bindingState: binding.state ?? undefined,
    steps,
  };
  const work = bend(toWork(operation, saveBindingState(operation, bindingPart(id)), prefix));
  await service.service.unbind?.(work, input);
}

/** Whose request a deprovision or unbind is; the records say who made what it removes. */
function askedBy({ input }: Operation): OriginatingIdentity | null {
  return (input as unknown as { identity?: OriginatingIdentity | null } | null)?.identity ?? null;
}

interface Loaded {
  readonly record: InstanceRecord;
  readonly service: OfferedService;
  readonly instance: InstanceInfo;
}

async function load({ serviceOf }: RunPorts, operation: Operation): Promise<Loaded> {
  const record = (await operation.parts([instancePart])).get(instancePart) as unknown as InstanceRecord | undefined;
  if (record === undefined) throw new Permanent("the record of the instance is missing");
  const service = await serviceAt(serviceOf, record.serviceId, operation);
  // Another replica may have it; if none has, it is for the operator to bring it back.
  if (service === undefined)
    throw new RetryLater("this broker does not have the service of the instance", { afterMs: 30_000 });
  const { platform, instance: id } = instanceAddress(operation.key) as InstanceAddress;
  const instance: InstanceInfo = {
    id,
    platform,
    serviceId: record.serviceId,
    planId: record.planId,
    organizationGuid: record.organizationGuid,
    spaceGuid: record.spaceGuid,
    context: record.context,
  };
  return { record, service, instance };
}

async function serviceAt(serviceOf: RunPorts["serviceOf"], serviceId: string, operation: Operation) {
  const own = revisionOf(operation.data as unknown as InstanceData);
  const given = operation.input as { readonly revision?: string | null } | null;
  // An update may lead to another revision: that one does it.
  const revision = operation.kind === "update" ? (given?.revision ?? own) : own;
  try {
    return await serviceOf(serviceId, revision);
  } catch (cause) {
    const words = `revision ${revision} of the instance's service cannot be had: ${cause instanceof Error ? cause.message : cause}`;
    throw new RetryLater(words, { afterMs: 30_000, cause });
  }
}

async function loadBinding(
  ports: RunPorts,
  operation: Operation,
): Promise<Loaded & { readonly binding: BindingRecord; readonly bindingId: string }> {
  const loaded = await load(ports, operation);
  const binding = await currentBinding(operation);
  if (binding === undefined) throw new Permanent("the record of the binding is missing");
  return { ...loaded, binding, bindingId: (operation.part ?? "").slice(bindingPrefix.length) };
}

async function currentBinding(operation: Operation): Promise<BindingRecord | undefined> {
  const part = operation.part ?? "";
  return (await operation.parts([part])).get(part) as unknown as BindingRecord | undefined;
}

/** As it is now, with what was saved meanwhile. */
async function currentInstance(operation: Operation): Promise<InstanceRecord> {
  return (await operation.parts([instancePart])).get(instancePart) as unknown as InstanceRecord;
}

/** Kept at once, in the record that a later deprovision sees. */
function saveInstanceState(operation: Operation): (state: object) => Promise<void> {
  return async (state) => {
    const record = await currentInstance(operation);
    await operation.change({
      parts: { [instancePart]: { ...record, state: { ...record.state, ...state } } as unknown as Json },
    });
  };
}

function saveBindingState(operation: Operation, part: string): (state: object) => Promise<void> {
  return async (state) => {
    const record = (await operation.parts([part])).get(part) as unknown as BindingRecord | undefined;
    if (record === undefined) return;
    await operation.change({
      parts: { [part]: { ...record, state: { ...record.state, ...state } } as unknown as Json },
    });
  };
}

/** Whether what `provision` or `update` returned, or left behind, is what later functions and platforms may be given. */
async function checkInstanceEnd(
  operation: Operation,
  verb: "provision" | "update",
  { service, validateState }: OfferedService,
  result: ProvisionResult<undefined> | undefined,
): Promise<void> {
  const malformed = checkInstance(result);
  if (malformed !== null) throw new Permanent(`${verb} returned what cannot be given out: ${malformed}`);
  await checkState(verb, {
    returned: result?.state,
    kept: async () => (await currentInstance(operation)).state,
    validate: service.state === undefined ? undefined : validateState,
  });
}

function toInstanceResult(
  result: ProvisionResult<undefined> | undefined,
  ask: UpdateRequest | null,
  told: Prepared | undefined,
): InstanceResult {
  return {
    state: (result?.state as JsonObject | undefined) ?? null,
    dashboardUrl: result?.dashboardUrl ?? null,
    dashboardTold: told?.dashboardUrl ?? null,
    metadata: result?.metadata ?? null,
    update: ask,
  };
}

/** The plan's name; of a plan that is not offered any more, its id. */
function planName(service: OfferedService, planId: string): string {
  return service.plans.get(planId)?.name ?? planId;
}

function toBindingInfo(id: string, { appGuid, bindResource, context }: BindingRecord): BindingInfo {
  return { id, appGuid, bindResource, context };
}

async function after(
  service: OfferedService,
  operation: Operation,
  request: Omit<HookRequest, "service" | "requestId">,
): Promise<void> {
  const { hooks, name } = service.service;
  if (hooks?.after === undefined) return;
  await operation.step("osbert: after", async () => {
    await hooks.after?.({ ...request, service: name, requestId: operation.requestId });
  });
}
