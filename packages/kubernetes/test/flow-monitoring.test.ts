import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { metricRegistry } from "@osbert/server/metrics";
import { expect, onTestFinished, test } from "vitest";
import { clusterTimeoutMs, freshNamespace, sharedCluster } from "../../../tools/cluster/test-cluster.js";
import { ask, boardQueries, metricsUsed, providePrometheus, startPrometheus } from "../../../tools/prometheus.js";
import { required } from "../../../tools/required.js";
import { until } from "../../../tools/until.js";
import { flowMetrics } from "../src/watch/flow-metrics.js";
import { flowMetricDefinitions } from "../src/watch/metric-definitions.js";
import { FlowLab, flowBroker, SaidApplications } from "./flow-lab.js";

// The rules for Prometheus and the board for Grafana: the part about flows. The rest has its test in tools/monitoring.test.ts.

test("every metric of flows in the rules and on the board is one", () => {
  const names = new Set<string>(Object.values(flowMetricDefinitions).map(({ name }) => name));
  const used = metricsUsed().filter((name) => name.startsWith("osbert_flow_"));
  expect(used.length).toBeGreaterThan(10);
  expect(used.filter((name) => !names.has(name) && !names.has(name.replace(/_(bucket|sum|count)$/, "")))).toEqual([]);
});

test(
  "every query about flows finds what it looks for in the figures of a flow that was late",
  async () => {
    const programs = required("the queries on the metrics of flows", providePrometheus());
    const cluster = required("the queries on the metrics of flows", await sharedCluster({ knative: true }));
    if (programs === undefined || cluster === undefined) return;
    const lab = await FlowLab.open(cluster);
    onTestFinished(() => lab.close());
    const [namespace, application] = [await lab.namespace(), freshNamespace("shop")];
    const applications = new SaidApplications();
    applications.add(application);
    applications.grant(namespace, application);
    const flows = await flowBroker({
      ...{ facts: cluster.facts, applications, offered: [application] },
      settings: lab.settings,
    });
    onTestFinished(() => flows.stop());
    await flows.provision(namespace, "i", application);
    await flows.tells(namespace, "i", /channel/);
    await lab.channel(application);
    await flows.settles(namespace, "i", "succeeded");

    const registry = metricRegistry({ process: false });
    const observe = flowMetrics(registry);
    for (const event of flows.events) observe(event);
    const server = createServer((_, response) => {
      void registry.metrics().then((text) => response.setHeader("content-type", registry.contentType).end(text));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const prometheus = await startPrometheus(programs.prometheus, url);
    const ofFlows = boardQueries().filter(({ query }) => query.includes("osbert_flow_"));
    expect(ofFlows.length).toBeGreaterThan(6);
    for (const { title, query } of ofFlows)
      await until(`${title}: ${query}`, async () => (await ask(prometheus, "query", { query })).result.length > 0);
    const [{ value }] = (await ask(prometheus, "query", { query: "min(osbert_flow_ready)" })).result;
    expect(value[1]).toBe("1");
  },
  clusterTimeoutMs,
);
