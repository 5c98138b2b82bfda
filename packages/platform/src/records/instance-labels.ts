import { createHash } from "node:crypto";
import type { InstanceData, Phase } from "./instance-record.js";

/**
 * By what instances are found: a broker's, when it is to be removed; a plan's, when it is to be upgraded; the one that has an id at a broker, when
 * somebody else wants it. Every commit that writes labels takes them from here, because they replace each other.
 */
export function instanceLabels(
  data: Pick<InstanceData, "broker" | "phase" | "applied" | "osbId" | "adoptingId" | "leftAtUrl">,
): Record<string, string> {
  if (isOver.has(data.phase)) return {};
  const { broker, leftAtUrl } = data;
  const plan = data.applied?.plan.id;
  const osbId = data.adoptingId ?? data.osbId;
  const id = osbId === null ? {} : { [osbIdLabelName]: osbIdLabel(broker, osbId) };
  if (data.phase !== "unmanaged") return { broker, ...(plan !== undefined && { plan: planLabel(plan) }), ...id };
  // It keeps no broker from being removed, but its id from others, also where that was (E10-62).
  const isLeft = osbId !== null && leftAtUrl !== undefined;
  return { unmanaged: broker, ...id, ...(isLeft && { [leftIdLabelName]: osbIdLabel(leftAtUrl, osbId) }) };
}

/** Labels by which instances of a broker are found, those in one phase or all; `null`: those in that phase are told by their data alone. */
export function brokerLabelsOf(phase: Phase | undefined): readonly string[] | null {
  // One that is being adopted again has its broker's already.
  if (phase === undefined || phase === "unmanaged") return ["broker", "unmanaged"];
  return isOver.has(phase) ? null : ["broker"];
}

export const osbIdLabelName = "osb-id";
/** Of unmanaged ones: by the URL of the broker that was removed. */
export const leftIdLabelName = "left-osb-id";

/** Users name ids when they adopt something, and labels are bounded. Whoever finds an instance by it compares the whole id. `broker`: its name or its URL. */
export function osbIdLabel(broker: string, osbId: string): string {
  return createHash("sha256").update(`${broker}\n${osbId}`).digest("base64url");
}

const isOver: ReadonlySet<Phase> = new Set(["gone", "abandoned"]);

/** Labels are bounded, ids of plans are not: of a longer one, what makes it rare is taken. Whoever finds instances by it compares the whole id. */
export function planLabel(plan: string): string {
  const keepable = plan.replaceAll(/[^\x20-\x7e]/g, "?");
  return keepable.length <= 200 ? keepable || "?" : keepable.slice(0, 100) + keepable.slice(-100);
}
