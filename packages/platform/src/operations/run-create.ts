import type { ProvisionRequest } from "@osbert/protocol";
import type { CallOutcome } from "../records/call-outcome.js";
import { instanceLabels } from "../records/instance-labels.js";
import type { CreateResult, PlanRef } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { orphanRecords } from "../records/orphan-record.js";
import { awaitRunning } from "./await-running.js";
import { awaitUndone } from "./await-undone.js";
import { failure, refusal } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { readBroker } from "./read-broker.js";
import { refreshedMaintenance } from "./refreshed-maintenance.js";
import { requestContext } from "./request-context.js";
import { planOf } from "./run-delete.js";
import type { RunPorts } from "./run-ports.js";
import { conflictHeard, sendCall } from "./send-call.js";
import { suspectOrphan } from "./suspect-orphan.js";

type CreateOperation = InstanceOperation<"create">;

/** Attempts to create something of which the ones before are in the ledger: each has an id of its own. */
export const mostAttempts = 3;

/** How one attempt with one id ended. */
type AttemptEnd =
  | { readonly kind: "created"; readonly dashboardUrl: string | null; readonly maintenance: string | null }
  | FailedAttempt;

export interface FailedAttempt {
  readonly kind: "failed";
  readonly error: (orphan: string | null) => Error;
  readonly left: Left | null;
}

/** What it may have left at the broker. */
interface Left {
  readonly reason: string;
  /** It is not known to be over: it may come into being after the broker has said that there is nothing. */
  readonly mayComeLate: boolean;
  /** The broker said nothing at all, so that it is likely to be at it: the next attempt waits for more than that there is nothing yet. */
  readonly isSilent: boolean;
  /** Someone has to say what is to become of it. */
  readonly held: boolean;
  readonly isConflict: boolean;
  /** A new attempt may do better. */
  readonly again: boolean;
}

/**
 * Creates the instance at its broker. Where nobody can tell what an attempt did, its id goes into the ledger, and only then is it forgotten here; the
 * next attempt has an id of its own, because a slow broker may still finish the first one (E8).
 */
export async function runCreate(ports: RunPorts, operation: CreateOperation): Promise<CreateResult> {
  const { input } = operation;
  await leaveFormer(ports, operation);
  const known = input.resumed === true ? await recall(ports, operation) : "nothing";
  const isLeft = known !== "nothing" && known !== "conflict";
  if (isLeft) await leaveToLedger(ports, operation, known);
  for (let attempt = isLeft ? 2 : 1; ; attempt++) {
    const osbId = attempt === 1 ? input.osbId : await operation.step(`id of attempt ${attempt}`, () => ports.newId());
    const end =
      attempt === 1 && input.resumed === true
        ? await resume(ports, operation, osbId, known === "conflict")
        : await createOnce(ports, operation, osbId, attempt === 1 ? "" : ` ${attempt}`);
    if (end.kind === "created") {
      const { dashboardUrl, maintenance } = end;
      return { osbId, applied: { plan: input.plan, parameters: input.parameters, maintenance }, dashboardUrl };
    }
    const hold = operation.data.policy.orphans === "hold";
    const orphan =
      end.left === null
        ? null
        : await suspectOrphan(ports, operation, {
            instance: osbId,
            binding: null,
            plan: input.plan,
            reason: end.left.reason,
            mayComeLate: end.left.mayComeLate,
            held: end.left.held || hold,
            isConflict: end.left.isConflict,
          });
    await forget(operation, osbId);
    if (orphan === null || end.left?.again !== true || hold || attempt >= mostAttempts) throw end.error(orphan);
    operation.describe("what the last attempt may have left is being deleted before the next one");
    await awaitUndone(ports, operation, orphan, {
      name: `undone ${attempt}`,
      withinMs: ports.pauses.recreateMs,
      suffices: end.left.isSilent ? ["deleted"] : ["deleted", "absent"],
    });
  }
}

const stopped = "a delete that the broker refused had stopped it before the end was known";

