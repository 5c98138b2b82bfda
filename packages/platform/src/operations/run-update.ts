import type { UpdateRequest } from "@osbert/protocol";
import { textOf } from "../decisions/project.js";
import type { CallOutcome } from "../records/call-outcome.js";
import type { UpdateResult } from "../records/instance-record.js";
import { awaitRunning } from "./await-running.js";
import { failure, refusal } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { contextOf } from "./request-context.js";
import type { RunPorts } from "./run-ports.js";
import { budget, sendCall } from "./send-call.js";

type UpdateOperation = InstanceOperation<"update">;

/** A broker that has forgotten the update is sent it so often. */
const mostRounds = 3;

/** Changes the instance at its broker: exactly what the user said, and nothing else (P-UPD-03). Never leads to a delete (P-UPD-06). */
export async function runUpdate(ports: RunPorts, operation: UpdateOperation): Promise<UpdateResult> {
  const { data, input } = operation;
  const { applied, osbId } = data;
  if (applied === null || osbId === null)
    throw failure("there is nothing at the broker that could be changed", { class: "preflight-drift" });
  let waitWhileBusy = false;
  for (let round = 1; ; round++) {
    const what = round === 1 ? "update" : `update ${round}`;
    const outcome = await update(ports, operation, { what, lostBefore: round > 1, waitWhileBusy });
    switch (outcome.kind) {
      case "done":
        return { text: textOf(input), dashboardUrl: outcome.dashboardUrl };
      case "running": {
        // A broker that knows nothing of the update for ten minutes has lost it, as with a create (E10-16).
        const of = { what, change: "create", instance: osbId, plan: applied.plan.id } as const;
        const end = await awaitRunning(ports, operation, outcome, of);
        const isFinal = end.kind === "failed" && (end.class === "operation timed out" || end.repeatable === false);
        // What has ended may have been something else: the answer to one more PATCH tells.
        if (outcome.isAssumed === true && !isFinal && round < mostRounds) {
          waitWhileBusy = true;
          break;
        }
        if (end.kind === "succeeded") return { text: textOf(input), dashboardUrl: outcome.dashboardUrl };
        if (end.kind === "failed") {
          const { message, usable, repeatable, uncertain } = end;
          throw failure(message, { class: end.class, usable, repeatable, uncertain });
        }
        if (round >= mostRounds)
          throw failure("the broker knows nothing of the update", { class: "operation lost", uncertain: true });
        break;
      }
      case "unusable":
        throw failure(outcome.message, { class: "unusable answer", uncertain: true });
      case "refused": {
        // Whoever names a version means that one: there is no other that would do (E10-52).
        if (outcome.class === "needs refresh")
          await operation.step("catalog is read again", () => relist(ports, data.broker));
        throw refusal(outcome, { uncertain: outcome.afterLost || round > 1 || outcome.class === "malformed 200" });
      }
      case "lost":
        throw refusal(outcome, { uncertain: true });
    }
  }
}

function update(
  ports: RunPorts,
  operation: UpdateOperation,
  sending: { readonly what: string; readonly lostBefore: boolean; readonly waitWhileBusy: boolean },
): Promise<CallOutcome> {
  const { data, input } = operation;
  const { plan, maintenance, ...text } = textOf(input);
  const osbId = data.osbId ?? "";
  const before = data.applied;
  // Nothing else changes what is applied as long as this operation is open: sent again, it is the same.
  const parameters = input.op === "refresh" ? (before?.parameters ?? null) : text.parameters;
  const request: UpdateRequest = {
    service_id: data.offering.id,
    ...(plan !== null && { plan_id: plan.id }),
    ...contextOf(input.context),
    ...(before !== null && {
      previous_values: {
        plan_id: before.plan.id,
        ...(before.maintenance !== null && { maintenance_info: { version: before.maintenance } }),
      },
    }),
    ...(maintenance !== null && { maintenance_info: { version: maintenance } }),
  };
  const sent = parameters === null ? {} : { parametersText: parameters };
  return sendCall(ports, operation, {
    ...sending,
    call: "update",
    instance: osbId,
    body: `${JSON.stringify(request)}${parameters ?? ""}`,
    send: (client, options) => client.update(osbId, request, { ...options, ...sent }),
    whenLost: { ...budget, pause: ports.pauses.lost },
  });
}

async function relist({ brokers }: RunPorts, broker: string): Promise<null> {
  await brokers.relist(broker);
  return null;
}
