import { defineResource } from "@osbert/journal";
import type { CallMark, PlanRef } from "./instance-record.js";

/** What may exist at a broker although nobody has it. It outlives the instance, and ends mitigated or dismissed. */
export type OrphanShape = {
  data: OrphanData;
  parts: {
    /** The same answer to poll after poll. */
    poll: NonNullable<CallMark["repeated"]>;
  };
  operations: {
    /** `adopted`: it has an owner again, an instance with this key, and was not deleted. */
    mitigate: {
      input: null;
      result:
        | { readonly status: "mitigated"; readonly at: number }
        | { readonly status: "adopted"; readonly at: number; readonly owner: string };
    };
  };
};

export const orphanRecords = defineResource<OrphanShape>();

export interface OrphanData {
  readonly broker: string;
  readonly space: string;
  /** Of the instance to which it belonged. */
  readonly instance: string;
  readonly instanceOsbId: string;
  readonly bindingOsbId: string | null;
  readonly offering: PlanRef;
  readonly plan: PlanRef;
  /** What happened: the operation, and the answer that left it in doubt. */
  readonly operation: string;
  readonly reason: string;
  readonly suspectedAt: number;
  /** Nobody knows that it is over: for a while it may come into being after it was deleted, or the broker has said that there is nothing. */
  readonly mayComeLate: boolean;
  /** What the broker has said meanwhile of something that may come late: that it has deleted it, or that there is nothing. */
  readonly gone?: "deleted" | "absent";
  /**
   * A DELETE may have been sent, and nobody has heard what came of it: also in a row that was dismissed since. Kept before it is sent. `operation`: the broker has accepted
   * it as this operation of its own; `null`: it has not named one, or has not been heard.
   */
  readonly deleting?: { readonly operation: string | null };
  /** The broker answered 409: the id belongs to something that exists, and only a person may have that deleted. */
  readonly isConflict: boolean;
  /** `held`: waits for someone to say what is to become of it. */
  readonly state: "open" | "held" | "mitigated" | "dismissed" | "abandoned";
  readonly tries: number;
  /** How often in a row the broker answered 404 to the DELETE. */
  readonly notFound?: number;
  readonly lastAnswer: string | null;
  readonly endedAt: number | null;
  readonly endedBy: string | null;
  readonly endReason: string | null;
}

/** By what rows are found. Every commit that writes labels takes them from here. */
export function orphanLabels({ broker, space, state }: Pick<OrphanData, "broker" | "space" | "state">): {
  readonly [name: string]: string;
} {
  return { broker, ...(space !== "" && { space }), state };
}