/**
 * The instance still has the id of another create, which was stopped, and which the broker then refused to delete. Before this one takes its place,
 * the ledger has it. With a mark the id is of an attempt of this one.
 */
async function leaveFormer(ports: RunPorts, operation: CreateOperation): Promise<void> {
  const { data, input } = operation;
  const part = `call/${operation.id}` as const;
  if (data.osbId === null || data.osbId === input.osbId || (await operation.parts([part])).has(part)) return;
  await suspectOrphan(ports, operation, {
    instance: data.osbId,
    binding: null,
    plan: planOf(data) ?? input.plan,
    reason: "it was created anew, and nobody knows what became of an earlier create",
    mayComeLate: true,
    held: data.policy.orphans === "hold",
    isConflict: data.conflictId === data.osbId,
    keepsDismissed: true,
  });
  await forget(operation, data.osbId);
}

/** What is known of an id that is to be gone on with: that the broker answered 409 to it, or that the ledger has it, and how. */
type Recalled = "nothing" | "conflict" | "held" | "open" | "over";

/** Recorded before anything is sent: what comes to be known after that belongs to this operation. */
function recall(ports: RunPorts, { step, data, input }: CreateOperation): Promise<Recalled> {
  return step("what is known of it", async (): Promise<Recalled> => {
    if (data.conflictId === input.osbId) return "conflict";
    const row = orphanRecords.resource(await ports.journal().read(keys.orphan(data.broker, input.osbId, null)));
    if (row === undefined) return "nothing";
    if (row.data.endedAt !== null) return "over";
    return row.data.state === "open" ? "open" : "held";
  });
}

/**
 * The one that was stopped had given its id to the ledger, and could not forget it any more: what the ledger deletes, or has deleted, is not gone on
 * with. The next attempt waits for it, as that one would have.
 */
async function leaveToLedger(ports: RunPorts, operation: CreateOperation, known: "held" | "open" | "over") {
  const { data, input } = operation;
  await forget(operation, input.osbId);
  if (known === "over") return;
  const orphan = keys.orphan(data.broker, input.osbId, null);
  if (known === "held") {
    const message =
      "what it may have left at the broker waits in the ledger for someone to say what is to become of it";
    throw failure(message, { class: "unknown", uncertain: true, orphan });
  }
  operation.describe("what the last attempt may have left is being deleted before the next one");
  await awaitUndone(ports, operation, orphan, {
    name: "undone 1",
    withinMs: ports.pauses.recreateMs,
    suffices: ["deleted", "absent"],
  });
}

/** Finds out what became of the one that was stopped. If the broker answered 409 to it, what it has now may be another's (E10-63). */
async function resume(
  ports: RunPorts,
  operation: CreateOperation,
  osbId: string,
  isConflict: boolean,
): Promise<AttemptEnd> {
  if (isConflict) return refused({ kind: "refused", afterLost: true, ...conflictHeard });
  await keepLost(ports, operation, osbId);
  return resolve(ports, operation, osbId, operation.input.maintenance, "", stopped);
}

/**
 * Nobody has heard what became of the create with this id: kept before anything else may succeed in its place. Whoever goes on comes by again at each
 * wake, also when a later attempt waits: what is known is not written again, and what was is not written over what is.
 */
async function keepLost(ports: RunPorts, operation: CreateOperation, osbId: string): Promise<void> {
  await operation.change(({ data }) => {
    if (data.osbId !== osbId || data.lostCreate?.osbId === osbId) return {};
    return { data: { ...data, lostCreate: { osbId, at: ports.journal().now() } } };
  });
}

