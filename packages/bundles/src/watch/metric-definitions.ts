import { type MetricDefinition, metricsTable } from "@osbert/server/metrics";

/** An unchanged source of 500 repositories takes a second; the time of a reading ends after ten minutes. */
const readingBuckets = [0.1, 0.5, 1, 2.5, 5, 15, 30, 60, 120, 300, 600];

/** All metrics of bundles. The reference page is made from this table; what is not in it is not measured. */
export const bundleMetricDefinitions = {
  lastComplete: {
    name: "osbert_source_last_complete_timestamp_seconds",
    type: "gauge",
    labels: ["source"],
    help: "When the source was last read completely, in seconds since 1970; 0 if it never was. Of a source that does not change, only the process that reads it knows the last hour.",
  },
  snapshot: {
    name: "osbert_source_snapshot",
    type: "gauge",
    labels: ["source"],
    help: "The number of the snapshot that this process offers of the source. Replicas that stay behind the highest do not hear of changes.",
  },
  snapshotTime: {
    name: "osbert_source_snapshot_timestamp_seconds",
    type: "gauge",
    labels: ["source"],
    help: "When that snapshot was committed, in seconds since 1970; left out if the source's journal does not tell it any more.",
  },
  failures: {
    name: "osbert_source_failures",
    type: "gauge",
    labels: ["source"],
    help: "Readings that failed in a row, as it is stored; 0 after one that did not.",
  },
  failureRatio: {
    name: "osbert_source_failure_ratio",
    type: "gauge",
    labels: ["source"],
    help: "The share of the last 20 readings that failed, as it is stored; left out before the first reading.",
  },
  specs: {
    name: "osbert_source_specs",
    type: "gauge",
    labels: ["source", "state"],
    help: "Specs of the source: pending, rejected, active, missing, retired or deleted.",
  },
  guard: {
    name: "osbert_source_guard_held",
    type: "gauge",
    labels: ["source"],
    help: "Specs whose removal the guard holds until someone confirms it; 0 if it holds none.",
  },
  reading: {
    name: "osbert_source_reading_duration_seconds",
    type: "histogram",
    labels: ["source", "completeness"],
    help: "Time that a reading in this process took. It was complete, partial (some refs could not be read) or failed (the list could not).",
    buckets: readingBuckets,
  },
  verdicts: {
    name: "osbert_source_verdicts_total",
    type: "counter",
    labels: ["source", "verdict"],
    help: "What readings in this process found refs to be: same, read, absent, unreadable, invalid, not a bundle or filtered.",
  },
  events: {
    name: "osbert_source_events_total",
    type: "counter",
    labels: ["source", "code"],
    help: "What this process has committed of the source, by reason code: guard.tripped, spec.retired and others.",
  },
  jobsRunning: {
    name: "osbert_bundle_jobs_running",
    type: "gauge",
    labels: ["action"],
    help: "Actions of bundles whose end this process waits for now. One that runs for long is left for a second, now and then, and not counted then.",
  },
  jobs: {
    name: "osbert_bundle_jobs_total",
    type: "counter",
    labels: ["action", "end", "cause"],
    help: "Actions of bundles whose end this process has seen. The end is done, refused, try again, not known, failed or lost; the cause is exit, timeout, output, memory, disk, stopped or lost.",
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** The part of the reference page of metrics that is about bundles, in Markdown. */
export function bundleMetricsReference(): string {
  return [
    "## Bundles",
    "",
    "Of a broker whose services come from [registries](../guides/operating-registries.md). Sources are told by the names that are configured; neither a spec nor an",
    "image is a label. All gauges of sources are those of the store: take the maximum over replicas.",
    "",
    ...metricsTable(bundleMetricDefinitions),
    "",
  ].join("\n");
}
