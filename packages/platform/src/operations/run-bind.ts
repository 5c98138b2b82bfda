import type { Binding, BindRequest, BindResource } from "@osbert/protocol";
import { retirePredecessor, scheduleRotation } from "../decisions/schedule-rotation.js";
import type { CallOutcome } from "../records/call-outcome.js";
import { type BindingRecord, type BindResult, instances } from "../records/instance-record.js";
import { instanceRef, keys } from "../records/keys.js";
import { rotationRecords } from "../records/rotation-record.js";
import { awaitRunning } from "./await-running.js";
import { bindingProblem } from "./binding-problem.js";
import { failure, refusal } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { readBroker } from "./read-broker.js";
import { contextOf } from "./request-context.js";
import { type FailedAttempt, left, mostAttempts, refused } from "./run-create.js";
import { planOf } from "./run-delete.js";
import type { RunPorts } from "./run-ports.js";
import { type BrokerCall, budget, type KeptResource, sendCall, type WhenLost } from "./send-call.js";
import { suspectOrphan } from "./suspect-orphan.js";

type BindOperation = InstanceOperation<"bind">;

type AttemptEnd = { readonly kind: "bound" } | FailedAttempt;

/** One attempt, with one id at the broker. */
interface Attempt {
  readonly instance: string;
  readonly binding: string;
  readonly plan: string;
  /** Of its steps. */
  readonly which: string;
}

/** Makes the binding at its broker. What it answers is a secret: it is in the binding's part before anything says that there was an answer. */
export async function runBind(ports: RunPorts, operation: BindOperation): Promise<BindResult> {
  const { data, input } = operation;
  const plan = planOf(data);
  if (data.osbId === null || plan === null)
    throw failure("there is nothing at the broker that could be bound", { class: "preflight-drift" });
  for (let number = 1; ; number++) {
    const binding = number === 1 ? input.osbId : await operation.step(`id of attempt ${number}`, () => ports.newId());
    const which = number === 1 ? "" : ` ${number}`;
    const end = await bindOnce(ports, operation, { instance: data.osbId, binding, plan: plan.id, which });
    if (end.kind === "bound") {
      const result = await resultOf(operation);
      await planRenewal(operation, result);
      await planRetirement(operation);
      return result;
    }
    const hold = data.policy.orphans === "hold";
    const orphan =
      end.left === null
        ? null
        : await suspectOrphan(ports, operation, {
            instance: data.osbId,
            binding,
            plan,
            reason: end.left.reason,
            mayComeLate: end.left.mayComeLate,
            held: end.left.held || hold,
            isConflict: end.left.isConflict,
          });
    if (orphan === null || end.left?.again !== true || hold || number >= mostAttempts) throw end.error(orphan);
  }
}

async function bindOnce(ports: RunPorts, operation: BindOperation, attempt: Attempt): Promise<AttemptEnd> {
  const what = `bind${attempt.which}`;
  const outcome = await bind(ports, operation, attempt, { what });
  switch (outcome.kind) {
    case "done":
      return { kind: "bound" };
    case "running":
      return awaitBound(ports, operation, attempt, what, outcome);
    case "unusable":
      return unusable(outcome.message);
    case "refused":
      if (outcome.class === "malformed 200" && (await fetch(ports, operation, attempt, "fetched")) === "there")
        return { kind: "bound" };
      return refused(outcome);
    case "lost":
      return resolve(ports, operation, attempt);
  }
}

/**
 * E3: the broker is asked for the binding, then the identical request is sent once more; what is unclear after that is an orphan. That an answer is
 * lost is kept by now (`lostBind`).
 */
async function resolve(ports: RunPorts, operation: BindOperation, attempt: Attempt): Promise<AttemptEnd> {
  const found = await fetch(ports, operation, attempt, "fetched");
  if (found === "there") return { kind: "bound" };
  if (typeof found === "object") return unusable(found.unusable);
  const what = `bind${attempt.which} once more`;
  const again = await bind(ports, operation, attempt, { what, lostBefore: true });
  if (again.kind === "done") return { kind: "bound" };
  if (again.kind === "unusable") return unusable(again.message);
  if (again.kind === "running") return awaitBound(ports, operation, attempt, what, again, true);
  const isConflict = again.kind === "refused" && again.class === "conflict";
  return {
    kind: "failed",
    error: (orphan) => refusal(again, { uncertain: true, orphan }),
    left: {
      ...left(isConflict ? `an answer was lost, and then the broker answered 409: ${again.message}` : again.message),
      mayComeLate: true,
      // It says that the id belongs to something that exists: that is not deleted because of it.
      isConflict,
      again: again.kind === "lost",
    },
  };
}

