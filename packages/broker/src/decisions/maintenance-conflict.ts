import type { MaintenanceInfo } from "@osbert/protocol";
import type { OfferedPlan } from "../catalog/offered-service.js";
import { type Decision, refused } from "./decision.js";

/** Refuses a platform whose copy of the catalog is older than the plan. `null`: it asks for the plan's version, or for none. */
export function maintenanceConflict(asked: MaintenanceInfo | null, offered: OfferedPlan | undefined): Decision | null {
  const version = offered?.plan.maintenance_info?.version;
  if (asked === null || asked.version === version) return null;
  const sentence =
    version === undefined
      ? "the plan has no maintenance_info"
      : `maintenance_info.version is not the plan's, which is ${version}`;
  return refused("maintenance-info-conflict", `${sentence}; read the catalog again`);
}
