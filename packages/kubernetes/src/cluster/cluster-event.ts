import type { WatchState } from "./cluster.js";

/** What an operator may want to know of the edge to a cluster. */
export type ClusterEvent =
  | {
      readonly kind: "watch state changed";
      readonly objects: string;
      readonly state: WatchState;
      readonly why: string | null;
    }
  /** `keep` or `changed` of a watch has thrown: a mistake in the program. The watch goes on. */
  | { readonly kind: "watch listener failed"; readonly objects: string; readonly error: unknown };