/** The broker makes it. Then the credentials are fetched, or, where bindings cannot be, asked for with the identical request (E10-44). */
async function awaitBound(
  ports: RunPorts,
  operation: BindOperation,
  attempt: Attempt,
  what: string,
  running: Extract<CallOutcome, { readonly kind: "running" }>,
  isResolved = false,
): Promise<AttemptEnd> {
  const { instance, binding, plan, which } = attempt;
  const lostBind = () => ({ osbId: binding, at: ports.journal().now() });
  const whenForgotten = () => changeBinding(operation, (record) => ({ ...record, lostBind: lostBind() }));
  const of = { what, change: "create", instance, binding, plan, whenForgotten } as const;
  const end = await awaitRunning(ports, operation, running, of);
  if (end.kind === "lost" && !isResolved) return resolve(ports, operation, attempt);
  if (end.kind !== "succeeded") {
    const facts =
      end.kind === "failed"
        ? end
        : { class: "operation lost" as const, message: "the broker knows nothing of the bind", uncertain: true };
    const { message, uncertain } = facts;
    return {
      kind: "failed",
      error: (orphan) => failure(message, { class: facts.class, uncertain, orphan }),
      left: { ...left(message), mayComeLate: uncertain },
    };
  }
  const found = await fetch(ports, operation, attempt, "credentials fetched");
  if (found === "there") return { kind: "bound" };
  if (typeof found === "object") return unusable(found.unusable);
  const asked = await bind(ports, operation, attempt, {
    what: `bind${which} for its credentials`,
    lostBefore: true,
    waitWhileBusy: true,
    isOwn: running.isAssumed !== true,
    // The binding is made: an answer that is lost, or a platform that is killed, is no reason to delete it (E10-45).
    whenLost: { ...budget, pause: ports.pauses.lost },
  });
  if (asked.kind === "done") return { kind: "bound" };
  // It was never accepted, so that what has succeeded may be another's, as what has the id may be.
  if (asked.kind === "refused" && asked.class === "conflict" && running.isAssumed === true) return refused(asked);
  return unusable("the broker has made the binding, and its credentials cannot be had");
}

function bind(
  ports: RunPorts,
  operation: BindOperation,
  { instance, binding, plan }: Attempt,
  {
    isOwn = false,
    ...sending
  }: { readonly what: string } & Pick<BrokerCall<Binding>, "lostBefore" | "waitWhileBusy"> & {
      readonly whenLost?: WhenLost;
      /** The broker has said that it made the binding: 409 does not say that it is another's. */
      readonly isOwn?: boolean;
    },
): Promise<CallOutcome> {
  const { data, input } = operation;
  const { predecessor, appGuid, parameters } = input;
  const { instance_name: _, ...context } = input.context;
  const request: BindRequest =
    predecessor !== null
      ? { predecessor_binding_id: predecessor }
      : {
          service_id: data.offering.id,
          plan_id: plan,
          ...contextOf(context),
          ...(appGuid !== null && { app_guid: appGuid, bind_resource: { app_guid: appGuid } as BindResource }),
        };
  // What a rotation does not say is as it was.
  const text = parameters === null || predecessor !== null ? {} : { parametersText: parameters };
  const part = `binding/${input.binding}` as const;
  const changed = ({ parts }: KeptResource, change: (record: BindingRecord) => BindingRecord) => {
    const record = parts.get(part);
    const next = record === undefined ? undefined : change(record);
    return next === undefined || next === record ? {} : { parts: instances.part(part, next) };
  };
  return sendCall(ports, operation, {
    whenLost: "tell",
    ...sending,
    call: "bind",
    instance,
    binding,
    body: `${JSON.stringify(request)}${parameters ?? ""}`,
    send: (client, options) => client.bind(instance, binding, request, { ...options, ...text }),
    reads: part,
    ahead: (now) => changed(now, (record) => (record.osbId === binding ? record : { ...record, osbId: binding })),
    whenInDoubt: (now, at) => changed(now, (record) => ({ ...record, lostBind: { osbId: binding, at } })),
    // As of a create: what has that id may be another's, and is neither fetched nor deleted because of this bind.
    ...(!isOwn && { whenConflict: (now) => changed(now, (record) => ({ ...record, conflictId: binding })) }),
    isConflictKept: async () => (await operation.parts([part])).get(part)?.conflictId === binding,
    keep: async (answer) => (answer.kind === "done" ? keep(ports, operation, answer) : null),
  });
}

