import type { Outcome } from "./operation.js";

/** Everything worth telling, in one union. Adapters turn it into logs, metrics and traces; nothing here carries inputs or results. */
export type JournalEvent =
  | {
      readonly kind: "accepted";
      readonly key: string;
      readonly operation: string;
      readonly operationKind: string;
      readonly lane: string;
    }
  | {
      readonly kind: "attempt started";
      readonly key: string;
      readonly operation: string;
      readonly operationKind: string;
      readonly attempt: number;
    }
  | {
      readonly kind: "step finished";
      readonly key: string;
      readonly operation: string;
      readonly step: string;
      readonly tookMs: number;
    }
  | { readonly kind: "waiting"; readonly key: string; readonly operation: string; readonly until: number }
  | {
      readonly kind: "retrying";
      readonly key: string;
      readonly operation: string;
      readonly attempt: number;
      readonly until: number;
      readonly error: unknown;
    }
  | {
      readonly kind: "settled";
      readonly key: string;
      readonly operation: string;
      readonly operationKind: string;
      readonly outcome: Outcome["kind"];
      readonly tookMs: number;
    }
  | { readonly kind: "cancel requested"; readonly key: string; readonly operation: string }
  | { readonly kind: "abandoned"; readonly key: string; readonly operation: string; readonly why: string }
  | { readonly kind: "lease lost"; readonly key: string; readonly running: number }
  | { readonly kind: "unknown kind"; readonly key: string; readonly operation: string; readonly operationKind: string }
  | { readonly kind: "taken over"; readonly resources: number }
  | { readonly kind: "set aside"; readonly key: string; readonly error: unknown }
  | { readonly kind: "pruned"; readonly key: string; readonly entries: number; readonly removed: boolean }
  | { readonly kind: "store failed"; readonly doing: string; readonly error: unknown }
  | { readonly kind: "store answered again"; readonly doing: string }
  | { readonly kind: "presence lost" };

export type Observe = (event: JournalEvent) => void;

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
