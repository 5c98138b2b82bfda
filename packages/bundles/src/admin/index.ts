export { bundleDescriptions } from "./descriptions.js";
export type { PushedView } from "./pushes.js";
export { type BundleRouteName, bundleRoutes } from "./routes.js";
export type {
  EventView,
  GuardView,
  JobView,
  PreviewView,
  ReadingView,
  RefusedView,
  RunView,
  SourceView,
  SpecSummary,
  SpecView,
} from "./views.js";
