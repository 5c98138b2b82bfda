import {
  anyObject,
  boolean,
  list,
  nullable,
  number,
  object,
  page,
  type RouteDescription,
  text,
} from "@osbert/server/client";
import type { EventRouteName } from "./event-routes.js";
import type { FlowRouteName } from "./flow-routes.js";

const refusal = nullable(object({ times: number, since: text, message: text }));

const summary = { namespace: text, applications: list(text), broker: text, adopted: boolean } as const;

const flow = object({
  id: text,
  instance: text,
  instance_name: nullable(text),
  application: text,
  service: text,
  service_name: nullable(text),
  since: text,
  activated_at: nullable(text),
  ready: text,
  reason: text,
  conditions: list(object({ type: text, status: text, reason: text, message: text, since: text })),
});

const wire = object({
  application: text,
  subscription: text,
  state: text,
  holders: list(text),
  refused: refusal,
  repairs: number,
});

const paging = ["after", "limit"] as const;

/** What the routes of event flow take and answer: for a client. */
export const flowDescriptions = {
  namespaces: { query: paging, answer: page(object({ ...summary, flows: number })) },
  namespace: {
    answer: object({
      ...summary,
      broker_epoch: number,
      linger_until: nullable(text),
      kept_because: nullable(text),
      refused: refusal,
      flows: list(flow),
      wires: list(wire),
    }),
  },
  history: { query: paging, answer: page(object({ seq: number, at: text, kind: text, what: anyObject })) },
  look: { answer: object({ namespace: text }) },
} as const satisfies Readonly<Record<FlowRouteName, RouteDescription>>;

const finding = { level: text, path: text, message: text } as const;

/** A removal that waits for a person. */
const held = nullable(
  object({
    ...{ observation: text, count: number, of: number, names: list(text), since: text },
    confirmed: nullable(object({ by: text, at: text })),
  }),
);

const application = object({
  name: text,
  kind: text,
  display_name: text,
  external_id: nullable(text),
  removed_at: nullable(text),
  services: list(object({ id: text, name: text, events: boolean, apis: number, removed_at: nullable(text) })),
  findings: list(object(finding)),
});

/** What the routes of event services take and answer: for a client. */
export const eventDescriptions = {
  applications: {
    query: paging,
    answer: object({
      ...{ state: text, why: nullable(text), is_known: boolean, changed_at: nullable(text) },
      held: object({ applications: held, grants: held }),
      ...{ items: list(application), next: nullable(text) },
    }),
  },
  findings: { answer: object({ items: list(object({ ...finding, application: text })), count: number }) },
  confirmRemoval: { answer: object({ confirmed: text }) },
  importFlows: {
    answer: object({
      dry_run: boolean,
      instances: list(
        object({
          ...{ namespace: text, name: text, id: text, service_id: text, plan_id: text, outcome: text },
          ...{ application: nullable(text), subscription: nullable(text) },
        }),
      ),
      findings: list(object({ level: text, object: text, message: text })),
    }),
  },
} as const satisfies Readonly<Record<EventRouteName, RouteDescription>>;
