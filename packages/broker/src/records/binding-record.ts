import type { Binding, JsonObject, OriginatingIdentity } from "@osbert/protocol";
import type { EndedOperation } from "./ended-operation.js";
import type { Undo } from "./undo.js";

/** A binding: a part of its instance. It goes through the phases of an instance; when it is gone, so is its record. */
export type BindingRecord = BindingFacts & BindingPhaseFacts;

export type BindingPhase = BindingRecord["phase"];

/** What is known of a binding in every phase. */
interface BindingFacts {
  readonly planId: string;
  readonly parameters: JsonObject;
  readonly appGuid: string | null;
  readonly bindResource: JsonObject;
  readonly context: JsonObject;
  readonly predecessor: string | null;
  /** Of the request that created it. */
  readonly created: string;
  readonly state: JsonObject | null;
  /** The steps of binds that did not end well. */
  readonly undo: Undo;
  readonly last: EndedOperation | null;
  readonly identity: OriginatingIdentity | null;
}

/** What the platform was told of it. */
interface Told {
  readonly binding: Binding;
}

/** `phaseBefore`: to go back to when the unbind fails. Earlier versions have kept it, and a `binding` that is `null`, in every phase. */
type BindingPhaseFacts =
  | { readonly phase: "creating" | "failed" }
  | ({ readonly phase: "ready" } & Told)
  | ({ readonly phase: "deleting"; readonly phaseBefore: "ready" } & Told)
  | { readonly phase: "deleting"; readonly phaseBefore: "failed" };

/** The same binding in another phase: what belonged to the one before is left behind. */
export function bindingInPhase(
  record: BindingRecord,
  phase: BindingPhaseFacts,
  changed: Partial<BindingFacts> = {},
): BindingRecord {
  const { planId, parameters, appGuid, bindResource, context, predecessor, created, state, undo, last, identity } =
    record;
  const facts = {
    planId,
    parameters,
    appGuid,
    bindResource,
    context,
    predecessor,
    created,
    state,
    undo,
    last,
    identity,
  };
  return { ...facts, ...changed, ...phase };
}

/** About to be deleted. One that was already, by an unbind that was told to stop, goes back to what was before that. */
export function bindingToDeleting(record: BindingRecord, changed: Partial<BindingFacts>): BindingRecord {
  if (record.phase === "deleting") return { ...record, ...changed };
  return record.phase === "ready"
    ? bindingInPhase(record, { phase: "deleting", phaseBefore: "ready", binding: record.binding }, changed)
    : bindingInPhase(record, { phase: "deleting", phaseBefore: "failed" }, changed);
}

/** Back to what it was before an unbind that failed. */
export function bindingNotDeleted(record: BindingRecord, changed: Partial<BindingFacts>): BindingRecord {
  if (record.phase !== "deleting") return { ...record, ...changed };
  return record.phaseBefore === "ready"
    ? bindingInPhase(record, { phase: "ready", binding: record.binding }, changed)
    : bindingInPhase(record, { phase: "failed" }, changed);
}

/** What the platform was told of a binding; `undefined`: there was nothing to tell yet. */
export function bindingTold(record: BindingRecord | undefined): Binding | undefined {
  return record !== undefined && "binding" in record ? (record.binding ?? undefined) : undefined;
}

export const bindingPrefix = "binding/";

/** The id of the part of an instance's resource that a binding is. */
export type BindingPart = `${typeof bindingPrefix}${string}`;

export function bindingPart(binding: string): BindingPart {
  return `${bindingPrefix}${binding}`;
}

/** The way back from a part. `null`: it is not a binding. */
export function bindingId(part: string | null): string | null {
  return isBindingPart(part) ? part.slice(bindingPrefix.length) : null;
}

export function isBindingPart(part: string | null): part is BindingPart {
  return part?.startsWith(bindingPrefix) ?? false;
}

/** Of an instance's resource. */
export function bindingRecord(
  resource: { readonly parts: { get(id: BindingPart): BindingRecord | undefined } } | undefined,
  binding: string,
): BindingRecord | undefined {
  return resource?.parts.get(bindingPart(binding));
}

export function isExpired(record: BindingRecord, now: number): boolean {
  const expires = bindingTold(record)?.metadata?.expires_at;
  return expires !== undefined && Date.parse(expires) <= now;
}
