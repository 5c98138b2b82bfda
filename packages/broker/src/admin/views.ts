import type { ListedOperation, OperationState } from "@osbert/journal";
import type { JsonObject } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { type BindingRecord, bindingId, bindingTold } from "../records/binding-record.js";
import type { EndedOperation } from "../records/ended-operation.js";
import { instanceAddress } from "../records/instance-key.js";
import {
  type InstanceData,
  type InstancePhase,
  type InstanceRecord,
  instanceData,
} from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import type { Pause } from "./pauses.js";

/** What the admin API shows. Values that may be secret (parameters, credentials, state, results) never are: only that they are there. */
export const masked = "***";

/** An offering or plan by id, with its name as long as it is in the catalog. */
export interface Named {
  readonly id: string;
  readonly name: string | null;
}

export interface InstanceSummary {
  readonly id: string;
  /** "" for a broker with one. */
  readonly platform: string;
  readonly service: Named;
  readonly plan: Named;
  readonly phase: InstancePhase;
  readonly bindings: number;
  readonly open_operations: number;
  readonly last_operation: LastView | null;
}

export interface InstanceView extends InstanceSummary {
  readonly organization_guid: string | null;
  readonly space_guid: string | null;
  readonly maintenance_version: string | null;
  readonly parameters: Masked | null;
  readonly state: Masked | null;
  readonly operations: readonly OperationView[];
  /** Open operations that are behind those that are listed. */
  readonly more_operations: number;
}

export interface BindingView {
  readonly id: string;
  readonly phase: BindingRecord["phase"];
  readonly app_guid: string | null;
  readonly predecessor: string | null;
  readonly expires_at: string | null;
  readonly parameters: Masked | null;
  readonly credentials: typeof masked | null;
  readonly state: Masked | null;
  readonly last_operation: LastView | null;
}

/** With what is being done to it: the job is found from the binding, in one look. */
export interface BindingDetails extends BindingView {
  /** `null`: nothing is; `last_operation` says what was done. */
  readonly operation: OperationView | null;
}

export interface LastView {
  readonly id: string;
  readonly verb: string;
  readonly state: string;
  /** Why it failed; of a forced deletion, what it passed over. */
  readonly description: string | null;
}

export interface OperationView {
  readonly id: string;
  readonly instance: string;
  readonly platform: string;
  readonly verb: string;
  readonly binding: string | null;
  readonly state: OperationState;
  readonly description: string | null;
  readonly accepted_at: string;
  readonly deadline_at: string | null;
  readonly next_attempt_at: string | null;
  /** Attempts that ended without ending the operation. */
  readonly attempts: number;
  /** Of them, those that failed since the last recorded step. */
  readonly failures: number;
  readonly last_error: string | null;
  readonly steps: number;
  readonly request_id: string | null;
}

export interface ServiceView extends Named {
  readonly paused: { readonly reason: string; readonly by: string; readonly at: string } | null;
}

/** The names of the fields, without what stands in them. */
export type Masked = Readonly<Record<string, typeof masked>>;

const mostNames = 50;
const longestName = 100;

export function mask(value: JsonObject | null): Masked | null {
  if (value === null) return null;
  const names = Object.keys(value).slice(0, mostNames);
  // A name may be __proto__, too.
  return Object.fromEntries(names.map((name) => [name.slice(0, longestName), masked])) as Masked;
}

export function instanceSummary(resource: InstanceResource, catalog: BrokerCatalog): InstanceSummary | undefined {
  const data = instanceData(resource);
  const address = instanceAddress(resource.key);
  if (data === undefined || address === undefined) return undefined;
  const service = catalog.services.get(data.serviceId);
  return {
    id: address.instance,
    platform: address.platform,
    service: { id: data.serviceId, name: service?.offering.name ?? null },
    plan: { id: data.planId, name: service?.plans.get(data.planId)?.name ?? null },
    phase: data.phase,
    bindings: data.bindings,
    open_operations: resource.open.length + resource.queued,
    last_operation: lastView(data.last),
  };
}

export function instanceView(
  summary: InstanceSummary,
  record: InstanceRecord | undefined,
  operations: readonly OperationView[],
  moreOperations: number,
): InstanceView {
  return {
    ...summary,
    organization_guid: record?.organizationGuid ?? null,
    space_guid: record?.spaceGuid ?? null,
    maintenance_version: record?.maintenanceVersion ?? null,
    parameters: mask(record?.parameters ?? null),
    state: mask(record?.state ?? null),
    operations,
    more_operations: moreOperations,
  };
}

export function bindingView(id: string, record: BindingRecord): BindingView {
  return {
    id,
    phase: record.phase,
    app_guid: record.appGuid,
    predecessor: record.predecessor,
    expires_at: bindingTold(record)?.metadata?.expires_at ?? null,
    parameters: mask(record.parameters),
    credentials: bindingTold(record)?.credentials === undefined ? null : masked,
    state: mask(record.state),
    last_operation: lastView(record.last),
  };
}

/** The open operations of an instance, as far as they are in sight. */
export function operationViews(resource: InstanceResource): readonly OperationView[] {
  return resource.open.flatMap((operation) => operationView(resource.key, operation) ?? []);
}

/** `undefined`: the key is not that of an instance. */
export function operationView(key: string, operation: ListedOperation): OperationView | undefined {
  const address = instanceAddress(key);
  if (address === undefined) return undefined;
  const { state } = operation;
  return {
    id: operation.id,
    instance: address.instance,
    platform: address.platform,
    verb: operation.kind,
    binding: bindingId(operation.part),
    state,
    description: operation.description,
    accepted_at: iso(operation.acceptedAt),
    deadline_at: operation.deadlineAt === null ? null : iso(operation.deadlineAt),
    next_attempt_at: state === "waiting" ? iso(operation.readyAt) : null,
    attempts: operation.attempts,
    failures: operation.failures,
    last_error: operation.lastError,
    steps: operation.steps.length,
    request_id: operation.requestId,
  };
}

export function serviceView({ id, name }: Named, pause: Pause | undefined): ServiceView {
  return { id, name, paused: pause ? { reason: pause.reason, by: pause.by, at: iso(pause.at) } : null };
}

/** Times go out as texts that people and machines read alike. Beyond what a date can be, the last one. */
export function iso(ms: number): string {
  return new Date(Math.min(ms, 8.64e15)).toISOString();
}

function lastView(last: EndedOperation | InstanceData["last"]): LastView | null {
  if (last === null) return null;
  const { id, verb, state } = last;
  return { id, verb, state, description: last.state === "failed" ? last.description : (last.passedOver ?? null) };
}
