import type { LaneRule } from "@osbert/journal";
import type { AnswerClass } from "@osbert/protocol";
import type { BrokerData, BrokerHealth } from "../records/broker-record.js";

/** What an answer says of the broker as a whole, whatever it says to the request. */
export function aboutBroker(answer: AnswerClass): "reached" | "not reached" | "unauthorized" {
  if (answer === "unauthorized") return "unauthorized";
  return answer === "not sent" || answer === "unknown" ? "not reached" : "reached";
}

/** So many in a row, in one process, mean that it is down; while it is being tried out again, one does. */
const failuresInARow = 5;

export function isDown(health: BrokerHealth, inARow: number): boolean {
  return inARow >= (health.failures > 0 ? 1 : failuresInARow);
}

export function wentDown(
  before: BrokerHealth,
  state: "failing" | "unauthorized",
  message: string | null,
  now: number,
): BrokerHealth {
  const since = before.state === state ? before.since : now;
  return { state, since, message, failures: Math.min(before.failures + 1, 100) };
}

/** A probe was answered. Whether more than that works is not known as long as it was down before. */
export function answeredProbe(before: BrokerHealth, now: number): BrokerHealth {
  if (before.state === "ok") {
    const isTriedLongEnough = before.failures > 0 && now - before.since > tryingOutMs;
    return isTriedLongEnough ? { ...before, failures: 0 } : before;
  }
  return { state: "ok", since: now, message: null, failures: before.failures };
}

/** Something was done. */
export function answeredCall(before: BrokerHealth, now: number): BrokerHealth {
  return { state: "ok", since: before.state === "ok" ? before.since : now, message: null, failures: 0 };
}

/** If nothing was asked of it for so long, it is not being tried out any more. */
const tryingOutMs = 10 * 60_000;

/** What holds for the broker's lane in all processes: nothing is sent to one that is down, and it waits instead of failing. */
export function laneRuleOf({ health, limits }: Pick<BrokerData, "health" | "limits">): Omit<LaneRule, "lane"> {
  const paused = health.state === "failing" || health.state === "unauthorized";
  return { paused, limit: health.failures > 0 ? 1 : limits.inFlight };
}

const probes = { firstMs: 1_000, mostMs: 5 * 60_000 };

/** From one look at a broker that is down, or whose catalog could not be read, to the next. */
export function probePauseMs(failures: number, random: number): number {
  const grown = Math.min(probes.mostMs, probes.firstMs * 2 ** Math.min(20, Math.max(0, failures - 1)));
  return grown * (0.8 + random * 0.4);
}
