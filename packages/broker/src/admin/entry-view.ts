import type { Entry, Json, OperationStatus } from "@osbert/journal";
import { bindingId } from "../records/binding-record.js";
import type { PassedOver } from "../records/forced-result.js";

import { operatorEntryKind } from "./operator-attribution.js";
import { iso, masked, type OperationView } from "./views.js";

/** One line of an instance's journal: who, when, why, and what, without inputs and results. */
export interface EntryView {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly operation: string | null;
  readonly actor: { readonly type: string; readonly subject: string };
  readonly cause: number | string | null;
  readonly request_id: string | null;
  readonly details: Readonly<Record<string, Json>>;
}

export interface StepView {
  readonly name: string;
  readonly at: string;
  readonly result_bytes: number;
}

/** An operation with its story, whether it has ended or not. */
export interface OperationDetails {
  readonly id: string;
  readonly verb: string;
  readonly binding: string | null;
  readonly state: OperationView["state"] | "succeeded" | "failed" | "cancelled";
  /** What is known of it as long as it is open. */
  readonly open: OperationView | null;
  /** The failure's message or the reason of the cancellation. */
  readonly message: string | null;
  /** Of a forced deletion: calls of the author's functions that did not end well. */
  readonly passed_over: readonly PassedOver[];
  readonly steps: readonly StepView[];
  readonly entries: readonly EntryView[];
  /** There are more entries than are shown here; the journal of the instance has them. */
  readonly more_entries: boolean;
}

export function entryView(entry: Entry): EntryView {
  const { seq, at, kind, operation, actor, cause, requestId, payload } = entry;
  return {
    seq,
    at: iso(at),
    kind,
    operation,
    actor: { type: actor.type, subject: actor.subject },
    cause,
    request_id: requestId,
    details: detailsOf(kind, fieldsOf(payload)),
  };
}

export function stepViews(entries: readonly Entry[]): readonly StepView[] {
  return entries
    .filter(({ kind }) => kind === "step")
    .map(({ at, payload }) => {
      const { step, result } = fieldsOf(payload);
      return { name: String(step), at: iso(at), result_bytes: bytesOf(result) };
    });
}

export function operationDetails(
  status: OperationStatus,
  open: OperationView | null,
): Omit<OperationDetails, "steps" | "entries" | "more_entries"> {
  const { id, kind, part, outcome } = status;
  return {
    id,
    verb: kind,
    binding: bindingId(part),
    state: outcome === null ? (open?.state ?? "queued") : outcome.kind,
    open,
    message: outcome?.kind === "failed" ? outcome.error.message : outcome?.kind === "cancelled" ? outcome.reason : null,
    passed_over: outcome?.kind === "succeeded" ? passedOverOf(outcome.result) : [],
  };
}

/** Only what is named here goes out: a kind of entry that is added later shows nothing until someone has thought about it. */
function detailsOf(kind: string, fields: Fields): Readonly<Record<string, Json>> {
  switch (kind) {
    case "accepted":
      return { ...pick(fields, "kind", "part"), ...(fields.input != null && { input: masked }) };
    case "step":
      return { ...pick(fields, "step"), result: masked, result_bytes: bytesOf(fields.result) };
    case "waiting":
      return { ...pick(fields, "reason", "wait"), ...until(fields) };
    case "retry":
      return { ...pick(fields, "attempt", "error"), ...until(fields) };
    case "described":
      return pick(fields, "description");
    case "cancel requested":
      return pick(fields, "reason");
    case "settled":
      return {
        outcome: fields.kind ?? null,
        ...pick(fields, "reason"),
        ...(fields.kind === "failed" && { message: fieldsOf(fields.error).message ?? null }),
        ...(fields.kind === "succeeded" && fields.result != null && { result: masked, ...passedOver(fields.result) }),
      };
    case "pruned":
      return pick(fields, "entries");
    case operatorEntryKind:
      return pick(fields, "action", "reason", "operation", "binding", "service", "cancelled", "bindings");
    default:
      return {};
  }
}

type Fields = { readonly [name: string]: Json | undefined };

function fieldsOf(payload: Json | undefined): Fields {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload) ? (payload as Fields) : {};
}

function pick(fields: Fields, ...names: readonly string[]): Readonly<Record<string, Json>> {
  const picked: Record<string, Json> = {};
  for (const name of names) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
}

function until({ until: time }: Fields): { readonly until?: string } {
  return typeof time === "number" ? { until: iso(time) } : {};
}

function bytesOf(value: Json | undefined): number {
  return value === undefined || value === null ? 0 : Buffer.byteLength(JSON.stringify(value));
}

/** Beside the masked result, since it is no result of the author's. */
function passedOver(result: Json): { readonly passed_over?: Json } {
  const all = passedOverOf(result);
  return all.length === 0 ? {} : { passed_over: all.map(({ call, error }) => `${call}: ${error}`) };
}

function passedOverOf(result: Json): readonly PassedOver[] {
  const { forced } = fieldsOf(result);
  // From an entry, which may be of any kind: what is called so there is such a list, but nothing says it to the compiler.
  return Array.isArray(forced) ? (forced as unknown as readonly PassedOver[]) : [];
}
