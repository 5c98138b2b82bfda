import type { Outcome } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import { concurrencyError } from "../decisions/concurrency.js";
import { instanceResource } from "../records/instance-resource.js";
import { attributionOf } from "./caller.js";
import type { EndpointPorts } from "./endpoint.js";
import type { PipelineRequest } from "./pipeline-request.js";

/**
 * Waits as long as the rule says. `undefined`: it goes on, and the platform may be told so. `began`: by this request, not by an earlier
 * one like it.
 */
export async function awaitEnd(
  ports: EndpointPorts,
  request: PipelineRequest,
  operation: string,
  began: boolean,
): Promise<Outcome | undefined> {
  const { verb, key, rule } = request;
  const outcome = rule.waitMs === 0 ? undefined : await ports.journal.ended(key, operation, { withinMs: rule.waitMs });
  if (outcome !== undefined || rule.mayGoOn) return outcome;
  const late = `${verb} has not ended within ${Math.round(rule.waitMs / 1_000)} seconds`;
  // An earlier request was promised that it goes on; it is not for a repeat to end it.
  if (!began) throw concurrencyError.goesOn(late);
  const ended = await cancelUnseen(ports, request, operation);
  if (ended !== undefined) return ended;
  throw new BrokerError("timed-out", `${late} and was cancelled; ask with accepts_incomplete=true`);
}

/**
 * A request that outlived its time is not left running unseen: what it began is cancelled, and a create is undone. Answers the
 * outcome of what has ended in the last moment.
 */
async function cancelUnseen(
  { journal }: EndpointPorts,
  { key, parts, asked, undo }: PipelineRequest,
  operation: string,
): Promise<Outcome | undefined> {
  const reason = "the platform's request has timed out";
  const by = { ...attributionOf(asked.caller), cause: reason };
  const undoIfOpen = instanceResource.decide<boolean>((resource) => {
    const isOpen = resource?.open.some(({ id }) => id === operation);
    const decision = isOpen ? undo?.(resource) : undefined;
    return decision?.kind === "accepted" ? { result: true, change: decision.change } : { result: false };
  });
  const undone = undo !== undefined && (await journal.transact(key, undoIfOpen, { by, parts })).result;
  // What has not even begun, because many others are before it, has nothing to undo.
  if (undone || (await journal.cancel(key, operation, reason, by))) return undefined;
  return (await journal.operation(key, operation))?.outcome ?? undefined;
}
