import { bindingPart, nameOfBinding } from "../decisions/binding-part.js";
import { toldReason } from "../decisions/controls.js";
import { desiredOf, type Inputs } from "../decisions/desk.js";
import {
  type Holds,
  holdsOf,
  type InstanceResource,
  phaseOf,
  type QueuedOperation,
  queueOf,
} from "../decisions/queue-state.js";
import type { BindingView, InstanceSummary, InstanceView, QueuedIntent } from "../platform.js";
import type { AppliedState, BindingRecord, InstanceData, UpdateInput } from "../records/instance-record.js";
import type { InstanceRef } from "../records/keys.js";

/** Everything about an instance, of one moment. `inputs` has those of all open operations. */
export function instanceView(ref: InstanceRef, resource: InstanceResource, inputs: Inputs, now: number): InstanceView {
  const { data, parts } = resource;
  const queue = queueOf(resource);
  const holds = holdsOf(data, queue);
  return {
    id: data.id,
    space: ref.space,
    name: ref.name,
    broker: data.broker,
    offering: data.offering,
    osbId: data.osbId,
    createdBy: data.createdBy,
    createdAt: data.createdAt,
    phase: phaseOf(data, queue, holds),
    usable: data.usable && data.applied !== null,
    certainty:
      data.uncertainSince === null
        ? { certain: true }
        : { certain: false, since: data.uncertainSince.at, operation: data.uncertainSince.operation },
    dashboardUrl: data.dashboardUrl,
    // Nothing is there any more. What an abandoned one may have left is in the ledger.
    applied: isOver(data) ? null : data.applied,
    inFlight: data.attempt,
    desired: isOver(data) ? null : desiredOf(data.applied, queue, inputs),
    queue: intentViews(resource, queue, holds, inputs, now),
    failures: data.failures,
    lastDelete: data.lastDelete,
    lock: data.lock,
    policy: data.policy,
    bindings: [...parts].flatMap(([id, record]) => {
      const part = bindingPart(id);
      return part === undefined ? [] : [bindingView(nameOfBinding(part), record as BindingRecord)];
    }),
    revision: data.revision,
  };
}

export function instanceSummary(ref: InstanceRef, resource: InstanceResource): InstanceSummary {
  const { data } = resource;
  const queue = queueOf(resource);
  return {
    id: data.id,
    space: ref.space,
    name: ref.name,
    broker: data.broker,
    offering: data.offering,
    phase: phaseOf(data, queue, holdsOf(data, queue)),
    usable: data.usable && data.applied !== null,
    applied: data.applied,
    revision: data.revision,
    open: queue.length + resource.queued,
    bindings: data.bindings,
  };
}

/** What the instance will be when one operation of the queue has succeeded, and all before it. `undefined`: that is not open. */
export function stateAfter(
  resource: InstanceResource,
  inputs: Inputs,
  operation: string,
): AppliedState | null | undefined {
  const queue = queueOf(resource);
  const index = queue.findIndex(({ id }) => id === operation);
  return index < 0 ? undefined : desiredOf(resource.data.applied, queue.slice(0, index + 1), inputs);
}

function intentViews(
  resource: InstanceResource,
  queue: readonly QueuedOperation[],
  holds: Holds,
  inputs: Inputs,
  now: number,
): readonly QueuedIntent[] {
  return resource.open.map((operation, index) => {
    const { id, acceptedAt, state, description } = operation;
    const { brief } = queue[index] ?? { brief: { op: "update", summary: "", paths: [], by: "" } as const };
    const found = inputs.get(id);
    const written = new Set(brief.paths.filter((path) => path !== "*"));
    const before = queue.slice(0, index).filter(({ kind }) => kind === "update");
    return {
      operation: id,
      op: brief.op,
      summary: brief.summary,
      author: "resumed" in brief && brief.resumed === true ? brief.by : (found?.by ?? brief.by),
      acceptedAt,
      ageMs: Math.max(0, now - acceptedAt),
      position: index + 1,
      state,
      description,
      heldFor: holds[id]?.map(toldReason).join("; ") ?? null,
      heldBy: [...new Set(holds[id]?.map(({ kind }) => kind) ?? [])],
      difference: operation.kind === "update" ? ((found?.input as UpdateInput | undefined)?.difference ?? []) : [],
      // E10-5: whoever looks sees that a later will goes over an earlier one.
      overrides:
        operation.kind === "update"
          ? before
              .filter((earlier) => earlier.brief.paths.some((path) => written.has(path)))
              .map((earlier) => earlier.id)
          : [],
    };
  });
}

function bindingView(name: string, record: BindingRecord): BindingView {
  const { answer: _secret, parameters: _parameters, ...shown } = record;
  return { ...shown, name };
}

function isOver({ phase }: InstanceData): boolean {
  return phase === "gone" || phase === "abandoned";
}
