import type { Shaped } from "@osbert/server/client";
import type {
  Admitted,
  BindingView,
  BrokerView,
  CampaignTarget,
  CampaignView,
  InstanceSummary,
  InstanceView,
  JournalLine,
  OfferedService,
  OperationView,
  OrphanView,
  QueuedIntent,
  QuotaUsage,
  RotationView,
} from "../platform.js";
import type { Freeze } from "../records/freeze-record.js";
import type { AppliedState, InstancePolicy, PathChange } from "../records/instance-record.js";
import type { Quota } from "../records/quota-record.js";
import type { Visibility } from "../records/visibility-record.js";
import type { namedShapes } from "./answer-shapes.js";
import { jsonText } from "./write-json.js";

type Body<Name extends keyof typeof namedShapes> = Shaped<(typeof namedShapes)[Name]>;

/** What the platform tells, in the words of the API. Texts of JSON that users and brokers wrote go out as they were written. */
export const bodyOf = {
  state: ({ plan, parameters, maintenance }: AppliedState): Body<"State"> => ({
    plan,
    parameters: parameters === null ? null : jsonText(parameters),
    maintenance,
  }),

  policy: ({ onFailure, concurrency, orphans }: InstancePolicy): Body<"Policy"> => ({
    on_failure: onFailure,
    concurrency,
    orphans,
  }),

  queued: (intent: QueuedIntent): Body<"QueuedIntent"> => ({
    operation: intent.operation,
    op: intent.op,
    summary: intent.summary,
    author: intent.author,
    accepted_at: timeOf(intent.acceptedAt),
    age_ms: intent.ageMs,
    position: intent.position,
    state: intent.state,
    description: intent.description,
    held_for: intent.heldFor,
    held_by: intent.heldBy,
    difference: intent.difference.map(changeOf),
    overrides: intent.overrides,
  }),

  operation: (view: OperationView): Body<"Operation"> => ({
    operation: view.operation,
    state: view.state,
    message: view.state === "open" ? null : view.message,
    intent: view.state === "open" ? bodyOf.queued(view.intent) : null,
  }),

  binding: (binding: BindingView): Body<"Binding"> => ({
    id: binding.id,
    name: binding.name,
    osb_id: binding.osbId,
    phase: binding.phase,
    created_by: binding.createdBy,
    created_at: timeOf(binding.createdAt),
    app_guid: binding.appGuid,
    expires_at: binding.expiresAt,
    renew_before: binding.renewBefore,
    predecessor: binding.predecessor,
    successor: binding.successor,
    message: binding.message,
  }),

  instance(view: InstanceView): Body<"Instance"> {
    const { certainty, inFlight, lastDelete, lock } = view;
    return {
      id: view.id,
      space: view.space,
      name: view.name,
      broker: view.broker,
      offering: view.offering,
      osb_id: view.osbId,
      created_by: view.createdBy,
      created_at: timeOf(view.createdAt),
      phase: view.phase,
      usable: view.usable,
      certainty: {
        certain: certainty.certain,
        since: certainty.since === undefined ? null : timeOf(certainty.since),
        operation: certainty.operation ?? null,
      },
      dashboard_url: view.dashboardUrl,
      applied: view.applied && bodyOf.state(view.applied),
      in_flight: inFlight && { operation: inFlight.operation, call: inFlight.call, since: timeOf(inFlight.since) },
      desired: view.desired && bodyOf.state(view.desired),
      queue: view.queue.map(bodyOf.queued),
      failures: view.failures.map(({ operation, op, paths, class: kind, message, at, repeatable }) => ({
        ...{ operation, op, paths, message, repeatable },
        class: kind,
        at: timeOf(at),
      })),
      last_delete: lastDelete && {
        operation: lastDelete.operation,
        by: lastDelete.by,
        at: timeOf(lastDelete.at),
        message: lastDelete.message,
        how: lastDelete.how,
      },
      lock: lock && {
        by: lock.by,
        at: timeOf(lock.at),
        reason: lock.reason,
        effect: lock.effect,
        deletes_exempt: lock.deletesExempt,
        until: lock.until === null ? null : timeOf(lock.until),
      },
      policy: bodyOf.policy(view.policy),
      bindings: view.bindings.map(bodyOf.binding),
      revision: view.revision,
    };
  },

  summary: (summary: InstanceSummary): Body<"InstanceSummary"> => ({
    id: summary.id,
    space: summary.space,
    name: summary.name,
    broker: summary.broker,
    offering: summary.offering,
    plan: summary.applied?.plan ?? null,
    phase: summary.phase,
    usable: summary.usable,
    open: summary.open,
    bindings: summary.bindings,
    revision: summary.revision,
  }),

  admitted(admitted: Admitted): Body<"Admitted"> {
    if (admitted.kind === "dry run")
      return {
        result: "dry-run",
        operation: null,
        instance: null,
        report: admitted.report,
        desired: admitted.desired && bodyOf.state(admitted.desired),
      };
    return {
      result: admitted.kind,
      operation: admitted.kind === "unchanged" ? null : admitted.operation,
      instance: bodyOf.instance(admitted.instance),
      report: null,
      desired: null,
    };
  },

  line: (line: JournalLine): Body<"JournalLine"> => ({
    seq: line.seq,
    at: timeOf(line.at),
    family: line.family,
    kind: line.kind,
    operation: line.operation,
    by: line.by,
    cause: line.cause,
    request_id: line.requestId,
    summary: line.summary,
    payload: line.payload ?? null,
  }),

  broker: (broker: BrokerView): Body<"Broker"> => ({
    name: broker.name,
    url: broker.url,
    authentication: broker.authentication,
    limits: { in_flight: broker.limits.inFlight, timeout_ms: broker.limits.timeoutMs },
    relist_ms: broker.relistMs,
    registered_by: broker.registeredBy,
    registered_at: timeOf(broker.registeredAt),
    health: {
      state: broker.health.state,
      since: timeOf(broker.health.since),
      message: broker.health.message,
      failures: broker.health.failures,
    },
    catalog: {
      revision: broker.catalog.revision,
      read_at: broker.catalog.readAt === null ? null : timeOf(broker.catalog.readAt),
      fault: broker.catalog.fault,
      offerings: broker.catalog.offerings,
    },
    waiting: broker.waiting,
  }),

  offeringSummary: ({ broker, offering, leftAt, plansLeft }: OfferedService): Body<"OfferingSummary"> => ({
    broker,
    id: offering.id,
    name: offering.name,
    description: offering.description,
    bindable: offering.bindable,
    tags: offering.tags ?? [],
    left_at: leftAt === null ? null : timeOf(leftAt),
    plans: offering.plans.map((plan) => ({
      id: plan.id,
      name: plan.name,
      description: plan.description,
      free: plan.free ?? true,
      bindable: plan.bindable ?? offering.bindable,
      maintenance: plan.maintenance_info?.version ?? null,
      left: leftAt !== null || plansLeft.includes(plan.id),
    })),
  }),

  offering: ({ broker, offering, leftAt, plansLeft }: OfferedService): Body<"Offering"> => ({
    broker,
    left_at: leftAt === null ? null : timeOf(leftAt),
    plans_left: plansLeft,
    offering: jsonText(JSON.stringify(offering)),
  }),

  orphan: (orphan: OrphanView): Body<"Orphan"> => ({
    key: orphan.key,
    broker: orphan.broker,
    space: orphan.space,
    instance: orphan.instance,
    instance_osb_id: orphan.instanceOsbId,
    binding_osb_id: orphan.bindingOsbId,
    offering: orphan.offering,
    plan: orphan.plan,
    operation: orphan.operation,
    reason: orphan.reason,
    suspected_at: timeOf(orphan.suspectedAt),
    state: orphan.state,
    tries: orphan.tries,
    last_answer: orphan.lastAnswer,
    ended_at: orphan.endedAt === null ? null : timeOf(orphan.endedAt),
    ended_by: orphan.endedBy,
    end_reason: orphan.endReason,
  }),

  rotation: (rotation: RotationView): Body<"Rotation"> => ({
    space: rotation.space,
    instance: rotation.instance,
    binding: rotation.binding,
    expires_at: rotation.expiresAt,
    renew_before: rotation.renewBefore,
    renew_at: timeOf(rotation.renewAt),
    state: rotation.state,
    successor: rotation.successor,
    message: rotation.message,
  }),

  campaign: (campaign: CampaignView): Body<"Campaign"> => ({
    id: campaign.id,
    broker: campaign.broker,
    offering: campaign.offering,
    plan: campaign.plan,
    space: campaign.space,
    window: campaign.window && {
      from_minute: campaign.window.fromMinute,
      until_minute: campaign.window.untilMinute,
    },
    at_once: campaign.atOnce,
    stop_at_error_rate: campaign.stopAtErrorRate,
    by: campaign.by,
    started_at: timeOf(campaign.startedAt),
    ended_at: campaign.endedAt === null ? null : timeOf(campaign.endedAt),
    state: campaign.state,
    counts: campaign.counts,
    message: campaign.message,
  }),

  target: ({ space, instance, state, operation, message, tries }: CampaignTarget): Body<"CampaignTarget"> => ({
    ...{ space, instance, state, operation, message, tries },
  }),

  quota: ({ name, counts, space, broker, offering, plan, limit, by, at }: Quota): Body<"Quota"> => ({
    ...{ name, counts, space, broker, offering, plan, limit, by },
    at: timeOf(at),
  }),

  quotaUsage: ({ name, counts, broker, offering, plan, limit, used }: QuotaUsage): Body<"QuotaUsage"> => ({
    ...{ name, counts, broker, offering, plan, limit, used },
  }),

  visibility: ({ name, broker, offering, plan, spaces, by, at }: Visibility): Body<"Visibility"> => ({
    ...{ name, broker, offering, plan, spaces, by },
    at: timeOf(at),
  }),

  freeze: (freeze: Freeze): Body<"Freeze"> => ({
    id: freeze.id,
    space: freeze.space,
    broker: freeze.broker,
    plan: freeze.plan,
    by: freeze.by,
    at: timeOf(freeze.at),
    reason: freeze.reason,
    effect: freeze.effect,
    deletes_exempt: freeze.deletesExempt,
    until: freeze.until === null ? null : timeOf(freeze.until),
  }),
} as const;

function changeOf({ op, path, old, value }: PathChange) {
  return {
    op,
    path,
    ...(old !== undefined && { old: jsonText<unknown>(old) }),
    ...(value !== undefined && { value: jsonText<unknown>(value) }),
  };
}

/** What was kept is a time; a store that was tampered with must not make every answer fail. */
function timeOf(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? String(ms) : time.toISOString();
}
