import {
  anyObject,
  anything,
  boolean,
  choice,
  described,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
} from "@osbert/server/client";
import { targetStates } from "../records/campaign-record.js";
import { bindingPhases, phases } from "../records/instance-record.js";
import { rotationStates } from "../records/rotation-record.js";

// What the API answers with, by the words of its document.

export const time = described(text, "A time, as ISO 8601 has them.");
const named = object({ id: text, name: text });

export const state = object({
  plan: named,
  parameters: described(nullable(anyObject), "Numbers are as they were written, also beyond 2^53."),
  maintenance: nullable(text),
});

const policy = object({
  on_failure: choice(["auto", "halt", "continue"]),
  concurrency: choice(["queue", "reject", "replace"]),
  orphans: choice(["mitigate", "confirm", "hold"]),
});

const intentNames = ["create", "update", "delete", "bind", "unbind", "rotate", "refresh", "upgrade", "adopt"] as const;

const pathChange = object({
  op: choice(["add", "replace", "remove"]),
  path: text,
  old: optional(anything),
  value: optional(anything),
});

export const queuedIntent = object({
  operation: text,
  op: choice(intentNames),
  summary: text,
  author: text,
  accepted_at: time,
  age_ms: number,
  position: number,
  state: choice(["running", "waiting", "queued", "held", "paused", "cancelling"]),
  description: nullable(text),
  held_for: nullable(text),
  held_by: described(
    list(choice(["failure", "delete", "lock", "user"])),
    "What holds it. What only a delete holds goes on, or ends, by itself.",
  ),
  difference: list(pathChange),
  overrides: described(list(text), "Operations before it whose changes it writes over."),
});

export const binding = object({
  id: text,
  name: text,
  osb_id: text,
  phase: choice(bindingPhases),
  created_by: text,
  created_at: time,
  app_guid: nullable(text),
  expires_at: nullable(text),
  renew_before: nullable(text),
  predecessor: nullable(text),
  successor: nullable(text),
  message: nullable(text),
});

/** Of a lock, and of a freeze, which is one for many. */
const heldBack = {
  by: text,
  at: time,
  reason: text,
  effect: choice(["queue", "reject"]),
  deletes_exempt: boolean,
  until: nullable(time),
} as const;

export const instance = object({
  id: text,
  space: text,
  name: text,
  broker: text,
  offering: named,
  osb_id: nullable(text),
  created_by: text,
  created_at: time,
  phase: choice(phases),
  usable: boolean,
  certainty: object({ certain: boolean, since: nullable(time), operation: nullable(text) }),
  dashboard_url: nullable(text),
  applied: described(nullable(state), "What its broker has confirmed."),
  in_flight: nullable(object({ operation: text, call: text, since: time })),
  desired: described(nullable(state), "What it will be if all that is queued succeeds; null: it will be gone."),
  queue: list(queuedIntent),
  failures: list(
    object({
      operation: text,
      op: choice(intentNames),
      paths: list(text),
      class: text,
      message: text,
      at: time,
      repeatable: boolean,
    }),
  ),
  last_delete: nullable(
    object({ operation: text, by: text, at: time, message: text, how: choice(["rejected", "failed", "blocked"]) }),
  ),
  lock: nullable(object(heldBack)),
  policy,
  bindings: list(binding),
  revision: described(number, "The entity tag, for If-Match."),
});

export const instanceSummary = object({
  id: text,
  space: text,
  name: text,
  broker: text,
  offering: named,
  plan: nullable(named),
  phase: choice(phases),
  usable: boolean,
  open: described(number, "Changes that are queued or under way."),
  bindings: number,
  revision: number,
});

const report = object({
  ok: boolean,
  findings: list(object({ severity: choice(["error", "warning"]), rule: text, path: nullable(text), message: text })),
});

export const admitted = object({
  result: described(
    choice(["accepted", "repeated", "unchanged", "dry-run"]),
    "repeated: the same request came before; unchanged: it is, or will be, so already; dry-run: nothing was done.",
  ),
  operation: nullable(text),
  instance: nullable(instance),
  report: described(nullable(report), "Of a dry run: what was looked at."),
  desired: described(nullable(state), "Of a dry run: what it would be in the end."),
});

export const operation = object({
  operation: text,
  state: choice(["open", "succeeded", "failed", "cancelled"]),
  message: described(nullable(text), "Why it failed, or was cancelled."),
  intent: described(nullable(queuedIntent), "While it is open."),
});

export const journalLine = object({
  seq: number,
  at: time,
  family: choice(["intent", "control", "decision", "attempt", "outcome", "orphan", "observation"]),
  kind: text,
  operation: nullable(text),
  by: text,
  cause: nullable(oneOf(text, number)),
  request_id: nullable(text),
  summary: text,
  payload: anything,
});

