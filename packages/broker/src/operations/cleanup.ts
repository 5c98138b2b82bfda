import type { EndedAt } from "@osbert/journal";
import { Cron } from "croner";

/** When finished operations are forgotten (B15). Instances and bindings stay; only the history of what was done to them goes. */
export interface Cleanup {
  /** Of provision, update and deprovision. Without it: by age, as the journal's retention says. */
  readonly instances?: CleanupRule;
  /** Of bind and unbind. */
  readonly bindings?: CleanupRule;
  /** Of the schedules, as "Europe/Berlin". Default UTC. */
  readonly timezone?: string;
}

/** Schedules are cron patterns of six fields, seconds first: "0 30 3 * * *" is half past three every night. */
export interface CleanupRule {
  /** Of all that are finished, however they ended. */
  readonly all?: string;
  /** Of those that succeeded. */
  readonly succeeded?: string;
  /** Also of those that were cancelled. */
  readonly failed?: string;
  /** Finished for at least so long. Default 7 days. */
  readonly olderThanMs?: number;
}

const defaultOlderThanMs = 7 * 24 * 60 * 60 * 1_000;

/**
 * The rule for the journal's retention: an operation goes at the first tick of a schedule for it after it has been over for long enough.
 * The time is kept with the resource, in the store: nothing is scanned when it comes, one replica takes it up as it does any other work,
 * and an operation that has not ended has no such time.
 */
export function cleanupRule({
  instances,
  bindings,
  timezone = "UTC",
}: Cleanup): (ended: EndedAt) => number | null | undefined {
  const compiled = {
    instances: instances && compile(instances, "cleanup.instances", timezone),
    bindings: bindings && compile(bindings, "cleanup.bindings", timezone),
  };
  return ({ outcome, part, at }) => {
    const rule = part === null ? compiled.instances : compiled.bindings;
    if (rule === undefined) return undefined;
    const from = at + rule.olderThanMs;
    const ticks = [rule.all?.(from), outcome === "succeeded" ? rule.succeeded?.(from) : rule.failed?.(from)];
    return ticks.reduce<number | null>((first, tick) => (tick == null ? first : Math.min(first ?? tick, tick)), null);
  };
}

/** The first tick at or after a time; `null`: there is none any more. */
type NextTick = (from: number) => number | null;

interface CompiledRule {
  readonly all?: NextTick | undefined;
  readonly succeeded?: NextTick | undefined;
  readonly failed?: NextTick | undefined;
  readonly olderThanMs: number;
}

function compile(rule: CleanupRule, path: string, timezone: string): CompiledRule {
  const { olderThanMs = defaultOlderThanMs } = rule;
  if (!(olderThanMs >= 0)) throw new Error(`${path}.olderThanMs must be a number of milliseconds, 0 or more`);
  const tick = (name: "all" | "succeeded" | "failed") => {
    const pattern = rule[name];
    return pattern === undefined ? undefined : nextTick(pattern, `${path}.${name}`, timezone);
  };
  return { all: tick("all"), succeeded: tick("succeeded"), failed: tick("failed"), olderThanMs };
}

function nextTick(pattern: string, path: string, timezone: string): NextTick {
  let cron: Cron;
  try {
    cron = new Cron(pattern, { mode: "6-part", timezone });
    // One for the 30th of February would be looked for through all years, at the end of every operation.
    if (cron.nextRun(new Date(0)) === null) throw new Error("there is no such time");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${path} must be a cron pattern of six fields, such as "0 30 3 * * *": ${why}`, { cause });
  }
  // Asked at the end of every operation, and nearly always for the tick that was found last.
  let known = { after: 0, until: 0 };
  return (from) => {
    if (from > known.after && from <= known.until) return known.until;
    const next = cron.nextRun(new Date(from - 1));
    if (next === null) return null;
    known = { after: from - 1, until: next.getTime() };
    return known.until;
  };
}
