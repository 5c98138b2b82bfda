import { fingerprint } from "./fingerprint.js";

const longestLaneBytes = 60;

/** Operations of one service share a lane of the journal, so that one that hangs leaves room for the others. */
export function laneOf(serviceId: string): string {
  return Buffer.byteLength(serviceId) <= longestLaneBytes ? serviceId : fingerprint(serviceId);
}

/** Operations that are about no service, but of the source that all services come from. */
export const sourceLane = "broker.source";
