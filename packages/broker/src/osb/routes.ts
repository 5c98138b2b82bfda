import type { BrokerError } from "@osbert/protocol";
import { decode, type MatchedRoute, type RouteTable, routeTable } from "@osbert/server";
import type { Endpoints } from "../endpoints/endpoints.js";

/** The endpoints of the API: what a method on a path means. */
export const routes = [
  ["GET", "/v2/catalog", "catalog"],
  ["PUT", "/v2/service_instances/:instance", "provision"],
  ["GET", "/v2/service_instances/:instance", "fetchInstance"],
  ["PATCH", "/v2/service_instances/:instance", "update"],
  ["DELETE", "/v2/service_instances/:instance", "deprovision"],
  ["GET", "/v2/service_instances/:instance/last_operation", "instanceLastOperation"],
  ["PUT", "/v2/service_instances/:instance/service_bindings/:binding", "bind"],
  ["GET", "/v2/service_instances/:instance/service_bindings/:binding", "fetchBinding"],
  ["DELETE", "/v2/service_instances/:instance/service_bindings/:binding", "unbind"],
  ["GET", "/v2/service_instances/:instance/service_bindings/:binding/last_operation", "bindingLastOperation"],
] as const satisfies readonly (readonly [method: string, path: string, name: "catalog" | keyof Endpoints])[];

/** The name of an endpoint. */
export type RouteName = (typeof routes)[number][2];

/** An endpoint, with the ids in its path; "" for those that the path does not have. */
export type OsbRoute = MatchedRoute<typeof routes>;

/** Below `/v2`, without the platform that may stand before it. */
export const osbRoutes: RouteTable<typeof routes> = routeTable(
  routes,
  "there is nothing at this path; the API begins with /v2/catalog",
);

/** The path up to `/v2`, decoded once: which platform's ids these are. `undefined`: there is no `/v2` in it. */
export function splitPlatform(path: string): { readonly platform: string; readonly rest: string } | undefined {
  if (path.startsWith("/v2/") || path === "/v2") return { platform: "", rest: path };
  const match = /^\/([^/]+)(\/v2(?:\/.*)?)$/.exec(path);
  return match === null ? undefined : { platform: decode(match[1] ?? ""), rest: match[2] ?? "" };
}

/** Why a method that no route has there is refused, whoever's path it is. */
export function methodRefusal(method: string, path: string): BrokerError {
  return osbRoutes.refusal(method, /^\/[^/]+(\/v2\/.*)$/.exec(path)?.[1] ?? path);
}
