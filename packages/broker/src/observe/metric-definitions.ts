import { type MetricDefinition, metricsTable } from "@osbert/server/metrics";

const requestBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const storeBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const workBuckets = [0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 14_400, 86_400];

/** All metrics of a broker. The reference page is made from this table; what is not in it is not measured. */
export const metricDefinitions = {
  requests: {
    name: "osbert_requests_total",
    type: "counter",
    labels: ["verb", "service", "plan", "status"],
    help: "Requests answered. The verb is the endpoint, or none if the path is no endpoint; service and plan are those that the request names, unknown if the catalog does not have them, none if it names none.",
  },
  requestDuration: {
    name: "osbert_request_duration_seconds",
    type: "histogram",
    labels: ["verb", "service", "plan"],
    help: "Time from a request to its answer.",
    buckets: requestBuckets,
  },
  refused: {
    name: "osbert_requests_refused_total",
    type: "counter",
    labels: ["status", "user"],
    help: "Requests that were not let in: 401 without a valid credential, 429 after too many guesses. The user is known if a credential has the user name, at a wrong door if that credential is for another part of the broker, unknown if none has the name, none if the request has no user name.",
  },
  accepted: {
    name: "osbert_operations_accepted_total",
    type: "counter",
    labels: ["kind", "service", "plan"],
    help: "Operations accepted by this process.",
  },
  operations: {
    name: "osbert_operations_total",
    type: "counter",
    labels: ["kind", "service", "plan", "outcome"],
    help: "Operations that have ended in this process: succeeded, failed or cancelled.",
  },
  operationDuration: {
    name: "osbert_operation_duration_seconds",
    type: "histogram",
    labels: ["kind", "service", "plan", "outcome"],
    help: "Time from the acceptance of an operation to its end, waits and retries included.",
    buckets: workBuckets,
  },
  stepDuration: {
    name: "osbert_step_duration_seconds",
    type: "histogram",
    labels: ["kind", "service", "step"],
    help: "Time that a recorded step took. Of a process's step names the first 200 are told apart; later ones are called other.",
    buckets: workBuckets,
  },
  retries: {
    name: "osbert_operation_retries_total",
    type: "counter",
    labels: ["kind", "service", "plan"],
    help: "Attempts that failed and are tried again.",
  },
  running: {
    name: "osbert_operations_running",
    type: "gauge",
    labels: [],
    help: "Operations that run in this process now.",
  },
  open: {
    name: "osbert_operations_open",
    type: "gauge",
    labels: ["service"],
    help: "Instances with an open operation, in all processes on the store; several binds of one instance at a time count as one. Counted up to 20,000 a service.",
  },
  due: {
    name: "osbert_operations_due",
    type: "gauge",
    labels: ["service"],
    help: "Instances whose operation could run and with which nobody has begun, in all processes on the store. Counted up to 10,000 a service.",
  },
  waiting: {
    name: "osbert_operations_waiting",
    type: "gauge",
    labels: [],
    help: "Instances whose operation waits for its time (a sleep, a RetryLater, the next try), in all processes on the store.",
  },
  stuck: {
    name: "osbert_operations_stuck",
    type: "gauge",
    labels: ["service"],
    help: "Open operations whose last five attempts or more failed without a step recorded in between, in all processes on the store. They are tried again until their deadline.",
  },
  oldest: {
    name: "osbert_oldest_operation_age_seconds",
    type: "gauge",
    labels: ["service"],
    help: "Age of the oldest open operation, in all processes on the store; 0 if there is none.",
  },
  backlogComplete: {
    name: "osbert_backlog_complete",
    type: "gauge",
    labels: ["service"],
    help: "1 if all open operations of the service were looked into for the stuck and oldest ones; 0 if there are so many that only the 200 instances that are due first were.",
  },
  storeUp: {
    name: "osbert_store_up",
    type: "gauge",
    labels: [],
    help: "1 if the store answered this scrape within two seconds and takes writes, else 0; if it did not answer, the numbers of all processes are left out.",
  },
  storeDuration: {
    name: "osbert_store_duration_seconds",
    type: "histogram",
    labels: ["call"],
    help: "Time that the store took to answer a call: read, commit, claim and others. Commits share a durable write, so this is not the time of one.",
    buckets: storeBuckets,
  },
  storeFailures: {
    name: "osbert_store_failures_total",
    type: "counter",
    labels: ["call"],
    help: "Calls of the store that failed. They are tried again.",
  },
  takenOver: {
    name: "osbert_taken_over_total",
    type: "counter",
    labels: [],
    help: "Instances whose operation this process freed because the one that ran it died.",
  },
  leasesLost: {
    name: "osbert_leases_lost_total",
    type: "counter",
    labels: [],
    help: "Instances that another process took over from this one, because it did not answer in time.",
  },
  abandoned: {
    name: "osbert_attempts_abandoned_total",
    type: "counter",
    labels: ["kind", "service", "plan"],
    help: "Attempts that were told to stop, did not, and were given up.",
  },
  setAside: {
    name: "osbert_set_aside_total",
    type: "counter",
    labels: [],
    help: "Records that could not be read and were set aside.",
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** The reference page of the metrics, in Markdown. */
export function metricsReference(): string {
  return [
    "# Metrics",
    "",
    "What `/metrics` tells, in the text format of Prometheus. This page is generated from the code; a test compares them.",
    "",
    "A label never holds an id: services and plans are told by their names in the catalog, and what the catalog does not have is `unknown`, so",
    "that the number of series is bounded by the catalog. The process's own metrics (`process_…`, `nodejs_…`) come along.",
    "",
    "What speaks of all processes on the store is told alike by each of them: take the maximum over replicas, not the sum. Counters and",
    "histograms speak of one process each: those are summed.",
    "",
    ...metricsTable(metricDefinitions),
    "",
  ].join("\n");
}