const limits = object({ in_flight: number, timeout_ms: number });

export const broker = object({
  name: text,
  url: text,
  authentication: choice(["none", "basic", "bearer"]),
  limits,
  relist_ms: number,
  registered_by: text,
  registered_at: time,
  health: object({
    state: choice(["unknown", "ok", "failing", "unauthorized"]),
    since: time,
    message: nullable(text),
    failures: number,
  }),
  catalog: object({ revision: number, read_at: nullable(time), fault: nullable(text), offerings: number }),
  waiting: described(boolean, "Its queue waits until it can be reached."),
});

export const offeringSummary = object({
  broker: text,
  id: text,
  name: text,
  description: text,
  bindable: boolean,
  tags: list(text),
  left_at: described(nullable(time), "When it left the catalog."),
  plans: list(
    object({
      id: text,
      name: text,
      description: text,
      free: boolean,
      bindable: boolean,
      maintenance: nullable(text),
      left: boolean,
    }),
  ),
});

export const offering = object({
  broker: text,
  left_at: nullable(time),
  plans_left: list(text),
  offering: described(anyObject, "As the broker's catalog has it, with schemas and metadata."),
});

export const orphan = object({
  key: text,
  broker: text,
  space: text,
  instance: text,
  instance_osb_id: text,
  binding_osb_id: nullable(text),
  offering: named,
  plan: named,
  operation: text,
  reason: text,
  suspected_at: time,
  state: choice(["open", "held", "mitigated", "dismissed", "abandoned"]),
  tries: number,
  last_answer: nullable(text),
  ended_at: nullable(time),
  ended_by: nullable(text),
  end_reason: nullable(text),
});

export const rotation = object({
  space: text,
  instance: text,
  binding: text,
  expires_at: nullable(text),
  renew_before: nullable(text),
  renew_at: time,
  state: choice(rotationStates),
  successor: nullable(text),
  message: nullable(text),
});

export const dayWindow = described(
  object({ from_minute: number, until_minute: number }),
  "Minutes after midnight, UTC; over midnight if it ends before it begins.",
);

export const campaign = object({
  id: text,
  broker: text,
  offering: nullable(text),
  plan: nullable(text),
  space: nullable(text),
  window: nullable(dayWindow),
  at_once: number,
  stop_at_error_rate: number,
  by: text,
  started_at: time,
  ended_at: nullable(time),
  state: choice(["collecting", "retrying", "running", "stopped", "cancelled", "finished"]),
  counts: object({
    pending: number,
    running: number,
    succeeded: number,
    failed: number,
    skipped: number,
    dropped: number,
  }),
  message: nullable(text),
});

export const campaignTarget = object({
  space: text,
  instance: text,
  state: choice(targetStates),
  operation: nullable(text),
  message: nullable(text),
  tries: number,
});

export const freeze = object({
  id: text,
  space: nullable(text),
  broker: nullable(text),
  plan: nullable(text),
  ...heldBack,
});

const countedThings = choice(["instances", "bindings"]);

export const quota = object({
  name: text,
  counts: countedThings,
  space: described(nullable(text), "null: it holds for each space on its own."),
  broker: nullable(text),
  offering: described(nullable(text), "Its id."),
  plan: described(nullable(text), "Its id."),
  limit: number,
  by: text,
  at: time,
});

export const quotaUsage = object({
  name: text,
  counts: countedThings,
  broker: nullable(text),
  offering: nullable(text),
  plan: nullable(text),
  limit: number,
  used: described(number, "What counts for it: what is there, and what is asked for."),
});

export const visibility = object({
  name: text,
  broker: text,
  offering: described(text, "Its id."),
  plan: described(nullable(text), "Its id; null: all plans that have no rule of their own."),
  spaces: list(text),
  by: text,
  at: time,
});

/** Told apart in the document by their names. */
export const namedShapes = {
  State: state,
  Policy: policy,
  QueuedIntent: queuedIntent,
  Operation: operation,
  Binding: binding,
  Instance: instance,
  InstanceSummary: instanceSummary,
  PreflightReport: report,
  Admitted: admitted,
  JournalLine: journalLine,
  Broker: broker,
  OfferingSummary: offeringSummary,
  Offering: offering,
  Orphan: orphan,
  Rotation: rotation,
  Campaign: campaign,
  CampaignTarget: campaignTarget,
  Freeze: freeze,
  Quota: quota,
  QuotaUsage: quotaUsage,
  Visibility: visibility,
} as const;
