import type { AdoptInput, AppliedState, CreateInput, UpdateInput } from "../records/instance-record.js";
import { mergedBounds, objectText, parseJsonText } from "./json-text.js";

/** An operation of the queue with what it asks for, as far as that changes what the instance is. */
export interface ProjectedIntent {
  readonly id: string;
  readonly kind: string;
  readonly input: unknown;
}

/** What the instance will be when these have succeeded, one after the other. `null`: nothing. */
export function project(applied: AppliedState | null, queue: readonly ProjectedIntent[]): AppliedState | null {
  let state = applied;
  for (const intent of queue) {
    // What stands behind a delete is dropped when that succeeds.
    if (intent.kind === "delete") return null;
    state = afterIntent(state, intent);
  }
  return state;
}

/**
 * The text of a refresh. What it sends is what the instance is when its turn has come: what was wanted when it was asked for may be cancelled, or
 * refused, by then.
 */
export const nothingNew: UpdateInput["text"] = { plan: null, parameters: null, maintenance: null };

/** What an update is about: its text, except that a refresh has none, whatever was kept as that. */
export function textOf({ op, text }: Pick<UpdateInput, "op" | "text">): UpdateInput["text"] {
  return op === "refresh" ? nothingNew : text;
}

/** What an update makes of an instance: later texts go over earlier ones, member by member, as they were written. */
export function applyText(applied: AppliedState, { plan, parameters, maintenance }: UpdateInput["text"]): AppliedState {
  const isOtherPlan = plan !== null && plan.id !== applied.plan.id;
  return {
    plan: plan ?? applied.plan,
    parameters: mergeParameters(applied.parameters, parameters),
    // That of another plan says nothing about this one.
    maintenance: maintenance ?? (isOtherPlan ? null : applied.maintenance),
  };
}

export function mergeParameters(before: string | null, after: string | null): string | null {
  if (before === null || after === null) return after ?? before;
  const merged = new Map(membersOf(before));
  for (const [name, text] of membersOf(after)) merged.set(name, text);
  return objectText(merged);
}

/** What is adopted, as far as it is known from before: an adoption brings a plan, and nothing else. */
export function adoptedState(before: AppliedState | null, adopted: AppliedState): AppliedState {
  return before?.plan.id === adopted.plan.id ? { ...before, plan: adopted.plan } : adopted;
}

function afterIntent(state: AppliedState | null, { kind, input }: ProjectedIntent): AppliedState | null {
  switch (kind) {
    case "create": {
      const { plan, parameters, maintenance } = input as CreateInput;
      return { plan, parameters, maintenance };
    }
    case "adopt":
      return adoptedState(state, { plan: (input as AdoptInput).plan, parameters: null, maintenance: null });
    case "update":
      return state === null ? null : applyText(state, textOf(input as UpdateInput));
    default:
      return state;
  }
}

/** Each member of an object as it was written. */
export function membersOf(text: string): readonly (readonly [name: string, text: string])[] {
  const node = parseJsonText(text, mergedBounds);
  return node.kind === "object" ? Array.from(node.members, ([name, member]) => [name, member.text] as const) : [];
}
