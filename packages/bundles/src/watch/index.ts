export type {
  BundleEvent,
  BundleLeftOut,
  BundleObserver,
  JobEnded,
  JobFacts,
  JobLeft,
  JobWatched,
  KnownSource,
  SourceChanged,
  SourceCollected,
  SourceNotTakenIn,
  SourceRead,
  SourceReading,
  SourcesKnown,
} from "./bundle-event.js";
export { bundleMetrics } from "./bundle-metrics.js";
export { logBundles } from "./log-bundles.js";
export { bundleMetricDefinitions } from "./metric-definitions.js";
