import {
  anyObject,
  boolean,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  page,
  type RouteDescription,
  text,
} from "@osbert/server/client";
import type { AdminRouteName } from "./routes.js";

const named = object({ id: text, name: nullable(text) });
const last = nullable(object({ id: text, verb: text, state: text, description: nullable(text) }));

const summary = {
  id: text,
  platform: text,
  service: named,
  plan: named,
  phase: text,
  bindings: number,
  open_operations: number,
  last_operation: last,
} as const;

const binding = {
  id: text,
  phase: text,
  app_guid: nullable(text),
  expires_at: nullable(text),
  last_operation: last,
} as const;

const operation = object({
  id: text,
  instance: text,
  platform: text,
  verb: text,
  binding: nullable(text),
  state: text,
  description: nullable(text),
  accepted_at: text,
  deadline_at: nullable(text),
  next_attempt_at: nullable(text),
  attempts: number,
  last_error: nullable(text),
});

const entry = object({
  seq: number,
  at: text,
  kind: text,
  operation: nullable(text),
  actor: object({ type: text, subject: text }),
  cause: nullable(oneOf(text, number)),
  details: anyObject,
});

const service = { id: text, name: nullable(text), paused: nullable(object({ reason: text, by: text, at: text })) };

const rotation = object({
  state: text,
  description: optional(text),
  walk: optional(number),
  resources: optional(number),
  texts: optional(number),
  left: optional(number),
  left_plain: optional(number),
  unused: optional(list(text)),
});

const bulkItem = object({
  instance: text,
  platform: text,
  operation: text,
  verb: text,
  binding: nullable(text),
  state: text,
  result: text,
  goes_on: optional(nullable(text)),
  error: optional(text),
});

const paging = ["limit", "after"] as const;
const operationFilter = ["platform", "service", "plan", "state", "older_than_seconds", "failing"] as const;
const ofInstance = ["platform"] as const;
const begun = object({ operation: text });
const nothing = object({});

/** What each route of the admin API takes in its query, and how it answers: for a typed client of it. */
export const adminDescriptions = {
  instances: { query: ["platform", "service", "plan", "phase", ...paging], answer: page(object(summary)) },
  instance: {
    query: ofInstance,
    answer: object({
      ...summary,
      organization_guid: nullable(text),
      space_guid: nullable(text),
      maintenance_version: nullable(text),
      parameters: nullable(anyObject),
      state: nullable(anyObject),
      operations: list(operation),
    }),
  },
  bindings: { query: [...ofInstance, ...paging], answer: page(object(binding)) },
  binding: { query: ofInstance, answer: object({ ...binding, operation: nullable(operation) }) },
  journal: { query: [...ofInstance, ...paging], answer: page(entry) },
  operation: {
    query: ofInstance,
    answer: object({
      id: text,
      verb: text,
      binding: nullable(text),
      state: text,
      open: nullable(operation),
      message: nullable(text),
      passed_over: list(object({ call: text, error: text })),
      steps: list(object({ name: text, at: text, result_bytes: number })),
      entries: list(entry),
    }),
  },
  operations: { query: [...operationFilter, ...paging], answer: page(operation) },
  services: { query: paging, answer: page(object(service)) },
  setAside: { query: paging, answer: page(object({ platform: text, instance: text })) },
  keyRotation: { answer: rotation },
  retryAll: { query: [...operationFilter, ...paging], answer: page(bulkItem) },
  cancelAll: { query: [...operationFilter, ...paging], answer: page(bulkItem) },
  retry: { query: ofInstance, answer: begun },
  cancel: { query: ofInstance, answer: begun },
  purge: { query: ofInstance, answer: nothing },
  purgeBinding: { query: ofInstance, answer: nothing },
  forceDelete: { query: ofInstance, answer: begun },
  restore: { query: ofInstance, answer: nothing },
  rotateKeys: { answer: rotation },
  pause: { answer: object({ ...service, was_paused: boolean }) },
  resume: { answer: object(service) },
} as const satisfies Readonly<Record<AdminRouteName, RouteDescription>>;
