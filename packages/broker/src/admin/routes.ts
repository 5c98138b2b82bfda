import { type MatchedRoute, type RouteTable, routeTable } from "@osbert/server";
import { checkId } from "../records/ids.js";

/** The endpoints of the admin API: what a method on a path means. */
export const adminRoutes = [
  ["GET", "/admin/v1/instances", "instances"],
  ["GET", "/admin/v1/instances/:instance", "instance"],
  ["GET", "/admin/v1/instances/:instance/bindings", "bindings"],
  ["GET", "/admin/v1/instances/:instance/bindings/:binding", "binding"],
  ["GET", "/admin/v1/instances/:instance/journal", "journal"],
  ["GET", "/admin/v1/instances/:instance/operations/:operation", "operation"],
  ["GET", "/admin/v1/operations", "operations"],
  ["GET", "/admin/v1/services", "services"],
  ["GET", "/admin/v1/set-aside", "setAside"],
  ["GET", "/admin/v1/keys/rotation", "keyRotation"],
  ["POST", "/admin/v1/operations/retry", "retryAll"],
  ["POST", "/admin/v1/operations/cancel", "cancelAll"],
  ["POST", "/admin/v1/instances/:instance/operations/:operation/retry", "retry"],
  ["POST", "/admin/v1/instances/:instance/operations/:operation/cancel", "cancel"],
  ["POST", "/admin/v1/instances/:instance/purge", "purge"],
  ["POST", "/admin/v1/instances/:instance/bindings/:binding/purge", "purgeBinding"],
  ["POST", "/admin/v1/instances/:instance/force-delete", "forceDelete"],
  ["POST", "/admin/v1/instances/:instance/restore", "restore"],
  ["POST", "/admin/v1/keys/rotation", "rotateKeys"],
  ["POST", "/admin/v1/services/:service/pause", "pause"],
  ["POST", "/admin/v1/services/:service/resume", "resume"],
] as const;

type AdminRoute = (typeof adminRoutes)[number];
export type AdminRouteName = AdminRoute[2];
/** Those that change nothing. */
export type ReadName = Extract<AdminRoute, readonly ["GET", ...unknown[]]>[2];
/** Those that do, and need a reason. */
export type ActionName = Exclude<AdminRouteName, ReadName>;

export type MatchedAdminRoute = MatchedRoute<typeof adminRoutes>;

/** Whether a path is the admin API's business. */
export function isAdminPath(path: string): boolean {
  return path === "/admin/v1" || path.startsWith("/admin/v1/");
}

const table: RouteTable<typeof adminRoutes> = routeTable(adminRoutes, "there is nothing at this path of the admin API");

/** Values of the path are only what every store keeps alike. */
export function matchAdminRoute(method: string, path: string): MatchedAdminRoute {
  const matched = table.match(method, path);
  for (const id of [matched.instance, matched.operation, matched.binding, matched.service])
    checkId(id, "an id in the path");
  return matched;
}
