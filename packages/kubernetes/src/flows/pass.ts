import type { ObjectPlace } from "../cluster/cluster-object.js";
import type { Desired } from "./desired-objects.js";

/** What the objects are that flows are made of. */
export type What = "broker" | "subscription" | "policy" | "mirror";

/**
 * Something to do in the cluster. Each follows from what is kept and what is seen, so that one which was not done, or done and not seen, comes of
 * the next pass again; none does harm when it is done twice.
 */
export type Action =
  | {
      readonly kind: "apply";
      readonly what: What;
      readonly desired: Desired;
      readonly application?: string;
      /**
       * The uid of the object that it changes; `null`: there is none of the name. If that has changed meanwhile, it must do nothing: what a user has
       * put there is not taken from him, and what was removed is not made again. Without it, whatever is there is changed.
       */
      readonly over?: string | null;
    }
  /** Takes fields away that others have put there: an apply leaves them, because they are not its own. */
  | {
      readonly kind: "clear";
      readonly what: "subscription";
      readonly place: ObjectPlace;
      readonly uid: string;
      /** JSON Pointers. */
      readonly paths: readonly string[];
    }
  | { readonly kind: "apply status"; readonly what: "mirror"; readonly desired: Desired }
  | {
      readonly kind: "remove";
      readonly what: What;
      /** Of policies: which kind. */
      readonly of?: string;
      readonly place: ObjectPlace;
      readonly uid: string;
      readonly resourceVersion: string;
    };
