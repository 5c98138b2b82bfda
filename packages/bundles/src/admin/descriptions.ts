import { boolean, list, nullable, number, object, page, type RouteDescription, text } from "@osbert/server/client";
import type { BundleRouteName } from "./routes.js";

const source = object({
  name: text,
  mode: text,
  snapshot: number,
  first_complete_at: nullable(text),
  last_run_at: nullable(text),
  last_complete_at: nullable(text),
  failures: number,
  failing_since: nullable(text),
  last_error: nullable(text),
  recent: text,
  failure_ratio: nullable(number),
  reading: nullable(object({ done: number, of: nullable(number), since: text })),
  hidden: boolean,
  specs: object({
    pending: number,
    rejected: number,
    active: number,
    missing: number,
    retired: number,
    deleted: number,
  }),
  guard: nullable(
    object({
      observation: text,
      count: number,
      of: number,
      specs: list(text),
      since: text,
      confirmed_by: nullable(text),
    }),
  ),
});

const summary = {
  source: text,
  id: text,
  state: text,
  service_id: nullable(text),
  name: nullable(text),
  version: nullable(text),
  offered: boolean,
  stale: boolean,
  held: boolean,
  degraded: boolean,
} as const;

const event = { code: text, spec: nullable(text), why: text } as const;

const run = object({
  run: number,
  at: text,
  by: text,
  snapshot: number,
  specs: number,
  event_count: number,
  events: list(object(event)),
});

const pushed = object({
  source: text,
  spec: text,
  repository: text,
  tag: text,
  digest: text,
  pushed_at: text,
  by: text,
  expires_at: nullable(text),
});

const paging = ["limit", "after"] as const;
const nothing = object({});

/** What each route takes in its query, and how it answers: for a typed client of it. */
export const bundleDescriptions = {
  sources: { query: paging, answer: page(source) },
  source: { answer: source },
  read: {
    query: ["repository", "tag"],
    answer: object({
      source: text,
      repository: text,
      tag: text,
      found: text,
      why: nullable(text),
      digest: nullable(text),
      format: nullable(text),
      runs: nullable(text),
      name: nullable(text),
      version: nullable(text),
      description: nullable(text),
      bindable: nullable(boolean),
      actions: list(text),
      plans: list(object({ name: text, description: text, free: boolean, bindable: boolean })),
      problems: list(object({ path: text, message: text, line: nullable(number), advice: boolean })),
    }),
  },
  reading: { answer: object({ reading: text, state: text }) },
  runs: { query: paging, answer: page(run) },
  run: { answer: run },
  events: { query: ["spec", ...paging], answer: page(object({ run: number, at: text, by: text, ...event })) },
  specs: { query: ["state", ...paging], answer: page(object(summary)) },
  spec: {
    answer: object({
      ...summary,
      repository: text,
      since: nullable(text),
      why: nullable(text),
      digest: nullable(text),
      plans: list(object({ id: text, name: text })),
      history: list(object({ digest: text, version: text, at: text })),
      hold: nullable(object({ by: text, why: text, since: text })),
      refused: nullable(
        object({
          digest: text,
          since: text,
          code: text,
          problems: list(object({ path: text, message: text, line: nullable(number) })),
        }),
      ),
    }),
  },
  pushed: { query: paging, answer: page(pushed) },
  push: { answer: pushed },
  removeAllPushed: { answer: object({ removed: number }) },
  removePushed: { answer: object({ removed: number }) },
  preview: {
    query: ["config"],
    answer: page(
      object({
        source: text,
        settings: text,
        completeness: nullable(text),
        error: nullable(text),
        event_count: number,
        events: list(object(event)),
        held: nullable(object({ count: number, of: number, specs: list(text) })),
      }),
    ),
  },
  collectable: {
    answer: page(
      object({
        source: text,
        deleted: list(text),
        revisions: list(text),
        forgotten: list(text),
        kept: list(object({ what: text, why: text })),
      }),
    ),
  },
  dangling: {
    query: paging,
    answer: page(
      object({ instance: text, platform: text, phase: text, service_id: text, revision: nullable(text), why: text }),
    ),
  },
  jobs: {
    query: ["instance", "platform", "binding"],
    answer: page(
      object({
        job: text,
        operation: text,
        action: text,
        binding: nullable(text),
        place: nullable(text),
        at: text,
        state: text,
        error: nullable(text),
        log_kept: boolean,
      }),
    ),
  },
  log: { query: ["instance", "platform"], answer: object({ job: text, log: text, from: text }) },
  refresh: { answer: object({ reading: text }) },
  disable: { answer: nothing },
  enable: { answer: nothing },
  drain: { answer: nothing },
  confirmRemoval: { answer: nothing },
  hold: { answer: nothing },
  release: { answer: nothing },
  withdraw: { answer: nothing },
  restore: { answer: nothing },
  confirmContent: { answer: nothing },
} as const satisfies Readonly<Record<BundleRouteName, RouteDescription>>;
