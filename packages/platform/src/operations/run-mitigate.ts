import { RetryLater, type TypedOperation } from "@osbert/journal";
import type { OrphanData, OrphanShape } from "../records/orphan-record.js";
import { awaitLastOperation, type BrokerOperationEnd, type PollMemory } from "./await-last-operation.js";
import { callBroker } from "./call-broker.js";
import { findOwner, osbIdAt } from "./find-owner.js";
import { growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";
import { longestAheadMs, pausesAreThrown } from "./send-call.js";

type MitigateOperation = TypedOperation<OrphanShape, "mitigate">;

/** Operations of the broker's that were begun and did not end well: after so many the next operation of the row goes on. */
const mostRounds = 400;
/** 404 says that there is nothing, and not that it was deleted: so often, from try to try, it is believed. */
const mostNotFound = 3;

/**
 * Deletes at the broker what may be left there, for as long as it takes. Each DELETE stands in the row before it is sent, until the broker has said what
 * came of it: whoever dismisses the row leaves that in it, and after that none is sent. Nobody's identity goes with it (P-ID-03). What may come late is
 * deleted again, later each time, until its time is over, whatever the broker has said: a slow broker may finish the create after it has deleted what
 * another attempt made (E8).
 */
export async function runMitigate(
  ports: RunPorts,
  operation: MitigateOperation,
): Promise<OrphanShape["operations"]["mitigate"]["result"]> {
  const { data } = operation;
  const { pauses, random } = ports;
  const lateUntil = data.mayComeLate ? data.suspectedAt + pauses.lateMs : 0;
  for (let round = 1, late = 0; round <= mostRounds; round++) {
    const answer = await sendDelete(ports, operation, round);
    if (answer.kind === "owned") return { status: "adopted", at: answer.at, owner: answer.owner };
    if (answer.kind === "running") {
      const end = await awaitDeleted(ports, operation, round, answer);
      if (end.kind !== "succeeded" && end.kind !== "gone") {
        const told = end.kind === "failed" ? end.message : "the broker knows nothing of the delete";
        await note(operation, told, { mayBeDeleting: end.kind === "lost" });
        await operation.sleep(`before delete ${round + 1}`, growingPauseMs(pauses.deleting, round - 1, random));
        continue;
      }
    }
    // By the time of the answer, which is recorded: whoever follows a process that died here decides the same.
    if (answer.at >= lateUntil) return { status: "mitigated", at: ports.journal().now() };
    if (answer.kind === "running") await noteGone(operation, "deleted");
    operation.describe("it is gone; as its create may still come late, it is deleted again");
    const pauseMs = Math.min(growingPauseMs(pauses.deleting, late++, random), Math.max(0, lateUntil - answer.at));
    await operation.sleep(`before delete ${round + 1}`, pauseMs);
  }
  throw new Error("the broker has accepted every delete, and ended none");
}

type DeleteAnswer =
  | { readonly kind: "done"; readonly at: number }
  | { readonly kind: "owned"; readonly at: number; readonly owner: string }
  | {
      readonly kind: "running";
      readonly operation: string | null;
      readonly retryAfterMs: number | null;
      readonly at: number;
    };

/** Sent again, later each time, whatever the broker answers, until it has deleted it, or works at it. */
function sendDelete(ports: RunPorts, operation: MitigateOperation, round: number): Promise<DeleteAnswer> {
  const { data } = operation;
  const { pauses, random, newId } = ports;
  const { instanceOsbId: instance, bindingOsbId: binding } = data;
  const call = binding === null ? "deprovision" : "unbind";
  const hints = { serviceId: data.offering.id, planId: data.plan.id };
  const look = async ({ looks, signal }: { readonly looks: number; readonly signal: AbortSignal }) => {
    const adopter = binding === null ? await adopterOf(ports, data) : null;
    if (adopter?.has === true) return { kind: "owned", at: ports.journal().now(), owner: adopter.key } as const;
    // It may still fail, and then nobody has it but this row. An adoption waits for no row, so that it ends.
    if (adopter !== null) {
      operation.describe("it is being adopted, and deleted if that fails");
      throw new RetryLater("it is being adopted", { afterMs: growingPauseMs(pauses.busy, looks, random) });
    }
    const requestId = newId();
    const ahead = ports.journal().now();
    await operation.change(({ data: { deleting = { operation: null }, ...now } }) => ({
      data: { ...now, deleting },
      entries: [
        { kind: "mitigation-started", payload: { requestId, attempt: now.tries + 1 }, operation: operation.id },
      ],
    }));
    // Whoever was stopped in between, and has lost its lease meanwhile, would delete what others have been given.
    if (ports.journal().now() - ahead > longestAheadMs)
      throw new RetryLater("the mark was too long in coming", { afterMs: 0 });
    const options = { ...hints, requestId, signal };
    const came = await callBroker(
      ports,
      data.broker,
      call,
      (client) =>
        binding === null ? client.deprovision(instance, options) : client.unbind(instance, binding, options),
      { signal },
    );
    const { answer, said, next, retryAfterMs } = came;
    const at = ports.journal().now();
    if (answer?.kind === "accepted") {
      const named = answer.operation ?? null;
      // Before it is polled: whoever dismisses the row calls the polls off, and not the delete.
      await operation.change(({ data: now }) => ({ data: { ...now, deleting: { operation: named } } }));
      return { kind: "running", operation: named, retryAfterMs: retryAfterMs ?? null, at } as const;
    }
    if (answer !== undefined) {
      await noteGone(operation, said.status === 410 ? "absent" : "deleted");
      return { kind: "done", at } as const;
    }
    const isBusy = next === "wait" || next === "replace credentials" || said.status === null;
    const { notFound = 0 } = await note(operation, said.message, {
      isNotFound: said.status === 404,
      mayBeDeleting: isBusy || said.class === "unknown",
    });
    const isQuirk = ports.brokers.broker(data.broker)?.quirks.notFoundMeansGone === true;
    if (said.status === 404 && (isQuirk || notFound >= mostNotFound)) {
      await noteGone(operation, "absent");
      return { kind: "done", at } as const;
    }
    operation.describe(`the broker has not deleted it yet: ${said.message}`);
    const pauseMs = growingPauseMs(isBusy ? pauses.busy : pauses.deleting, looks, random);
    // Nobody waits for it, so that a broker's advice can only make it later.
    throw new RetryLater(said.message, { afterMs: Math.max(retryAfterMs ?? 0, pauseMs) });
  };
  return operation.poll(`answer to delete ${round}`, look, { everyMs: pausesAreThrown });
}

/**
 * Who has adopted it since, or is about to. The instance that it is suspected of has the id, too, until what suspects it has ended: that does not
 * count.
 */
async function adopterOf(
  { journal, brokers: port }: RunPorts,
  { broker, instanceOsbId: osbId }: OrphanData,
): Promise<{ readonly key: string; readonly has: boolean } | null> {
  const id = osbIdAt(port, broker, osbId);
  const owner = await findOwner(journal(), id, (_key, data) => data.adoptedId === osbId);
  if (owner !== undefined) return { key: owner, has: true };
  const claimant = await findOwner(journal(), id, (_key, data) => data.adoptingId === osbId);
  return claimant === undefined ? null : { key: claimant, has: false };
}

function awaitDeleted(
  ports: RunPorts,
  operation: MitigateOperation,
  round: number,
  answer: Extract<DeleteAnswer, { readonly kind: "running" }>,
): Promise<BrokerOperationEnd> {
  const { data } = operation;
  const asked = {
    name: `end of delete ${round}`,
    broker: data.broker,
    instance: data.instanceOsbId,
    ...(data.bindingOsbId !== null && { binding: data.bindingOsbId }),
    change: "delete",
    serviceId: data.offering.id,
    planId: data.plan.id,
    operation: answer.operation,
    at: answer.at,
    retryAfterMs: answer.retryAfterMs,
  } as const;
  const maximum = ports.brokers.plan(data.broker, data.offering.id, data.plan.id)?.maximum_polling_duration;
  return awaitLastOperation(ports, operation, asked, maximum, memoryOf(operation));
}

/** What the ledger tells of the last try. */
async function note(
  operation: MitigateOperation,
  lastAnswer: string,
  {
    isNotFound = false,
    mayBeDeleting = false,
  }: { readonly isNotFound?: boolean; readonly mayBeDeleting?: boolean } = {},
): Promise<OrphanData> {
  let noted = operation.data;
  await operation.change(({ data: { deleting, ...data } }) => {
    const tried = { ...data, tries: data.tries + 1, lastAnswer, notFound: isNotFound ? (data.notFound ?? 0) + 1 : 0 };
    noted = mayBeDeleting && deleting !== undefined ? { ...tried, deleting } : tried;
    return { data: noted };
  });
  return noted;
}

/** Once it was deleted, that there is nothing is no news. Of what cannot come late nobody needs it: its row ends. */
async function noteGone(operation: MitigateOperation, gone: NonNullable<OrphanData["gone"]>): Promise<void> {
  if (!operation.data.mayComeLate) return;
  await operation.change(({ data: { deleting, ...data } }) => {
    if (data.gone !== gone && data.gone !== "deleted") return { data: { ...data, gone, tries: data.tries + 1 } };
    return deleting === undefined ? {} : { data };
  });
}

function memoryOf(operation: MitigateOperation): PollMemory {
  return {
    load: async () => (await operation.parts(["poll"])).get("poll"),
    save: (repeated) => operation.change({ parts: { poll: repeated ?? null } }),
  };
}
