import type { OpenOperation, Outcome } from "./operation.js";

/** What every event about an operation says of it. */
export interface OperationFacts {
  readonly key: string;
  readonly operation: string;
  readonly operationKind: string;
  /** The part that it is about, if not the resource itself. */
  readonly part: string | null;
  /** Of the request that asked for it. */
  readonly requestId: string | null;
  /** Of the resource. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Everything worth telling, in one union. Adapters turn it into logs, metrics and traces; nothing here carries inputs or results. */
export type JournalEvent =
  | (OperationFacts & { readonly kind: "accepted"; readonly lane: string })
  | (OperationFacts & { readonly kind: "attempt started"; readonly attempt: number })
  | (OperationFacts & { readonly kind: "step finished"; readonly step: string; readonly tookMs: number })
  | (OperationFacts & { readonly kind: "waiting"; readonly until: number })
  | (OperationFacts & {
      readonly kind: "retrying";
      readonly attempt: number;
      readonly until: number;
      readonly error: unknown;
    })
  | (OperationFacts & {
      readonly kind: "settled";
      readonly outcome: Outcome["kind"];
      /** The failure's message, as whoever asked is told it, or the reason of the cancellation. */
      readonly message: string | null;
      readonly tookMs: number;
      /** What the kind's `settle` threw, or what was wrong with its change: the operation has ended without it. Most likely a bug. */
      readonly settleError?: unknown;
    })
  | { readonly kind: "cancel requested"; readonly key: string; readonly operation: string }
  | (OperationFacts & { readonly kind: "abandoned"; readonly why: string })
  | (OperationFacts & { readonly kind: "unknown kind" })
  | { readonly kind: "lease lost"; readonly key: string; readonly running: number }
  | { readonly kind: "taken over"; readonly resources: number }
  | { readonly kind: "set aside"; readonly key: string; readonly error: unknown }
  | { readonly kind: "pruned"; readonly key: string; readonly entries: number; readonly removed: boolean }
  | { readonly kind: "archive failed"; readonly key: string; readonly entries: number; readonly error: unknown }
  | { readonly kind: "store failed"; readonly doing: string; readonly error: unknown }
  | { readonly kind: "store answered again"; readonly doing: string }
  | { readonly kind: "presence lost" };

export type Observe = (event: JournalEvent) => void;

export function factsOf(
  key: string,
  { id, kind, part, requestId }: Pick<OpenOperation, "id" | "kind" | "part" | "requestId">,
  labels: OperationFacts["labels"],
): OperationFacts {
  return { key, operation: id, operationKind: kind, part, requestId, labels };
}

/** Where the crash suite kills the process. Every name is a moment between two effects. */
export const crashPoints = [
  "before accept is committed",
  "after accept is committed",
  "after claim",
  "before attempt",
  "before step",
  "after step, before it is recorded",
  "after step is recorded",
  "before wait is recorded",
  "after wait is recorded",
  "before retry is recorded",
  "after retry is recorded",
  "before operation is settled",
  "after operation is settled",
  "before cancel is committed",
  "after cancel is committed",
  "before prune",
  "after prune",
  "before leases are renewed",
  "after leases are renewed",
  "before dead owners are reaped",
  "after dead owners are reaped",
] as const;

export type CrashPoint = (typeof crashPoints)[number];
