import type { Json, Operation } from "@osbert/journal";
import type { BindingRecord } from "../records/binding-record.js";
import { instancePart } from "../records/instance-record.js";
import { currentInstance } from "./load-records.js";

/** Keeps state key by key, at once, in the record that a later deprovision or unbind sees. */
export type SaveState = (state: object) => Promise<void>;

export function saveInstanceState(operation: Operation): SaveState {
  return async (state) => {
    const record = await currentInstance(operation);
    const kept = { ...record, state: { ...record?.state, ...state } };
    await operation.change({ parts: { [instancePart]: kept as unknown as Json } });
  };
}

export function saveBindingState(operation: Operation, part: string): SaveState {
  return async (state) => {
    const record = (await operation.parts([part])).get(part) as unknown as BindingRecord | undefined;
    if (record === undefined) return;
    const kept = { ...record, state: { ...record.state, ...state } };
    await operation.change({ parts: { [part]: kept as unknown as Json } });
  };
}
