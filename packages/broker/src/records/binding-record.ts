import type { Resource } from "@osbert/journal";
import type { Binding, JsonObject, OriginatingIdentity } from "@osbert/protocol";
import type { EndedOperation } from "./ended-operation.js";

import type { Undo } from "./undo.js";

export type BindingPhase = "creating" | "ready" | "failed" | "deleting";

/** A binding: a part of its instance. */
export interface BindingRecord {
  readonly phase: BindingPhase;
  readonly phaseBefore: "ready" | "failed";
  readonly planId: string;
  readonly parameters: JsonObject;
  readonly appGuid: string | null;
  readonly bindResource: JsonObject;
  readonly context: JsonObject;
  readonly predecessor: string | null;
  /** Of the request that created it. */
  readonly created: string;
  /** What the platform was or will be told. */
  readonly binding: Binding | null;
  readonly state: JsonObject | null;
  /** The steps of binds that did not end well. */
  readonly undo: Undo;
  readonly last: EndedOperation | null;
  readonly identity: OriginatingIdentity | null;
}

export const bindingPrefix = "binding/";

export function bindingPart(binding: string): string {
  return `${bindingPrefix}${binding}`;
}

export function bindingRecord(resource: Resource | undefined, binding: string): BindingRecord | undefined {
  return resource?.parts.get(bindingPart(binding)) as unknown as BindingRecord | undefined;
}

export function isExpired(record: BindingRecord, now: number): boolean {
  const expires = record.binding?.metadata?.expires_at;
  return expires !== undefined && Date.parse(expires) <= now;
}
