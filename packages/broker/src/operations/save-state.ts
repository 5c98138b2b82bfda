import type { BindingPart } from "../records/binding-record.js";
import { type InstanceRecord, instancePart } from "../records/instance-record.js";
import { type InstanceOperation, instanceResource } from "../records/instance-resource.js";
import { currentInstance } from "./load-records.js";

/** Keeps state key by key, at once, in the record that a later deprovision or unbind sees. */
export type SaveState = (state: object) => Promise<void>;

export function saveInstanceState(operation: InstanceOperation): SaveState {
  return async (state) => {
    const record = await currentInstance(operation);
    // There is one: the operation was begun with it.
    const kept = { ...record, state: { ...record?.state, ...state } } as InstanceRecord;
    await operation.change({ parts: { [instancePart]: kept } });
  };
}

export function saveBindingState(operation: InstanceOperation, part: BindingPart): SaveState {
  return async (state) => {
    const record = (await operation.parts([part])).get(part);
    if (record === undefined) return;
    const kept = { ...record, state: { ...record.state, ...state } };
    await operation.change({ parts: instanceResource.part(part, kept) });
  };
}
