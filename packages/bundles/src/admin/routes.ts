/** What sources of bundles add to the admin API: what a method on a path means. */
export const bundleRoutes = [
  ["GET", "/admin/v1/bundles/sources", "sources"],
  ["GET", "/admin/v1/bundles/sources/:source", "source"],
  ["GET", "/admin/v1/bundles/sources/:source/read", "read"],
  ["GET", "/admin/v1/bundles/sources/:source/readings/:reading", "reading"],
  ["GET", "/admin/v1/bundles/sources/:source/runs", "runs"],
  ["GET", "/admin/v1/bundles/sources/:source/runs/:run", "run"],
  ["GET", "/admin/v1/bundles/sources/:source/events", "events"],
  ["GET", "/admin/v1/bundles/sources/:source/specs", "specs"],
  ["GET", "/admin/v1/bundles/sources/:source/specs/:spec", "spec"],
  ["GET", "/admin/v1/bundles/pushed", "pushed"],
  ["GET", "/admin/v1/bundles/preview", "preview"],
  ["GET", "/admin/v1/bundles/collectable", "collectable"],
  ["GET", "/admin/v1/bundles/dangling", "dangling"],
  ["GET", "/admin/v1/bundles/jobs", "jobs"],
  ["GET", "/admin/v1/bundles/jobs/:job/log", "log"],
  ["POST", "/admin/v1/bundles/pushed", "push"],
  ["POST", "/admin/v1/bundles/pushed/remove", "removeAllPushed"],
  ["POST", "/admin/v1/bundles/pushed/:spec/remove", "removePushed"],
  ["POST", "/admin/v1/bundles/sources/:source/refresh", "refresh"],
  ["POST", "/admin/v1/bundles/sources/:source/disable", "disable"],
  ["POST", "/admin/v1/bundles/sources/:source/enable", "enable"],
  ["POST", "/admin/v1/bundles/sources/:source/drain", "drain"],
  ["POST", "/admin/v1/bundles/sources/:source/confirm", "confirmRemoval"],
  ["POST", "/admin/v1/bundles/sources/:source/specs/:spec/hold", "hold"],
  ["POST", "/admin/v1/bundles/sources/:source/specs/:spec/release", "release"],
  ["POST", "/admin/v1/bundles/sources/:source/specs/:spec/withdraw", "withdraw"],
  ["POST", "/admin/v1/bundles/sources/:source/specs/:spec/restore", "restore"],
  ["POST", "/admin/v1/bundles/sources/:source/specs/:spec/confirm", "confirmContent"],
] as const;

type BundleRoute = (typeof bundleRoutes)[number];
export type BundleRouteName = BundleRoute[2];
/** Those that change nothing. */
export type ReadName = Extract<BundleRoute, readonly ["GET", ...unknown[]]>[2];
/** Those that do, and need a reason. */
export type ActionName = Exclude<BundleRouteName, ReadName>;

export function isBundlePath(path: string): boolean {
  return path === "/admin/v1/bundles" || path.startsWith("/admin/v1/bundles/");
}
