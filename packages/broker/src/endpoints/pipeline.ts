import type { TypedResult } from "@osbert/journal";
import type { Decision } from "../decisions/decision.js";
import { type InstanceResource, type InstanceShape, instanceResource } from "../records/instance-resource.js";
import type { Verb } from "../service/verb.js";
import { withinRule } from "./answer-rule.js";
import { awaitEnd } from "./await-end.js";
import { askBeforeHook } from "./before-hook.js";
import { attributionOf } from "./caller.js";
import { createFailure } from "./create-failure.js";
import type { EndpointPorts } from "./endpoint.js";
import { operationFailure } from "./operation-failure.js";
import type { PipelineRequest } from "./pipeline-request.js";

/*
 * The way of every request that changes something. The file of an endpoint has the steps that are its own and runs the others here:
 *
 *   read      the body and the query; what is not as it must be is a 400           fields.ts
 *   rule      whether the platform may be answered before the end                  answer-rule.ts
 *   prepare   what the author can say before the work: the first answer has it     ../operations/check-instance.ts
 *   decide    after the author's hook, a pure function of what is stored and what
 *             is asked; with what it changes, one commit of the journal            here, before-hook.ts, ../decisions
 *   await     the end, for as long as the rule says                                here, await-end.ts
 *   tell      the status and the body                                              answer.ts
 *
 * What is accepted is durable before anything is told (J1). A process that is killed before the commit has done nothing; after it, the
 * operation goes on without the request, and the platform's repeat is told so.
 */

/** What came of a request that was not refused. `resource` is what was stored before it. */
export type PipelineResult<Name extends Verb> = { readonly resource: InstanceResource | undefined } & (
  | { readonly kind: "done already" | "gone" }
  | { readonly kind: "in progress"; readonly operation: string }
  | {
      readonly kind: "succeeded";
      /** By this request, not by an earlier one like it. */
      readonly began: boolean;
      readonly result: TypedResult<InstanceShape, Name>;
    }
);

export async function runPipeline<Name extends Verb>(
  ports: EndpointPorts,
  request: PipelineRequest<Name>,
): Promise<PipelineResult<Name>> {
  const { verb, key, parts, asked, rule, likelyNew = false, serviceId, catalog } = request;
  const service = catalog.services.get(serviceId)?.service;
  if (service?.hooks?.before !== undefined) await askBeforeHook(ports, request, service);
  const decide = instanceResource.decide<Decided>((resource, now) => {
    const decision = withinRule(request.decide(resource, now), rule, ports, serviceId);
    const result = { decision, resource };
    return decision.kind === "accepted" ? { result, change: decision.change } : { result };
  });
  const { result, accepted } = await ports.journal.transact(key, decide, {
    by: attributionOf(asked.caller),
    parts,
    likelyNew,
  });
  const { decision, resource } = result;
  if (decision.kind === "refused") throw decision.error;
  if (decision.kind === "done already" || decision.kind === "gone") return { kind: decision.kind, resource };
  const began = decision.kind === "accepted";
  const operation = decision.kind === "repeated" ? decision.operation : (accepted[0]?.id ?? "");
  const end = rule.mayGoOn && rule.waitMs === 0 ? undefined : await awaitEnd(ports, request, operation, began);
  if (end === undefined) return { kind: "in progress", operation, resource };
  const outcome = instanceResource.outcome(verb, end);
  if (outcome.kind === "succeeded") return { kind: "succeeded", result: outcome.result, began, resource };
  const failure = operationFailure(verb, outcome);
  throw request.undo === undefined ? failure : await createFailure(ports, request, failure);
}

/** What was decided, with what the answer needs of the record. */
interface Decided {
  readonly decision: Decision;
  readonly resource: InstanceResource | undefined;
}
