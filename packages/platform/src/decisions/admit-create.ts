import { PlatformError } from "../errors.js";
import { instanceLabels } from "../records/instance-labels.js";
import type { AdoptInput, CreateInput, InstanceData, InstancePolicy, PlanRef } from "../records/instance-record.js";
import {
  type Admitting,
  askedBefore,
  carried,
  checkMatch,
  type Desk,
  decided,
  intentOf,
  lockOn,
  lookAhead,
} from "./desk.js";
import type { Holds } from "./queue-state.js";

export interface WantedInstance {
  readonly broker: string;
  readonly offering: PlanRef;
  readonly plan: PlanRef;
  readonly parameters: string | null;
  readonly maintenance: string | null;
  readonly policy: Partial<InstancePolicy>;
  /** Of an adoption: what it is called at the broker, where it is already. */
  readonly osbId: string | null;
}

export const defaultPolicy: InstancePolicy = { onFailure: "auto", concurrency: "queue", orphans: "mitigate" };

/**
 * A new instance; one that could not be created, created anew; or one that exists at the broker, taken over. A name is taken by one commit. What
 * waited behind a create that failed assumed another instance: it stays held until someone lets it go on (E10-3).
 */
export function admitCreate(desk: Desk, wanted: WantedInstance): Admitting {
  const { request, holds } = desk;
  const op = wanted.osbId === null ? "create" : "adopt";
  const known = askedBefore(desk);
  if (known !== undefined) return { result: known };
  if (desk.data !== undefined) checkMatch(desk);
  const before = replaceable(desk, op);
  // What it was would be at its broker, and nobody would know of it. A create has the ledger of its own broker look for that.
  const isAsBefore =
    op === "adopt"
      ? before?.osbId === wanted.osbId
      : before?.broker === wanted.broker && before.offering.id === wanted.offering.id;
  if (before != null && before.osbId !== null && !isAsBefore)
    throw new PlatformError("exists", `the instance is ${before.osbId} at its broker; abandon that before`, {
      details: { phase: before.phase, id: before.id },
    });
  const { plan, parameters, maintenance } = wanted;
  const intent = op === "create" ? ({ op, plan: plan.id, parameters } as const) : ({ op, plan: plan.id } as const);
  const ahead = lookAhead({ ...desk, data: undefined }, intent, { plan, parameters, maintenance }, wanted);
  if (ahead !== undefined) return { result: ahead };
  const heldFor = lockOn(desk, false);
  const data =
    before === undefined
      ? fresh(desk, wanted)
      : {
          ...before,
          broker: wanted.broker,
          offering: wanted.offering,
          policy: { ...before.policy, ...wanted.policy },
          // It is managed again when the broker has said that it has it.
          phase: before.phase === "unmanaged" ? before.phase : ("pending" as const),
        };
  const brief = { op, summary: `${op} ${wanted.offering.name} ${plan.name}`, paths: ["*"], plan: plan.id } as const;
  const of = { request, data };
  const osbId = wanted.osbId ?? request.newId;
  const { identity, context, catalog } = carried(of, op);
  // Written out: a member that is added to what was spread costs as much as half of the decision.
  const create: CreateInput = { op, identity, catalog, context, osbId, plan, parameters, maintenance };
  const adoption: AdoptInput = { op, identity, catalog, context, osbId, plan };
  const { brief: kept, lane, held = false } = intentOf(of, op, brief, heldFor);
  const place = "front" as const;
  const accepted =
    op === "create"
      ? { kind: "create" as const, brief: kept, lane, held, input: create, place }
      : { kind: "adopt" as const, brief: kept, lane, held, input: adoption, place };
  return decided(
    desk,
    { data, holds: asAsked(holds, request.by), summary: brief.summary },
    {
      accept: [accepted],
      // From now on it keeps its broker from being removed.
      labels: instanceLabels({ ...data, phase: "pending" }),
      ...leftovers(desk),
    },
  );
}

/** What waited for a create that failed is let go on by a person, not by the success of another create. */
function asAsked(holds: Holds, by: string): Holds {
  const message = "it was made for an instance that could not be created";
  const asked = Object.entries(holds).map(
    ([id, reasons]) =>
      [
        id,
        reasons.map((reason) => (reason.kind === "failure" ? ({ kind: "user", by, message } as const) : reason)),
      ] as const,
  );
  return Object.fromEntries(asked);
}

/** An instance that this one takes the place of: one that never came to be, or that its broker was taken from. */
function replaceable({ data, queue }: Desk, op: "create" | "adopt"): InstanceData | undefined {
  if (data === undefined) return undefined;
  const isOpen = queue.some(({ kind, cancelled }) => !cancelled && ["create", "adopt", "delete"].includes(kind));
  const isFree = data.phase === "failed" || (op === "adopt" && data.phase === "unmanaged");
  if (isFree && !isOpen) return data;
  throw new PlatformError("exists", `there is an instance of that name, and it is ${data.phase}`, {
    details: { phase: data.phase, id: data.id },
  });
}

function fresh({ request, resource, now }: Desk, { broker, offering, policy }: WantedInstance): InstanceData {
  // The revision goes on after one that had the name before: an entity tag must not come twice.
  const { revision = 0, changes = [] } = resource?.data ?? {};
  return {
    id: request.newId,
    broker,
    offering,
    createdBy: request.by,
    createdAt: now,
    phase: "pending",
    osbId: null,
    formerOsbIds: [],
    applied: null,
    dashboardUrl: null,
    attempt: null,
    uncertainSince: null,
    usable: true,
    failures: [],
    lastDelete: null,
    policy: { ...defaultPolicy, ...policy },
    lock: null,
    revision,
    changes,
    bindings: 0,
    held: {},
  };
}

/** Bindings of an abandoned instance that had the name before. */
function leftovers({ data, resource }: Desk): { readonly parts?: { readonly [id: `binding/${string}`]: null } } {
  if (data !== undefined || resource === undefined) return {};
  const ids = [...resource.parts.keys()].filter((id) => id.startsWith("binding/"));
  return ids.length === 0 ? {} : { parts: Object.fromEntries(ids.map((id) => [id, null])) };
}
