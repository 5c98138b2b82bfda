import { type MatchedRoute, type RouteTable, routeTable } from "@osbert/server";

const base = "/api/v1";
const ofSpace = `${base}/spaces/:space/instances` as const;
const ofInstance = `${ofSpace}/:instance` as const;
const ofOperation = `${ofInstance}/operations/:operation` as const;
const ofBinding = `${ofInstance}/bindings/:binding` as const;

/** The endpoints of the platform's API: what a method on a path means. */
export const apiRoutes = [
  ["GET", `${base}/openapi.json`, "openApi"],
  ["GET", `${base}/me`, "me"],

  ["GET", `${base}/offerings`, "offerings"],
  ["GET", `${base}/offerings/:offering`, "offering"],

  ["GET", `${base}/brokers`, "brokers"],
  ["GET", `${base}/brokers/:broker`, "broker"],
  ["PUT", `${base}/brokers/:broker`, "registerBroker"],
  ["PATCH", `${base}/brokers/:broker`, "changeBroker"],
  ["DELETE", `${base}/brokers/:broker`, "removeBroker"],
  ["POST", `${base}/brokers/:broker/relist`, "relistBroker"],

  ["GET", `${base}/instances`, "allInstances"],
  ["GET", ofSpace, "instances"],
  ["PUT", ofInstance, "createInstance"],
  ["GET", ofInstance, "instance"],
  ["PATCH", ofInstance, "updateInstance"],
  ["DELETE", ofInstance, "deleteInstance"],
  ["POST", `${ofInstance}/refresh`, "refreshInstance"],
  ["POST", `${ofInstance}/upgrade`, "upgradeInstance"],
  ["POST", `${ofInstance}/adopt`, "adoptInstance"],
  ["POST", `${ofInstance}/restore`, "restoreInstance"],
  ["POST", `${ofInstance}/lock`, "lockInstance"],
  ["POST", `${ofInstance}/unlock`, "unlockInstance"],
  ["PATCH", `${ofInstance}/policy`, "setPolicy"],

  ["GET", `${ofInstance}/queue`, "queue"],
  ["GET", `${ofInstance}/queue/:operation`, "queued"],
  ["GET", ofOperation, "operation"],
  ["POST", `${ofOperation}/cancel`, "cancel"],
  ["POST", `${ofOperation}/retry`, "retry"],
  ["POST", `${ofOperation}/hold`, "hold"],
  ["POST", `${ofOperation}/release`, "release"],
  ["GET", `${ofInstance}/journal`, "journal"],

  ["GET", `${ofInstance}/bindings`, "bindings"],
  ["PUT", ofBinding, "bind"],
  ["GET", ofBinding, "binding"],
  ["DELETE", ofBinding, "unbind"],
  ["GET", `${ofBinding}/credentials`, "credentials"],
  ["POST", `${ofBinding}/rotate`, "rotate"],

  ["GET", `${base}/orphans`, "orphans"],
  ["POST", `${base}/orphans/:orphan/mitigate`, "mitigateOrphan"],
  ["POST", `${base}/orphans/:orphan/dismiss`, "dismissOrphan"],

  ["GET", `${base}/rotations`, "allRotations"],
  ["GET", `${base}/spaces/:space/rotations`, "rotations"],

  ["GET", `${base}/campaigns`, "campaigns"],
  ["POST", `${base}/campaigns`, "startCampaign"],
  ["GET", `${base}/campaigns/:campaign`, "campaign"],
  ["GET", `${base}/campaigns/:campaign/targets`, "campaignTargets"],
  ["POST", `${base}/campaigns/:campaign/cancel`, "cancelCampaign"],
  ["POST", `${base}/campaigns/:campaign/retry`, "retryCampaign"],

  ["GET", `${base}/freezes`, "freezes"],
  ["POST", `${base}/freezes`, "freeze"],
  ["DELETE", `${base}/freezes/:freeze`, "thaw"],

  ["GET", `${base}/quotas`, "quotas"],
  ["PUT", `${base}/quotas/:quota`, "setQuota"],
  ["DELETE", `${base}/quotas/:quota`, "removeQuota"],
  ["GET", `${base}/spaces/:space/quotas`, "quotasOfSpace"],

  ["GET", `${base}/visibilities`, "visibilities"],
  ["PUT", `${base}/visibilities/:visibility`, "setVisibility"],
  ["DELETE", `${base}/visibilities/:visibility`, "removeVisibility"],
] as const;

export type ApiRouteName = (typeof apiRoutes)[number][2];
export type MatchedApiRoute = MatchedRoute<typeof apiRoutes>;

/** Whether a path is the API's business. */
export function isApiPath(path: string): boolean {
  return path === base || path.startsWith(`${base}/`);
}

export const apiRouteTable: RouteTable<typeof apiRoutes> = routeTable(
  apiRoutes,
  `there is nothing at this path; ${base}/openapi.json lists what there is`,
);