/** Where bindings can be fetched. What is found is kept. */
async function fetch(ports: RunPorts, operation: BindOperation, attempt: Attempt, name: string) {
  const { broker, offering } = operation.data;
  if (ports.brokers.offering(broker, offering.id)?.offering.bindings_retrievable !== true) return "unclear";
  const { instance, binding, plan, which } = attempt;
  const hints = { serviceId: offering.id, planId: plan };
  return readBroker(
    ports,
    operation,
    `${name}${which}`,
    (client, options) => client.fetchBinding(instance, binding, { ...options, ...hints }),
    (answer) => keep(ports, operation, answer),
  );
}

async function keep(
  ports: RunPorts,
  operation: BindOperation,
  { body, text }: { readonly body: Binding; readonly text: string },
): Promise<string | null> {
  const { broker, offering } = operation.data;
  const requires = ports.brokers.offering(broker, offering.id)?.offering.requires ?? [];
  const problem = bindingProblem(body, text, requires);
  if (problem !== null) return problem;
  const { expires_at = null, renew_before = null } = body.metadata ?? {};
  await changeBinding(operation, (record) => ({
    ...record,
    answer: text,
    expiresAt: expires_at,
    renewBefore: renew_before,
  }));
  return null;
}

/** Within what is recorded, so that no wake does it again. */
async function changeBinding(
  operation: BindOperation,
  change: (record: BindingRecord) => BindingRecord,
): Promise<void> {
  const part = `binding/${operation.input.binding}` as const;
  await operation.change(
    ({ parts }) => {
      const record = parts.get(part);
      return record === undefined ? {} : { parts: instances.part(part, change(record)) };
    },
    { parts: [part] },
  );
}

async function resultOf(operation: BindOperation): Promise<BindResult> {
  const part = `binding/${operation.input.binding}` as const;
  const record = (await operation.parts([part])).get(part);
  return { expiresAt: record?.expiresAt ?? null, renewBefore: record?.renewBefore ?? null };
}

/** E10-47: before the bind ends, so that there is no binding that nobody thinks of. */
async function planRenewal(operation: BindOperation, result: BindResult): Promise<void> {
  const ref = instanceRef(operation.key);
  if (ref === undefined || (result.expiresAt === null && result.renewBefore === null)) return;
  const { binding } = operation.input;
  const part = `binding/${binding}` as const;
  const record = (await operation.parts([part])).get(part);
  if (record === undefined) return;
  const times = { space: ref.space, instance: ref.name, binding, bindingId: record.id, ...result };
  await operation.transact(
    "renewal planned",
    keys.rotation(ref.space, ref.name, binding),
    rotationRecords.decide(scheduleRotation(times)),
  );
}

/** E10-47: nor one that stays for ever beside its successor. Until the bind has ended, its successor counts as one that is being bound. */
async function planRetirement(operation: BindOperation): Promise<void> {
  const ref = instanceRef(operation.key);
  if (ref === undefined || operation.input.predecessor === null) return;
  const part = `binding/${operation.input.binding}` as const;
  const predecessor = (await operation.parts([part])).get(part)?.predecessor ?? null;
  if (predecessor === null) return;
  const oldPart = `binding/${predecessor}` as const;
  const old = (await operation.parts([oldPart])).get(oldPart);
  // Unbound meanwhile, or another one that was given its name.
  if (old === undefined || old.osbId !== operation.input.predecessor) return;
  const { id: bindingId, expiresAt, renewBefore } = old;
  await operation.transact(
    "end of the predecessor planned",
    keys.rotation(ref.space, ref.name, predecessor),
    rotationRecords.decide(
      retirePredecessor({
        ...{ space: ref.space, instance: ref.name, binding: predecessor },
        ...{ bindingId, expiresAt, renewBefore },
      }),
    ),
  );
}

/** E10-43: the binding is made, and of no use. */
function unusable(message: string): AttemptEnd {
  return {
    kind: "failed",
    error: (orphan) => failure(message, { class: "unusable answer", orphan }),
    left: left(message),
  };
}
