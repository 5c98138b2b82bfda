import { metricSet, type Registry } from "@osbert/server/metrics";
import { ClusterError } from "../cluster/cluster-error.js";
import { ownReasons } from "../flows/flow-record.js";
import type { FlowConditionChanged, FlowObserver, NamespaceLookedAt } from "./flow-event.js";
import { flowMetricDefinitions } from "./metric-definitions.js";

const reasons: ReadonlySet<string> = new Set(ownReasons);

/** What objects say of themselves, anybody may write: a label with any word would be as many series. */
function boundedReason(reason: string): string {
  return reasons.has(reason) ? reason : "other";
}

/** So long after its next look was due a namespace is taken to be followed by another process, which tells of it then. */
const graceMs = 60_000;

/** Metrics of event flow beside those of their broker, in its registry. */
export function flowMetrics(registry: Registry, nowMs: () => number = Date.now): FlowObserver {
  const all = metricSet(flowMetricDefinitions, registry);
  const known = new Map<string, NamespaceLookedAt & { readonly until: number }>();

  const forget = ({ namespace, flows, brokerState }: NamespaceLookedAt): void => {
    known.delete(namespace);
    all.claims.remove({ namespace });
    all.brokerState.remove({ namespace, state: brokerState });
    for (const { application } of flows) all.ready.remove({ namespace, application });
  };

  const tell = (event: NamespaceLookedAt): void => {
    const { namespace, flows, brokerState } = event;
    const before = known.get(namespace);
    if (before !== undefined) forget(before);
    all.looks.observe({}, event.tookMs / 1_000);
    for (const each of known.values()) if (each.until < nowMs()) forget(each);
    if (flows.length === 0 && brokerState === "absent") return;
    known.set(namespace, { ...event, until: nowMs() + event.againMs + graceMs });
    all.claims.set({ namespace }, flows.length);
    all.brokerState.set({ namespace, state: brokerState }, 1);
    // Of several flows of an application, all have to be well.
    for (const { application, ready } of flows.toSorted((one) => (one.ready === "True" ? -1 : 1)))
      all.ready.set({ namespace, application }, ready === "True" ? 1 : 0);
  };

  const changed = ({ condition, afterMs, sinceClaimMs }: FlowConditionChanged): void => {
    const { type, status } = condition;
    all.transitions.inc({ condition: type, status, reason: boundedReason(condition.reason) });
    if (status !== "True") return;
    if (afterMs !== null) all.heal.observe({ condition: type }, afterMs / 1_000);
    if (type === "Ready") all.timeToReady.observe({}, sinceClaimMs / 1_000);
  };

  return (event) => {
    switch (event.kind) {
      case "flow condition":
        changed(event);
        return;
      case "cluster changed":
        all.changes.inc({ what: event.what, done: event.done });
        return;
      case "cluster refused":
        all.refusals.inc({
          what: event.what,
          failure: event.error instanceof ClusterError ? event.error.failure : "bug",
        });
        return;
      case "namespace looked at":
        tell(event);
        return;
      case "broker state":
        return;
    }
  };
}
