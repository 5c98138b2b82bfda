import { metricRegistry } from "@osbert/server/metrics";
import { expect, test } from "vitest";
import type { FlowConditionChanged } from "../src/watch/flow-event.js";
import { flowMetrics } from "../src/watch/flow-metrics.js";

function changed(reason: string): FlowConditionChanged {
  return {
    ...{ kind: "flow condition", namespace: "shop", flow: "f", application: "commerce" },
    condition: { type: "SinkReady", status: "False", reason, message: "", since: 0 },
    ...{ afterMs: null, sinceClaimMs: 0 },
  };
}

test("whatever objects say of themselves, there is one series for it", async () => {
  const registry = metricRegistry({ process: false });
  const observe = flowMetrics(registry);
  observe(changed("BrokerMissing"));
  for (let many = 0; many < 1_000; many++) observe(changed(`Word${many}`));
  const told = await registry.metrics();
  const series = told.split("\n").filter((line) => line.startsWith("osbert_flow_transitions_total{"));
  expect(series).toHaveLength(2);
  expect(series.join(" ")).toMatch(/reason="BrokerMissing"\} 1 .*reason="other"\} 1000/);
});
