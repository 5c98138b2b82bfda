/** What event flow adds to the admin API: what a method on a path means. */
export const flowRoutes = [
  ["GET", "/admin/v1/events/namespaces", "namespaces"],
  ["GET", "/admin/v1/events/namespaces/:namespace", "namespace"],
  ["GET", "/admin/v1/events/namespaces/:namespace/history", "history"],
  ["POST", "/admin/v1/events/namespaces/:namespace/look", "look"],
] as const;

export type FlowRouteName = (typeof flowRoutes)[number][2];
