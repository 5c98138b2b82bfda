import { type MetricDefinition, metricsTable } from "@osbert/server/metrics";

const readyBuckets = [1, 2, 5, 10, 30, 60, 120, 300, 900, 3_600];

/** All metrics of event flow. The reference page is made from this table; what is not in it is not measured. */
export const flowMetricDefinitions = {
  ready: {
    name: "osbert_flow_ready",
    type: "gauge",
    labels: ["namespace", "application"],
    help: "1 if the events of the application flow into the namespace, 0 if not; told by the process that follows the namespace.",
  },
  claims: {
    name: "osbert_flow_claims",
    type: "gauge",
    labels: ["namespace"],
    help: "Flows that need the Broker of the namespace.",
  },
  brokerState: {
    name: "osbert_flow_broker_state",
    type: "gauge",
    labels: ["namespace", "state"],
    help: "1 for the state that the Broker of the namespace is in: absent, ensuring, present, lingering or deleting.",
  },
  timeToReady: {
    name: "osbert_flow_time_to_ready_seconds",
    type: "histogram",
    labels: [],
    help: "From the claim of a flow to the first time that its events flowed.",
    buckets: readyBuckets,
  },
  heal: {
    name: "osbert_flow_heal_seconds",
    type: "histogram",
    labels: ["condition"],
    help: "How long a condition of a flow was not true until it was again.",
    buckets: readyBuckets,
  },
  transitions: {
    name: "osbert_flow_transitions_total",
    type: "counter",
    labels: ["condition", "status", "reason"],
    help: "Conditions of flows that have changed. `reason` is a word of Osbert's own, else `other`: what objects say of themselves is in the log.",
  },
  changes: {
    name: "osbert_flow_cluster_changes_total",
    type: "counter",
    labels: ["what", "done"],
    help: "Objects that were applied or removed for flows.",
  },
  refusals: {
    name: "osbert_flow_cluster_refusals_total",
    type: "counter",
    labels: ["what", "failure"],
    help: "Changes that the cluster did not make, by the class of its answer.",
  },
  looks: {
    name: "osbert_flow_look_duration_seconds",
    type: "histogram",
    labels: [],
    help: "Time that a look at a namespace took, with what was done for it in the cluster.",
    buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** The part of the reference page of metrics that is about event flow, in Markdown. */
export function flowMetricsReference(): string {
  return [
    "## Event flow",
    "",
    "Of a broker that offers [applications of a cluster](../guides/operating-events.md). A namespace is told by the process that follows it: take the sum over replicas.",
    "",
    ...metricsTable(flowMetricDefinitions),
    "",
  ].join("\n");
}
