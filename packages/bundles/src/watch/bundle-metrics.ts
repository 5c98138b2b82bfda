import { metricSet, type Registry } from "@osbert/server/metrics";
import { failureRatio } from "../reconcile/records.js";
import type { BundleEvent, BundleObserver, KnownSource, SourceRead } from "./bundle-event.js";
import { bundleMetricDefinitions } from "./metric-definitions.js";

/** Metrics of bundles beside those of their broker, in its registry: `bundleMetrics(metrics().registry)` goes to `bundleServices`. */
export function bundleMetrics(registry: Registry): BundleObserver {
  const all = metricSet(bundleMetricDefinitions, registry);
  /** What this process has read itself is known sooner than what is stored: see `healthEveryMs`. */
  const completeAt = new Map<string, number>();

  const tellSources = (sources: readonly KnownSource[]): void => {
    const { lastComplete, snapshot, snapshotTime, failures, specs, guard } = all;
    // Those that are gone, or have another name, are told no more.
    for (const gauge of [lastComplete, snapshot, snapshotTime, failures, all.failureRatio, specs, guard]) gauge.reset();
    for (const { data, snapshotAt } of sources) {
      const { name: source, health, counts } = data;
      lastComplete.set({ source }, Math.max(health.lastCompleteAt ?? 0, completeAt.get(source) ?? 0) / 1_000);
      snapshot.set({ source }, data.snapshot);
      if (snapshotAt !== null) snapshotTime.set({ source }, snapshotAt / 1_000);
      failures.set({ source }, health.consecutiveFailures);
      const ratio = failureRatio(health.recent);
      if (ratio !== null) all.failureRatio.set({ source }, ratio);
      for (const [state, count] of Object.entries(counts)) specs.set({ source, state }, count);
      guard.set({ source }, data.guard === null || data.guard.confirmed !== null ? 0 : data.guard.count);
    }
  };

  const tellReading = ({ source, observation, at, tookMs }: SourceRead): void => {
    const { completeness, refs } = observation;
    all.reading.observe({ source, completeness }, tookMs / 1_000);
    // Counted first: of thousands, each would be looked up by its labels.
    const counts = new Map<string, number>();
    refs.forEach(({ seen }) => counts.set(seen.kind, (counts.get(seen.kind) ?? 0) + 1));
    for (const [verdict, count] of counts) all.verdicts.inc({ source, verdict }, count);
    if (completeness !== "complete") return;
    completeAt.set(source, at);
    all.lastComplete.set({ source }, at / 1_000);
  };

  return (event: BundleEvent): void => {
    switch (event.kind) {
      case "sources known":
        tellSources(event.sources);
        return;
      case "source read":
        tellReading(event);
        return;
      case "source changed":
        for (const { code } of event.events) all.events.inc({ source: event.source, code });
        return;
      case "job watched":
        all.jobsRunning.inc({ action: event.action });
        return;
      case "job left":
        all.jobsRunning.dec({ action: event.action });
        return;
      case "job ended": {
        const { action, end, cause } = event;
        all.jobs.inc({ action, end, cause });
        return;
      }
      case "bundle left out":
      case "source not taken in":
      case "source reading":
      case "source collected":
        return;
    }
  };
}
