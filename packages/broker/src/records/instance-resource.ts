import { defineResource, type TypedChange, type TypedOperation, type TypedResource } from "@osbert/journal";
import type { Binding, InstanceMetadata, JsonObject, MaintenanceInfo, OriginatingIdentity } from "@osbert/protocol";
import type { Prepared } from "../service/service.js";
import type { Verb } from "../service/verb.js";
import type { BindingPart, BindingRecord } from "./binding-record.js";
import type { Force, ForcedResult } from "./forced-result.js";
import type { InstanceData, InstanceRecord, instancePart } from "./instance-record.js";

/** All that the journal keeps of an instance: what every request looks at, its parts, and what is done to it. */
export interface InstanceShape {
  readonly data: InstanceData;
  readonly parts: { readonly [instancePart]: InstanceRecord; readonly [id: BindingPart]: BindingRecord };
  readonly operations: {
    /** What is asked of it is in the record already. */
    readonly provision: { readonly input: null; readonly result: InstanceResult };
    readonly update: { readonly input: UpdateOperationInput; readonly result: InstanceResult };
    readonly deprovision: { readonly input: DeprovisionOperationInput; readonly result: ForcedResult | null };
    /** As with a provision. */
    readonly bind: { readonly input: null; readonly result: BindingResult };
    readonly unbind: { readonly input: DeleteOperationInput; readonly result: null };
  };
}

/** An instance with its bindings: one resource of the journal. */
export const instanceResource = defineResource<InstanceShape>();

export type InstanceResource = TypedResource<InstanceShape>;

export type InstanceChange = TypedChange<InstanceShape>;

/** One of its operations, or, where it is not said which, any. */
export type InstanceOperation<Name extends Verb = Verb> = Name extends Verb
  ? TypedOperation<InstanceShape, Name>
  : never;

/** What a platform asks of an update, read from the wire and checked for its shape. `null`: it stays as it is. */
export interface UpdateRequest {
  readonly serviceId: string;
  readonly planId: string | null;
  readonly context: JsonObject | null;
  readonly parameters: JsonObject | null;
  readonly maintenance: MaintenanceInfo | null;
}

/** What an update's operation is given. */
export interface UpdateOperationInput extends UpdateRequest {
  /** The service's that does the update, and the instance's after it. Earlier versions have kept none. */
  readonly revision?: string | null;
  readonly prepared: Prepared;
  readonly awaited: boolean;
  /** Who asks for the update; the instance's record says who created it. */
  readonly identity: OriginatingIdentity | null;
}

/** What the operation is given that removes an instance or a binding. */
export interface DeleteOperationInput {
  /** Who asks for it; the records say who made what it removes. */
  readonly identity: OriginatingIdentity | null;
}

/** Whose request a deprovision or unbind is. What was kept is not relied upon: without a word, it was nobody's. */
export function deletedBy(input: DeleteOperationInput | null): OriginatingIdentity | null {
  return input?.identity ?? null;
}

export interface DeprovisionOperationInput extends DeleteOperationInput {
  /** An operator forces it. */
  readonly force?: Force;
}

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

/** What `bind` hands over to the end. */
export interface BindingResult {
  readonly binding: Binding;
  readonly state: JsonObject | null;
}
