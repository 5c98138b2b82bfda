import type { Pass, StoredNamespace } from "../flows/decide-pass.js";
import { conditionOf } from "../flows/flow-record.js";
import type { FlowObserver } from "../watch/flow-event.js";

/** Tells of what a pass has changed. */
export function tellOfPass(tell: FlowObserver, before: StoredNamespace, { after, change }: Pass): void {
  if (change === null) return;
  const { namespace, broker, holders } = after.data;
  if (before.data.broker.state !== broker.state) {
    tell({
      kind: "broker state",
      namespace,
      from: before.data.broker.state,
      to: broker.state,
      holders: holders.length,
    });
  }
  for (const [flow, record] of after.flows) {
    for (const condition of record.conditions) {
      const was = conditionOf(before.flows.get(flow) ?? { conditions: [] }, condition.type);
      if (was?.status === condition.status) continue;
      const afterMs = was === undefined ? null : condition.since - was.since;
      const sinceClaimMs = condition.since - record.since;
      tell({
        kind: "flow condition",
        namespace,
        flow,
        application: record.application,
        condition,
        afterMs,
        sinceClaimMs,
      });
    }
  }
}
