import { expect, test } from "vitest";
import { metricsReference } from "../packages/broker/src/observe/metric-definitions.js";
import { bundleMetricsReference } from "../packages/bundles/src/watch/metric-definitions.js";
import { flowMetricsReference } from "../packages/kubernetes/src/watch/metric-definitions.js";

test("the reference page of the metrics is what the code says (write it anew with vitest -u)", async () => {
  const page = `${metricsReference()}\n${bundleMetricsReference()}\n${flowMetricsReference()}`;
  await expect(page).toMatchFileSnapshot("../docs/reference/metrics.md");
});