async function createOnce(
  ports: RunPorts,
  operation: CreateOperation,
  osbId: string,
  which: string,
): Promise<AttemptEnd> {
  const { input } = operation;
  const first = await provision(ports, operation, osbId, input.maintenance, { what: `provision${which}` });
  if (first.kind !== "refused" || first.class !== "needs refresh" || input.maintenance === null)
    return endOf(ports, operation, osbId, input.maintenance, which, first);
  // The catalog was old. The version came from there, so that the one of now is as good as it was (E4).
  const maintenance = await refreshedMaintenance(ports, operation, input.plan, which);
  if (maintenance === input.maintenance) return refused(first);
  const what = `provision${which} with the version of now`;
  return endOf(
    ports,
    operation,
    osbId,
    maintenance,
    which,
    await provision(ports, operation, osbId, maintenance, { what }),
  );
}

function provision(
  ports: RunPorts,
  operation: CreateOperation,
  osbId: string,
  maintenance: string | null,
  { what, lostBefore = false }: { readonly what: string; readonly lostBefore?: boolean },
): Promise<CallOutcome> {
  const { input, data } = operation;
  const request: ProvisionRequest = {
    service_id: data.offering.id,
    plan_id: input.plan.id,
    ...requestContext(operation),
    ...(maintenance !== null && { maintenance_info: { version: maintenance } }),
  };
  const text = input.parameters === null ? {} : { parametersText: input.parameters };
  return sendCall(ports, operation, {
    what,
    call: "provision",
    instance: osbId,
    body: `${JSON.stringify(request)}${input.parameters ?? ""}`,
    send: (client, options) => client.provision(osbId, request, { ...text, ...options }),
    ahead: ({ data: before }) => {
      const askedPlan = input.plan;
      // As with `waitsSince`: what is new comes first.
      const isNew = before.askedPlan === undefined;
      return { data: isNew ? { askedPlan, ...before, osbId } : { ...before, osbId, askedPlan } };
    },
    whenInDoubt: (now, at) => ({ data: { ...now.data, lostCreate: { osbId, at } } }),
    whenConflict: (now) => ({ data: { ...now.data, conflictId: osbId } }),
    isConflictKept: async () => data.conflictId === osbId,
    lostBefore,
    whenLost: "tell",
  });
}

/** What an answer to the provision leads to. */
async function endOf(
  ports: RunPorts,
  operation: CreateOperation,
  osbId: string,
  maintenance: string | null,
  which: string,
  outcome: CallOutcome,
): Promise<AttemptEnd> {
  switch (outcome.kind) {
    case "done":
      return { kind: "created", dashboardUrl: outcome.dashboardUrl, maintenance };
    case "running": {
      const what = `provision${which}`;
      const whenForgotten = () => keepLost(ports, operation, osbId);
      const end = await awaitRunning(ports, operation, outcome, { what, whenForgotten, ...polled(operation, osbId) });
      if (end.kind === "succeeded") return { kind: "created", dashboardUrl: outcome.dashboardUrl, maintenance };
      if (end.kind === "lost") return resolve(ports, operation, osbId, maintenance, which, end.message);
      return accepted(end.kind === "failed" ? end : unexpected(end.kind));
    }
    case "unusable":
      return accepted({ ...unexpected("unusable"), message: outcome.message });
    case "refused":
      if (outcome.class === "malformed 200" && (await isThere(ports, operation, osbId, which)))
        return { kind: "created", dashboardUrl: null, maintenance };
      return refused(outcome);
    case "lost":
      return resolve(ports, operation, osbId, maintenance, which, outcome.message, outcome.status === null);
  }
}

/**
 * Nobody knows what became of the provision (E3), which is kept by now (`lostCreate`): the broker is asked for the instance, then the identical request is sent once more. What is
 * unclear after that is an orphan. 409 says that the id belongs to something that exists: that is never deleted because of it (E10-63).
 */
