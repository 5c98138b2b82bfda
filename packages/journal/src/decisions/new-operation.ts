import { checkJsonType, type Json, toJsonText } from "../json.js";
import { limits } from "../limits.js";
import { checkLane, checkPartId, checkSpan } from "../names.js";
import type { NewOperation, OpenOperation } from "../operation.js";
import { defaultDeadlineMs, type KindRules } from "./kind.js";

/** An operation as it begins, given what was asked for and the rules of its kind. */
export function newOperation(
  asked: NewOperation,
  rules: KindRules,
  { id, now, requestId }: { readonly id: string; readonly now: number; readonly requestId: string | null },
): OpenOperation {
  const input = asked.input ?? null;
  checkJsonType(input, `the input of ${JSON.stringify(asked.kind)}`);
  const lane = asked.lane ?? (typeof rules.lane === "function" ? rules.lane(input) : rules.lane) ?? asked.kind;
  checkLane(lane);
  if (asked.part !== undefined) checkPartId(asked.part);
  checkSpan(asked.delayMs ?? 0, "the delay of an operation");
  const deadlineMs = deadlineMsOf(asked, rules);
  checkSpan(deadlineMs ?? 0, "the deadline of an operation");
  return {
    id,
    kind: asked.kind,
    part: asked.part ?? null,
    mode: asked.mode ?? rules.mode ?? "exclusive",
    lane,
    acceptedAt: now,
    requestId,
    deadlineAt: deadlineMs === null ? null : now + Math.ceil(deadlineMs),
    readyAt: now + Math.ceil(asked.delayMs ?? 0),
    held: asked.held ?? false,
    cancel: null,
    attempts: 0,
    failures: 0,
    lastError: null,
    description: null,
    steps: [],
    waits: [],
    ...(asked.brief !== undefined && { brief: briefOf(asked.brief) }),
  };
}

/** What its journal tells of its acceptance. */
export function acceptance({ kind, part, mode, brief }: OpenOperation, { input = null }: NewOperation): Json {
  return { kind, part, mode, input, ...(brief !== undefined && { brief }) };
}

/** `null` is none at all. */
function deadlineMsOf(asked: NewOperation, rules: KindRules): number | null {
  if (asked.deadlineMs !== undefined) return asked.deadlineMs;
  return rules.deadlineMs === undefined ? defaultDeadlineMs : rules.deadlineMs;
}

/** A copy: what becomes of the caller's object later is the caller's business. */
function briefOf(brief: Json): Json {
  return JSON.parse(toJsonText(brief, limits.briefBytes, "the brief of an operation")) as Json;
}
