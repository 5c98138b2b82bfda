import type { Json } from "../json.js";
import type { Mode, OpenOperation, Outcome } from "../operation.js";
import type { Resource, ResourceChange } from "../resource.js";
import type { Backoff } from "./backoff.js";

/** What the decisions must know of a kind of operation; how it is run is the engine's business (see engine/operation-kind.ts). */
export interface KindRules {
  /** Default: exclusive. */
  readonly mode?: Mode;
  /** The class of work whose concurrency is bounded together, such as a service's id. Default: the kind's name. */
  readonly lane?: string | ((input: Json) => string);
  /** From acceptance to the end at the latest. Default: 24 hours. `null`: none. */
  readonly deadlineMs?: number | null;
  /** Attempts that fail in a row, without a step recorded between them, before it is given up. Default: as many as fit before the deadline. */
  readonly maxAttempts?: number;
  readonly backoff?: Backoff;
  /**
   * Parts that `settle` wants to see beside the operation's own. By their ids, not by a prefix: an operation ends in any case, at a cost that
   * does not grow with the number of parts (J10).
   */
  readonly reads?: readonly string[];
  /**
   * `settle` wants to see all open operations, also those behind the record. Costs more, the more of them there are: for kinds whose resources bound
   * their queues themselves.
   */
  readonly open?: "all";
  /** Pure: what the end of the operation means for the resource. It is part of the commit that ends the operation. */
  settle?(resource: Resource, operation: OpenOperation, outcome: Outcome): ResourceChange;
}

export type Kinds = Readonly<Record<string, KindRules>>;

export const defaultDeadlineMs = 24 * 60 * 60 * 1000;

export function rulesOf(kinds: Kinds, kind: string): KindRules | undefined {
  return Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
}

/** The parts that the end of an operation is decided on. */
export function partsToSettle(rules: KindRules, operation: Pick<OpenOperation, "part">): readonly string[] {
  return operation.part === null ? (rules.reads ?? []) : [...(rules.reads ?? []), operation.part];
}
