import type { BrokerCatalog } from "../catalog/catalog.js";
import type { Decision } from "../decisions/decision.js";
import type { InstanceRecord } from "../records/instance-record.js";
import type { InstanceResource } from "../records/instance-resource.js";
import type { HookRequest } from "../service/service.js";
import type { Verb } from "../service/verb.js";
import type { AnswerRule } from "./answer-rule.js";
import type { VerbRequest } from "./endpoint.js";

/** A request that was read, and for which there is a rule. */
export interface PipelineRequest<Name extends Verb = Verb> {
  readonly verb: Name;
  readonly asked: VerbRequest;
  /** Of the instance's resource. */
  readonly key: string;
  readonly serviceId: string;
  /** What the request was held against: the hook of the service in it is asked. */
  readonly catalog: BrokerCatalog;
  /** The parts of the resource that the decision looks at. */
  readonly parts: readonly string[];
  /** The resource most likely does not exist yet: saves reading it first. */
  readonly likelyNew?: true;
  readonly rule: AnswerRule;
  readonly decide: (resource: InstanceResource | undefined, now: number) => Decision;
  /** What the author's hook is shown of it. */
  readonly about: AboutRequest;
  /** How a create is undone that outlived its time; what else has, is only cancelled. */
  readonly undo?: (resource: InstanceResource | undefined) => Decision;
}

/** What a hook is shown that only the endpoint knows. Only a provision is asked without a record. */
export type AboutRequest = (
  record: InstanceRecord,
  resource: InstanceResource,
) => Omit<HookRequest, "verb" | "service" | "identity" | "requestId">;
