import type { Cluster } from "../cluster/cluster.js";
import { ClusterError, isPassing } from "../cluster/cluster-error.js";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";
import { kinds } from "../flows/flow-settings.js";
import type { Action } from "../flows/pass.js";

/** What came of an action. `refused`: the cluster does not take it, now and probably later. `later`: it may go through in a while. */
export type Carried =
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly error: ClusterError }
  | { readonly kind: "later"; readonly afterMs: number | null; readonly error: unknown };

const kindOf: Readonly<Record<string, ObjectKind>> = {
  broker: kinds.broker,
  subscription: kinds.subscription,
  mirror: kinds.eventFlow,
  [kinds.peerAuthentication.kind]: kinds.peerAuthentication,
  [kinds.authorizationPolicy.kind]: kinds.authorizationPolicy,
};

/** Does in the cluster what a pass has decided. Only what carries our label is applied to, so that the fields are ours: others' changes of them are undone. */
export async function carryOut(cluster: Cluster, action: Action, signal: AbortSignal): Promise<Carried> {
  try {
    switch (action.kind) {
      case "apply":
        await cluster.apply(action.desired.kind, withPrecondition(action), { force: true, signal });
        return { kind: "done" };
      case "apply status":
        await cluster.applyStatus(action.desired.kind, action.desired.object, { force: true, signal });
        return { kind: "done" };
      case "clear": {
        const test = { op: "test", path: "/metadata/uid", value: action.uid } as const;
        const removals = action.paths.map((path) => ({ op: "remove", path }) as const);
        await cluster.patch(kinds.subscription, action.place, [test, ...removals], { signal });
        return { kind: "done" };
      }
      case "remove": {
        const { uid, resourceVersion, place } = action;
        const kind = kindOf[action.of ?? action.what];
        if (kind === undefined) throw new Error(`objects of ${action.of ?? action.what} are not known`);
        const came = await cluster.remove(kind, place, { uid, resourceVersion }, { signal });
        // What has changed since it was seen is decided on anew, when that is seen.
        return came === "changed" ? { kind: "later", afterMs: null, error: null } : { kind: "done" };
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ClusterError)) throw error;
    const isOther = error.failure === "invalid" && error.message.includes("metadata.uid");
    const isRefused = !isOther && (error.failure === "forbidden" || error.failure === "invalid");
    if (isRefused) return { kind: "refused", error };
    return { kind: "later", afterMs: isPassing(error) ? error.retryAfterMs : null, error };
  }
}

/**
 * A server takes an object with a uid only for the one that has it. One with a version it takes for the one of that version, or makes it if there is
 * none: no object has the first version, so that nothing is changed that was not known of.
 */
function withPrecondition({ desired: { object }, over }: Extract<Action, { readonly kind: "apply" }>): ClusterObject {
  if (over === undefined) return object;
  const precondition = over === null ? { resourceVersion: "1" } : { uid: over };
  return { ...object, metadata: { ...object.metadata, ...precondition } };
}

export function nameOf(action: Action): string {
  return action.kind === "remove" || action.kind === "clear" ? action.place.name : action.desired.object.metadata.name;
}
