import type { UpdateRequest } from "@osbert/protocol";
import { textOf } from "../decisions/project.js";
import type { CallOutcome } from "../records/call-outcome.js";
import type { PlanRef, UpdateInput, UpdateResult } from "../records/instance-record.js";
import { awaitRunning } from "./await-running.js";
import { failure, refusal } from "./failure.js";
import type { InstanceOperation } from "./instance-operation.js";
import { refreshedMaintenance } from "./refreshed-maintenance.js";
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
  const text = textOf(input);
  const at = { osbId, plan: applied.plan };
  const first = await updateTo(ports, operation, at, text, "update");
  if (first.kind === "updated") return first.result;
  if (!first.needsRefresh) throw first.error;
  // Whoever names a version means that one: there is no other that would do. Whoever named none gets the one of now (E10-52).
  if (input.latest !== true) {
    await operation.step("catalog is read again", () => relist(ports, data.broker));
    throw first.error;
  }
  const maintenance = await refreshedMaintenance(ports, operation, applied.plan);
  if (maintenance === null || maintenance === text.maintenance) throw first.error;
  const again = await updateTo(ports, operation, at, { ...text, maintenance }, "update with the version of now");
  if (again.kind === "updated") return again.result;
  throw again.error;
}

type UpdateEnd =
  | { readonly kind: "updated"; readonly result: UpdateResult }
  | { readonly kind: "refused"; readonly error: Error; readonly needsRefresh: boolean };

/** `name`: of the first call, in the journal. All else that goes wrong is thrown. */
async function updateTo(
  ports: RunPorts,
  operation: UpdateOperation,
  { osbId, plan }: { readonly osbId: string; readonly plan: PlanRef },
  text: UpdateInput["text"],
  name: string,
): Promise<UpdateEnd> {
  let waitWhileBusy = false;
  for (let round = 1; ; round++) {
    const what = round === 1 ? name : `${name} ${round}`;
    const outcome = await update(ports, operation, text, { what, lostBefore: round > 1, waitWhileBusy });
    switch (outcome.kind) {
      case "done":
        return { kind: "updated", result: { text, dashboardUrl: outcome.dashboardUrl } };
      case "running": {
        // A broker that knows nothing of the update for ten minutes has lost it, as with a create (E10-16).
        const of = { what, change: "create", instance: osbId, plan: plan.id } as const;
        const end = await awaitRunning(ports, operation, outcome, of);
        const isFinal = end.kind === "failed" && (end.class === "operation timed out" || end.repeatable === false);
        // What has ended may have been something else: the answer to one more PATCH tells.
        if (outcome.isAssumed === true && !isFinal && round < mostRounds) {
          waitWhileBusy = true;
          break;
        }
        if (end.kind === "succeeded") return { kind: "updated", result: { text, dashboardUrl: outcome.dashboardUrl } };
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
        const uncertain = outcome.afterLost || round > 1 || outcome.class === "malformed 200";
        const needsRefresh = outcome.class === "needs refresh";
        return { kind: "refused", error: refusal(outcome, { uncertain }), needsRefresh };
      }
      case "lost":
        throw refusal(outcome, { uncertain: true });
    }
  }
}

function update(
  ports: RunPorts,
  operation: UpdateOperation,
  { plan, maintenance, ...text }: UpdateInput["text"],
  sending: { readonly what: string; readonly lostBefore: boolean; readonly waitWhileBusy: boolean },
): Promise<CallOutcome> {
  const { data, input } = operation;
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