async function resolve(
  ports: RunPorts,
  operation: CreateOperation,
  osbId: string,
  maintenance: string | null,
  which: string,
  message: string,
  wasSilent = true,
): Promise<AttemptEnd> {
  const created = { kind: "created", dashboardUrl: null, maintenance } as const;
  if (await isThere(ports, operation, osbId, which)) return created;
  const what = `provision${which} once more`;
  const again = await provision(ports, operation, osbId, maintenance, { what, lostBefore: true });
  if (again.kind === "done") return { ...created, dashboardUrl: again.dashboardUrl };
  const isConflict = again.kind === "refused" && again.class === "conflict";
  if (again.kind === "running" || isConflict) {
    // Recorded: from then on its time is counted, whatever restarts meanwhile.
    const at = isConflict ? await operation.step(`conflict${which}`, () => ports.journal().now()) : 0;
    const running = again.kind === "running" ? again : { operation: null, at, retryAfterMs: null };
    const end = await awaitRunning(ports, operation, running, { what, ...polled(operation, osbId) });
    if (end.kind === "succeeded") return created;
    if (end.kind === "failed" && !isConflict) return accepted(end);
  }
  const reason = "message" in again ? again.message : message;
  return {
    kind: "failed",
    error: (orphan) =>
      again.kind === "refused"
        ? refusal(again, { uncertain: true, orphan })
        : failure(reason, { class: "unknown", uncertain: true, orphan }),
    left: {
      ...left(isConflict ? `an answer was lost, and then the broker answered 409: ${reason}` : reason),
      mayComeLate: true,
      isSilent: wasSilent || (again.kind === "lost" && again.status === null),
      isConflict,
      // The broker has said that it does not do it.
      again: again.kind !== "refused",
    },
  };
}

/** What is to be deleted, where nothing more is known of it. */
export function left(reason: string): Left {
  return { reason, mayComeLate: false, isSilent: false, held: false, isConflict: false, again: false };
}

/** The broker said no. */
export function refused(outcome: Extract<CallOutcome, { readonly kind: "refused" }>): FailedAttempt {
  const { message: reason, class: found } = outcome;
  // Neither may be deleted because of that answer (P-ORPH-04, E10-63), but if the broker lies, something is there: the ledger keeps it in mind.
  const isConflict = found === "conflict";
  const isDoubtful = isConflict || found === "malformed 200";
  return {
    kind: "failed",
    error: (orphan) => refusal(outcome, { orphan }),
    left: isDoubtful ? { ...left(reason), held: true, isConflict } : null,
  };
}

/** It was accepted and has failed: what is left of it is to be deleted (P-ORPH-05). */
function accepted(end: {
  readonly class: "operation failed" | "operation timed out" | "unusable answer";
  readonly message: string;
  readonly usable: boolean | null;
  readonly uncertain: boolean;
}): AttemptEnd {
  const { message, usable, uncertain } = end;
  return {
    kind: "failed",
    error: (orphan) => failure(message, { class: end.class, usable, uncertain, orphan }),
    left: { ...left(message), mayComeLate: uncertain },
  };
}

function unexpected(kind: string) {
  const message = `the broker's answer cannot be used: ${kind}`;
  return { class: "unusable answer", message, usable: null, uncertain: false } as const;
}

/** Whether the broker has it, where instances can be fetched. While it is being created it answers 404. */
async function isThere(ports: RunPorts, operation: CreateOperation, osbId: string, which: string): Promise<boolean> {
  const { broker, offering } = operation.data;
  if (ports.brokers.offering(broker, offering.id)?.offering.instances_retrievable !== true) return false;
  const plan: PlanRef = operation.input.plan;
  const hints = { serviceId: offering.id, planId: plan.id };
  const found = await readBroker(ports, operation, `fetched${which}`, (client, options) =>
    client.fetchInstance(osbId, { ...options, ...hints }),
  );
  return found === "there";
}

function polled({ input }: CreateOperation, osbId: string) {
  return { change: "create", instance: osbId, plan: input.plan.id } as const;
}

/** The id is in the ledger, or nothing is there: it is never used again. */
async function forget(operation: CreateOperation, osbId: string): Promise<void> {
  await operation.change(({ data }) => {
    if (data.osbId !== osbId) return {};
    const forgotten = { ...data, osbId: null, formerOsbIds: [...data.formerOsbIds, osbId].slice(-20) };
    return { data: forgotten, labels: instanceLabels(forgotten) };
  });
}
