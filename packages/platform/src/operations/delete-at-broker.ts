import { awaitRunning } from "./await-running.js";
import { failure, refusal } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { growingPauseMs } from "./pauses.js";
import type { RunPorts } from "./run-ports.js";
import { forEver, sendCall } from "./send-call.js";

export interface Deleted {
  /** Ids at the broker. */
  readonly instance: string;
  readonly binding?: string;
  readonly plan: string;
}

/** Each round is a DELETE that was answered: what gets no answer is sent again within one. Above this the broker talks nonsense. */
const mostRounds = 200;

/**
 * Deletes an instance or a binding at its broker, to the end. A broker that refuses keeps what it has: the operation fails, and all is as it was.
 * Answers whether the broker said that there was nothing. Only an answer to a DELETE ends it, or the end of what a DELETE was accepted as: a broker
 * that is busy after a DELETE was lost may be at a create or an update, and is asked once more when that is over.
 */
export async function deleteAtBroker(
  ports: RunPorts,
  operation: InstanceOperation<"delete" | "unbind">,
  deleted: Deleted,
): Promise<{ readonly wasGone: boolean }> {
  const { instance, binding, plan } = deleted;
  const { broker, offering } = operation.data;
  const { pauses, random } = ports;
  const call = binding === undefined ? "deprovision" : "unbind";
  const hints = { serviceId: offering.id, planId: plan };
  let notFound = 0;
  let failures = 0;
  let isForgotten = false;
  for (let round = 1; round <= mostRounds; round++) {
    const what = round === 1 ? call : `${call} ${round}`;
    const outcome = await sendCall(ports, operation, {
      what,
      call,
      instance,
      ...(binding !== undefined && { binding }),
      send: (client, options) =>
        binding === undefined
          ? client.deprovision(instance, { ...options, ...hints })
          : client.unbind(instance, binding, { ...options, ...hints }),
      whenLost: forEver(pauses.deleting),
    });
    switch (outcome.kind) {
      case "done":
        return { wasGone: outcome.status === 410 };
      case "running": {
        // After one more DELETE there is no reason for a third: a 404 is then polled on.
        const change = isForgotten ? "unknown" : "delete";
        const end = await awaitRunning(ports, operation, outcome, { what, change, ...deleted });
        // The next round has no lost attempt: while the broker is busy then, it is waited for.
        if (outcome.isAssumed === true) break;
        if (end.kind === "succeeded" || end.kind === "gone") return { wasGone: false };
        // One more DELETE tells which it is: 410, or that the broker answers 404 where 410 is specified.
        if (end.kind !== "failed") {
          isForgotten = true;
          break;
        }
        const pauseMs = pauses.failedDelete[failures++];
        const { message, usable, repeatable } = end;
        if (pauseMs === undefined) throw failure(message, { class: end.class, usable, repeatable });
        operation.describe(`the broker could not delete it, and is asked again later: ${message}`);
        await operation.sleep(`before ${call} ${round + 1}`, pauseMs);
        break;
      }
      case "refused":
        if (outcome.class === "not found") {
          if (ports.brokers.broker(broker)?.quirks.notFoundMeansGone === true) return { wasGone: true };
          if (++notFound > 1) throw refusal({ ...outcome, message: `${outcome.message}. ${notFoundHint}` });
        } else if (outcome.class === "malformed 200") {
          // Done only if the next one is answered with 410: until then it is asked again, as if there had been no answer.
          await operation.sleep(`before ${call} ${round + 1}`, growingPauseMs(pauses.deleting, round - 1, random));
        } else throw refusal(outcome);
        break;
      case "unusable":
      case "lost":
        throw failure(outcome.message, { class: "unusable answer", uncertain: true });
    }
  }
  throw failure("the broker answers deletes with nothing that can be used", {
    class: "unusable answer",
    uncertain: true,
  });
}

const notFoundHint =
  "The broker answers 404 where 410 is specified: say notFoundMeansGone of this broker if it means that there is nothing, or abandon it";
