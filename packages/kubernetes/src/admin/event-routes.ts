/** What event services add to the admin API, beside what their wiring adds: what a method on a path means. */
export const eventRoutes = [
  ["GET", "/admin/v1/events/applications", "applications"],
  ["GET", "/admin/v1/events/findings", "findings"],
  ["POST", "/admin/v1/events/applications/confirm", "confirmRemoval"],
  ["POST", "/admin/v1/events/import", "importFlows"],
] as const;

export type EventRouteName = (typeof eventRoutes)[number][2];
