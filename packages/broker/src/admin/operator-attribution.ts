import type { Attribution, Json } from "@osbert/journal";

/** Who does something to a running broker, and why. It stands in the journal of what was touched. */
export interface OperatorAttribution {
  /** The name of the admin credential that was used. */
  readonly operator: string;
  /** In the operator's own words. Required: whoever reads the journal a year later has nothing else. */
  readonly reason: string;
  readonly requestId: string | null;
}

/** The kind of the entry that every action leaves, in the same commit as the action. */
export const operatorEntryKind = "operator";

/** J9: how the journal tells that an operator asked. */
export function attributionOf({ operator, reason, requestId }: OperatorAttribution): Attribution {
  return {
    actor: { type: "operator", subject: operator },
    cause: reason,
    ...(requestId !== null && { requestId }),
  };
}

/** The entry itself: what was done, to what, and why. */
export function operatorEntry(
  { reason }: OperatorAttribution,
  action: string,
  about: Readonly<Record<string, Json>> = {},
): { readonly kind: string; readonly payload: Json } {
  return { kind: operatorEntryKind, payload: { action, reason, ...about } };
}
