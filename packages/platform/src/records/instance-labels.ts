import { createHash } from "node:crypto";
import type { InstanceData, Phase } from "./instance-record.js";

/**
 * By what instances are found: a broker's, when it is to be removed; a plan's, when it is to be upgraded; the one that has an id at a broker, when
 * somebody else wants it. Every commit that writes labels takes them from here, because they replace each other.
 */
export function instanceLabels(
  data: Pick<InstanceData, "broker" | "phase" | "applied" | "osbId" | "adoptingId">,
): Record<string, string> {
  if (isOver.has(data.phase)) return {};
  const isManaged = hasBrokerLabel(data.phase);
  const plan = data.applied?.plan.id;
  const osbId = data.adoptingId ?? data.osbId;
  return {
    // An unmanaged one keeps no broker from being removed, but its id from others (E10-62).
    ...(isManaged && { broker: data.broker, ...(plan !== undefined && { plan: planLabel(plan) }) }),
    ...(osbId !== null && { [osbIdLabelName]: osbIdLabel(data.broker, osbId) }),
  };
}

/** Whether instances in that phase are found by their broker's label; others are told by their data alone. */
export function hasBrokerLabel(phase: Phase): boolean {
  return phase !== "unmanaged" && !isOver.has(phase);
}

export const osbIdLabelName = "osb-id";

/** Users name ids when they adopt something, and labels are bounded. Whoever finds an instance by it compares the whole id. */
export function osbIdLabel(broker: string, osbId: string): string {
  return createHash("sha256").update(`${broker}\n${osbId}`).digest("base64url");
}

const isOver: ReadonlySet<Phase> = new Set(["gone", "abandoned"]);

/** Labels are bounded, ids of plans are not: of a longer one, what makes it rare is taken. Whoever finds instances by it compares the whole id. */
export function planLabel(plan: string): string {
  const keepable = plan.replaceAll(/[^\x20-\x7e]/g, "?");
  return keepable.length <= 200 ? keepable || "?" : keepable.slice(0, 100) + keepable.slice(-100);
}
