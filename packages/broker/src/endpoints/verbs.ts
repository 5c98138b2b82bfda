import type { Decide, Journal, Outcome, Resource } from "@osbert/journal";
import { BrokerError, type JsonObject, type LastOperationResponse } from "@osbert/protocol";
import { type Answer, answer } from "../answers/answer.js";
import { failureOf } from "../answers/failure.js";
import { attributionOf, type Caller } from "../caller.js";
import type { BrokerCatalog, OfferedPlan } from "../catalog/catalog.js";
import { decideBind } from "../decisions/bind.js";
import { deadlineMsOf, defaultDeadlineMs } from "../decisions/deadline.js";
import { refused, type Verdict } from "../decisions/decision.js";
import { decideDeprovision } from "../decisions/deprovision.js";
import { decideProvision } from "../decisions/provision.js";
import type { BindingResult, InstanceResult } from "../decisions/settle.js";
import { sizeProblem } from "../decisions/size-problem.js";
import { decideUnbind } from "../decisions/unbind.js";
import { decideUpdate, maintenanceSentence } from "../decisions/update.js";
import { checkInstance } from "../operations/check-instance.js";
import { bindingPart, bindingRecord } from "../records/binding-record.js";
import { type EndedOperation, endedOperation } from "../records/ended-operation.js";
import { instanceKey } from "../records/instance-key.js";
import { type InstanceRecord, instanceData, instancePart, instanceRecord } from "../records/instance-record.js";
import { bindingOperation, doing, instanceOperation } from "../records/open-operations.js";
import {
  type ProvisionAsk,
  readAcceptsIncomplete,
  readBind,
  readDelete,
  readProvision,
  readUpdate,
} from "../requests/asks.js";
import { optionalText } from "../requests/fields.js";
import type { BindingInfo, HookRequest, InstanceInfo, Prepared } from "../service/service.js";
import { type AsyncRule, type AsyncRules, asyncRule, type Verb } from "../service/verb.js";
import { bindingFor } from "./binding-for.js";
import { ended, inProgress } from "./last-operation.js";

/** A request to one endpoint, authenticated and read as JSON; nothing in it is trusted. */
export interface VerbRequest {
  /** Who asks. */
  readonly caller: Caller;
  /** The id in the path. */
  readonly instance: string;
  /** The id in the path; "" where it is about an instance. */
  readonly binding: string;
  /** The parameters of the URL; the first of repeated ones. */
  readonly query: JsonObject;
  /** The JSON body; `{}` where there is none. */
  readonly body: JsonObject;
}

export interface VerbPorts {
  readonly journal: Journal;
  readonly catalog: () => BrokerCatalog;
  readonly async: AsyncRules;
  /** How long a platform that cannot wait for less is kept waiting. */
  readonly syncTimeoutMs: number;
  readonly cascade: boolean;
  readonly forceDeleteUnknown: { readonly instances: boolean; readonly bindings: boolean };
  /** Advice to platforms that poll, in seconds. */
  readonly retryAfterSeconds: number | null;
  /** Whether an operator has paused a service. */
  readonly isPaused: (serviceId: string) => boolean;
}

/** A request on its way to a decision. */
interface Asked {
  readonly key: string;
  readonly decide: (resource: Resource | undefined, now: number) => Verdict;
  readonly parts: readonly string[];
  readonly caller: Caller;
  readonly likelyNew?: boolean;
  readonly serviceId: string;
  /** What the author's hook is shown of it. Only a provision is asked without a record. */
  readonly hooked: (
    record: InstanceRecord,
    resource: Resource,
  ) => Omit<HookRequest, "service" | "identity" | "requestId">;
}

interface Begun {
  readonly decided: Decided;
  readonly operation: string;
  /** By this request, not by an earlier one like it. */
  readonly began: boolean;
}

interface Waiting {
  readonly verb: Verb;
  readonly key: string;
  readonly operation: string;
  readonly began: boolean;
  readonly rule: AsyncRule;
  readonly acceptsIncomplete: boolean;
  readonly caller: Caller;
  readonly binding?: string;
}

/** What a verb's decision leads to, with what the answer needs of the record. */
interface Decided {
  readonly verdict: Verdict;
  readonly resource: Resource | undefined;
}

/**
 * The endpoints: read the request, let a pure function decide on it inside a transaction of the journal, and say what came of it.
 * What was answered with 201 or 202 was durable before.
 */
export class Verbs {
  readonly #ports: VerbPorts;

  constructor(ports: VerbPorts) {
    this.#ports = ports;
  }

  async provision({ caller, instance, query, body }: VerbRequest): Promise<Answer> {
    const ask = readProvision(body);
    const acceptsIncomplete = readAcceptsIncomplete(query);
    const offered = this.#ports.catalog().services.get(ask.serviceId)?.plans.get(ask.planId);
    const rule = this.#rule("provision", offered, ask.serviceId);
    const problem = this.#provisionProblem(ask, offered);
    const info = {
      id: instance,
      platform: caller.platform,
      serviceId: ask.serviceId,
      planId: ask.planId,
      organizationGuid: ask.organizationGuid,
      spaceGuid: ask.spaceGuid,
      context: ask.context,
    };
    const plan = offered?.name ?? "";
    const { identity } = caller;
    const input = { plan, parameters: ask.parameters, instance: info, identity, partial: undefined };
    const prepared = problem === null ? giveable("prepare", offered?.service.prepare?.(input)) : {};
    const awaited = !isAsync(rule, acceptsIncomplete);
    const deadlineMs = this.#deadlineMs("provision", ask.serviceId);
    const matter = { ask, offered, problem, prepared, identity, awaited, deadlineMs };
    const decide = (resource: Resource | undefined) =>
      this.#onlyIfAsyncFits(decideProvision(resource, matter), rule, acceptsIncomplete, ask.serviceId);
    const key = instanceKey(caller.platform, instance);
    const { parameters } = ask;
    const hooked = () => ({ verb: "provision", plan, instance: info, binding: null, parameters }) as const;
    const asked = { key, decide, parts: [instancePart], caller, likelyNew: true, serviceId: ask.serviceId, hooked };
    const { decided, operation, began } = await this.#decide(asked);
    const { verdict, resource } = decided;
    const record = resource === undefined ? undefined : instanceRecord(resource);
    const known = instanceBody(
      record?.dashboardUrl ?? prepared.dashboardUrl ?? null,
      record?.metadata ?? prepared.metadata ?? null,
    );
    if (verdict.kind === "done already") return answer("exists already", known);
    if (verdict.kind === "gone") throw new BrokerError("gone", "the instance is gone");
    const outcome = await this.#await({ verb: "provision", key, operation, began, rule, acceptsIncomplete, caller });
    if (outcome === undefined) return this.#accepted({ ...known, operation });
    const { dashboardUrl, metadata } = (await this.#created("provision", outcome, key)) as unknown as InstanceResult;
    return answer(madeBy(began), { ...known, ...instanceBody(dashboardUrl, metadata) });
  }

  async update({ caller, instance, query, body }: VerbRequest): Promise<Answer> {
    const ask = readUpdate(body);
    const acceptsIncomplete = readAcceptsIncomplete(query);
    const catalog = this.#ports.catalog();
    const key = instanceKey(caller.platform, instance);
    const before = await this.#ports.journal.read(key, [instancePart]);
    const record = before === undefined ? undefined : instanceRecord(before);
    const planId = ask.planId ?? record?.planId ?? "";
    const offered = catalog.services.get(ask.serviceId)?.plans.get(planId);
    const rule = this.#rule("update", offered, ask.serviceId);
    const parameters = ask.parameters ?? {};
    const { identity } = caller;
    const awaited = !isAsync(rule, acceptsIncomplete);
    const deadlineMs = this.#deadlineMs("update", ask.serviceId);
    const unprepared = { ask, catalog, prepared: {}, awaited, identity, deadlineMs };
    let prepared: Prepared = {};
    // The author is not asked about what would be refused: its parameters may be anything.
    if (
      record !== undefined &&
      offered?.service.prepareUpdate !== undefined &&
      begins(decideUpdate(before, unprepared))
    ) {
      const info = infoOf(instance, caller, record);
      const previous = { plan: planName(catalog, record), parameters: record.parameters };
      const input = { plan: offered.name, parameters, instance: info, identity, state: record.state ?? {}, previous };
      prepared = giveable("prepareUpdate", offered.service.prepareUpdate({ ...input, maintenance: ask.maintenance }));
    }
    const matter = { ...unprepared, prepared };
    const decide = (resource: Resource | undefined) =>
      this.#onlyIfAsyncFits(decideUpdate(resource, matter), rule, acceptsIncomplete, ask.serviceId);
    const hooked = (of: InstanceRecord) => {
      const plan = offered?.name ?? planId;
      return { verb: "update", plan, instance: infoOf(instance, caller, of), binding: null, parameters } as const;
    };
    const { serviceId } = ask;
    const { decided, operation, began } = await this.#decide({
      key,
      decide,
      parts: [instancePart],
      caller,
      serviceId,
      hooked,
    });
    if (decided.verdict.kind === "done already") return answer("updated", {});
    const known = instanceBody(prepared.dashboardUrl ?? null, prepared.metadata ?? null);
    const outcome = await this.#await({ verb: "update", key, operation, began, rule, acceptsIncomplete, caller });
    if (outcome === undefined) return this.#accepted({ ...known, operation });
    const { dashboardUrl, metadata } = succeeded("update", outcome) as unknown as InstanceResult;
    return answer("updated", { ...known, ...instanceBody(dashboardUrl, metadata) });
  }

  async deprovision({ caller, instance, query }: VerbRequest): Promise<Answer> {
    const ask = readDelete(query);
    const acceptsIncomplete = readAcceptsIncomplete(query);
    const offered = this.#ports.catalog().services.get(ask.serviceId)?.plans.get(ask.planId);
    const rule = this.#rule("deprovision", offered, ask.serviceId);
    const { cascade, forceDeleteUnknown, catalog } = this.#ports;
    const { serviceId } = ask;
    const { identity } = caller;
    const matter = { ask, cascade, identity, deadlineMs: this.#deadlineMs("deprovision", serviceId) };
    const decide = (resource: Resource | undefined) =>
      this.#onlyIfAsyncFits(decideDeprovision(resource, matter), rule, acceptsIncomplete, serviceId);
    const key = instanceKey(caller.platform, instance);
    const hooked = (of: InstanceRecord) => {
      const { parameters } = of;
      const plan = planName(catalog(), of);
      return { verb: "deprovision", plan, instance: infoOf(instance, caller, of), binding: null, parameters } as const;
    };
    const { decided, operation, began } = await this.#decide({
      key,
      decide,
      parts: [instancePart],
      caller,
      serviceId,
      hooked,
    });
    if (decided.verdict.kind === "gone") return gone("instance", forceDeleteUnknown.instances);
    const outcome = await this.#await({ verb: "deprovision", key, operation, began, rule, acceptsIncomplete, caller });
    if (outcome === undefined) return this.#accepted({ operation });
    succeeded("deprovision", outcome);
    return answer("deleted", {});
  }

  async bind({ caller, instance, binding, query, body }: VerbRequest): Promise<Answer> {
    const ask = readBind(body);
    const acceptsIncomplete = readAcceptsIncomplete(query);
    const catalog = this.#ports.catalog();
    const key = instanceKey(caller.platform, instance);
    const parts = [
      instancePart,
      bindingPart(binding),
      ...(ask.predecessor === null ? [] : [bindingPart(ask.predecessor)]),
    ];
    const before = await this.#ports.journal.read(key, [instancePart]);
    const record = before === undefined ? undefined : instanceRecord(before);
    const serviceId = ask.serviceId ?? record?.serviceId ?? "";
    const offered = catalog.services.get(serviceId)?.plans.get(ask.planId ?? record?.planId ?? "");
    const rule = this.#rule("bind", offered, serviceId);
    const deadlineMs = this.#deadlineMs("bind", serviceId);
    const matter = { binding, ask, catalog, identity: caller.identity, deadlineMs };
    const decide = (resource: Resource | undefined, now: number) =>
      this.#onlyIfAsyncFits(decideBind(resource, matter, now), rule, acceptsIncomplete, serviceId);
    const { appGuid, bindResource, context, parameters } = ask;
    const hooked = (of: InstanceRecord) => {
      const info: BindingInfo = { id: binding, appGuid, bindResource, context };
      const plan = planName(catalog, of);
      return { verb: "bind", plan, instance: infoOf(instance, caller, of), binding: info, parameters } as const;
    };
    const { decided, operation, began } = await this.#decide({ key, decide, parts, caller, serviceId, hooked });
    if (decided.verdict.kind === "done already") {
      const existing = bindingRecord(decided.resource, binding)?.binding ?? {};
      return answer("exists already", bindingFor(caller.apiVersion, existing));
    }
    const outcome = await this.#await({
      verb: "bind",
      key,
      operation,
      began,
      rule,
      acceptsIncomplete,
      caller,
      binding,
    });
    if (outcome === undefined) return this.#accepted({ operation });
    const made = (await this.#created("bind", outcome, key, binding)) as unknown as BindingResult;
    return answer(madeBy(began), bindingFor(caller.apiVersion, made.binding));
  }

  async unbind({ caller, instance, binding, query }: VerbRequest): Promise<Answer> {
    const ask = readDelete(query);
    const acceptsIncomplete = readAcceptsIncomplete(query);
    const offered = this.#ports.catalog().services.get(ask.serviceId)?.plans.get(ask.planId);
    const rule = this.#rule("unbind", offered, ask.serviceId);
    const key = instanceKey(caller.platform, instance);
    const { serviceId } = ask;
    const { identity } = caller;
    const matter = { binding, ask, identity, deadlineMs: this.#deadlineMs("unbind", serviceId) };
    const decide = (resource: Resource | undefined) =>
      this.#onlyIfAsyncFits(decideUnbind(resource, matter), rule, acceptsIncomplete, serviceId);
    const hooked = (of: InstanceRecord, resource: Resource) => {
      const {
        parameters = {},
        appGuid = null,
        bindResource = {},
        context = {},
      } = bindingRecord(resource, binding) ?? {};
      const info: BindingInfo = { id: binding, appGuid, bindResource, context };
      const plan = planName(this.#ports.catalog(), of);
      return { verb: "unbind", plan, instance: infoOf(instance, caller, of), binding: info, parameters } as const;
    };
    const parts = [instancePart, bindingPart(binding)];
    const { decided, operation, began } = await this.#decide({ key, decide, parts, caller, serviceId, hooked });
    if (decided.verdict.kind === "gone") return gone("binding", this.#ports.forceDeleteUnknown.bindings);
    const outcome = await this.#await({
      verb: "unbind",
      key,
      operation,
      began,
      rule,
      acceptsIncomplete,
      caller,
      binding,
    });
    if (outcome === undefined) return this.#accepted({ operation });
    succeeded("unbind", outcome);
    return answer("deleted", {});
  }

  async fetchInstance({ caller, instance }: VerbRequest): Promise<Answer> {
    const resource = await this.#ports.journal.read(instanceKey(caller.platform, instance), [instancePart]);
    const data = instanceData(resource);
    const record = resource === undefined ? undefined : instanceRecord(resource);
    if (
      data === undefined ||
      record === undefined ||
      data.phase === "gone" ||
      data.phase === "creating" ||
      data.phase === "failed"
    ) {
      throw new BrokerError("not-found", "there is no such instance");
    }
    if (data.phase === "deleting") throw new BrokerError("concurrency", `the instance ${doing("deprovision")}`);
    const offering = this.#ports.catalog().services.get(record.serviceId)?.offering;
    if (offering?.instances_retrievable === false)
      throw new BrokerError("not-found", "instances of this service cannot be fetched");
    return answer("fetched", {
      service_id: record.serviceId,
      plan_id: record.planId,
      ...instanceBody(record.dashboardTold, record.metadata),
      parameters: record.parameters,
      ...(record.maintenanceVersion !== null && { maintenance_info: { version: record.maintenanceVersion } }),
    });
  }

  async fetchBinding({ caller, instance, binding }: VerbRequest): Promise<Answer> {
    const resource = await this.#ports.journal.read(instanceKey(caller.platform, instance), [bindingPart(binding)]);
    const data = instanceData(resource);
    const record = bindingRecord(resource, binding);
    if (data === undefined || record === undefined || record.phase === "creating" || record.phase === "failed") {
      throw new BrokerError("not-found", "there is no such binding");
    }
    if (record.phase === "deleting") throw new BrokerError("concurrency", `the binding ${doing("unbind")}`);
    const offering = this.#ports.catalog().services.get(data.serviceId)?.offering;
    if (offering?.bindings_retrievable === false)
      throw new BrokerError("not-found", "bindings of this service cannot be fetched");
    return answer("fetched", { ...bindingFor(caller.apiVersion, record.binding ?? {}), parameters: record.parameters });
  }

  async instanceLastOperation({ caller, instance, query }: VerbRequest): Promise<Answer> {
    const operation = optionalText(query, "operation");
    const key = instanceKey(caller.platform, instance);
    const resource = await this.#ports.journal.read(key);
    const data = instanceData(resource);
    if (resource === undefined || data === undefined) throw new BrokerError("not-found", "there is no such instance");
    const open =
      operation === null
        ? instanceOperation(resource)
        : resource.open.find(({ id, part }) => id === operation && part === null);
    if (open !== undefined) return this.#polled(inProgress(open, this.#waitsPaused(resource)));
    // B6: of a deleted instance, only as long as the operation itself is kept.
    const isKept = data.phase !== "gone" || resource.last !== null;
    if (isKept && data.last !== null && (operation === null || data.last.id === operation))
      return this.#polled(ended(data.last));
    const earlier = operation === null ? undefined : await this.#endedEarlier(key, operation, null);
    if (earlier !== undefined) return this.#polled(earlier);
    // LOP-07: a 410 says that a delete has succeeded; a provision that was refused has left no instance.
    if (data.phase === "gone" && data.last?.verb === "deprovision")
      throw new BrokerError("gone", "the instance is gone");
    if (data.phase === "gone") throw new BrokerError("not-found", "there is no such instance");
    throw new BrokerError("bad-request", "operation is not an operation on this instance");
  }

  async bindingLastOperation({ caller, instance, binding, query }: VerbRequest): Promise<Answer> {
    const operation = optionalText(query, "operation");
    const key = instanceKey(caller.platform, instance);
    const part = bindingPart(binding);
    const resource = await this.#ports.journal.read(key, [part]);
    const data = instanceData(resource);
    const record = bindingRecord(resource, binding);
    const open =
      operation === null
        ? bindingOperation(resource, part)
        : resource?.open.find((candidate) => candidate.id === operation && candidate.part === part);
    if (open !== undefined) return this.#polled(inProgress(open, this.#waitsPaused(resource)));
    // Its bind or unbind may wait so far back that it is not in sight; what ended before is not what is asked about.
    const isQueued = operation === null && (resource?.queued ?? 0) > 0;
    if (isQueued && record?.phase === "creating") return this.#polled(inProgress({ kind: "bind", description: null }));
    if (isQueued && record?.phase === "deleting")
      return this.#polled(inProgress({ kind: "unbind", description: null }));
    const removed = data?.removed.findLast(([id]) => id === binding)?.[1];
    const last = record?.last ?? removed;
    if (last != null && (operation === null || last.id === operation)) return this.#polled(ended(last));
    const earlier = operation === null ? undefined : await this.#endedEarlier(key, operation, part);
    if (earlier !== undefined) return this.#polled(earlier);
    if (removed?.verb === "unbind") throw new BrokerError("gone", "the binding is gone");
    if (record === undefined) throw new BrokerError("not-found", "there is no such binding");
    throw new BrokerError("bad-request", "operation is not an operation on this binding");
  }

  // --- what they share ---

  #rule(verb: Verb, offered: OfferedPlan | undefined, serviceId: string): AsyncRule {
    const service = this.#ports.catalog().services.get(serviceId);
    const rule = asyncRule(verb, offered?.definition.async, service?.service.async, this.#ports.async);
    // BIND-38: what cannot be fetched has to be in the answer.
    const mustTell = verb === "bind" && service?.offering.bindings_retrievable === false;
    return mustTell && rule.mode === "prefer" ? { ...rule, mode: "never" } : rule;
  }

  #deadlineMs(verb: Verb, serviceId: string): number {
    return deadlineMsOf(this.#ports.catalog(), verb, serviceId);
  }

  /** Why no new instance can be made of this request, from the catalog's point of view. */
  #provisionProblem(ask: ProvisionAsk, offered: OfferedPlan | undefined): Verdict | null {
    const service = this.#ports.catalog().services.get(ask.serviceId);
    if (service === undefined) return refused("bad-request", "service_id is not a service of this broker's catalog");
    if (offered === undefined) return refused("bad-request", "plan_id is not a plan of this service");
    if (ask.maintenance !== null && ask.maintenance.version !== offered.plan.maintenance_info?.version) {
      return refused("maintenance-info-conflict", maintenanceSentence(offered));
    }
    const invalid = offered.validate.provision(ask.parameters);
    if (invalid !== null) return refused("bad-request", invalid);
    return sizeProblem({ parameters: ask.parameters, context: ask.context });
  }

  /** B4: what is only done asynchronously is refused to a platform that does not accept that; nothing has begun then. */
  #onlyIfAsyncFits(verdict: Verdict, rule: AsyncRule, acceptsIncomplete: boolean, serviceId: string): Verdict {
    // Nobody can say how long a platform would be kept waiting.
    if (verdict.kind === "accepted" && !isAsync(rule, acceptsIncomplete) && this.#ports.isPaused(serviceId))
      return refused("unprocessable", "the service is paused by its operator; ask again when that is over");
    if (!begins(verdict) || rule.mode !== "require" || acceptsIncomplete) return verdict;
    return refused("async-required", "this is only done asynchronously: ask with accepts_incomplete=true");
  }

  async #decide(asked: Asked): Promise<Begun> {
    const { key, decide, parts, caller, likelyNew = false } = asked;
    await this.#before(asked);
    const decision: Decide<Decided> = (resource, now) => {
      const verdict = decide(resource, now);
      const result = { verdict, resource };
      return verdict.kind === "accepted" ? { result, change: verdict.change, cancel: verdict.cancel } : { result };
    };
    const { result, accepted } = await this.#ports.journal.transact(key, decision, {
      by: attributionOf(caller),
      parts,
      likelyNew,
    });
    if (result.verdict.kind === "refused") throw result.verdict.error;
    const operation = result.verdict.kind === "repeated" ? result.verdict.operation : (accepted[0]?.id ?? "");
    return { decided: result, operation, began: result.verdict.kind === "accepted" };
  }

  /** The author may refuse what would begin now. What was accepted before, or cannot be done anyway, is not the hook's business. */
  async #before({ key, decide, parts, caller, serviceId, hooked }: Asked): Promise<void> {
    const service = this.#ports.catalog().services.get(serviceId)?.service;
    if (service?.hooks?.before === undefined) return;
    const { journal } = this.#ports;
    const resource = await journal.read(key, parts);
    if (decide(resource, journal.now()).kind !== "accepted") return;
    const record = resource === undefined ? undefined : instanceRecord(resource);
    const { identity, requestId } = caller;
    const request = hooked(record as InstanceRecord, resource as Resource);
    try {
      await service.hooks.before({ ...request, service: service.name, identity, requestId });
    } catch (error) {
      throw error instanceof BrokerError ? withoutFlags(error, request.verb) : error;
    }
  }

  /** Waits as long as the rules say. `undefined`: it goes on, and the platform may be told so. */
  async #await(waiting: Waiting): Promise<Outcome | undefined> {
    const { verb, key, operation, began, rule, acceptsIncomplete } = waiting;
    const { journal, syncTimeoutMs } = this.#ports;
    const mayGoOn = isAsync(rule, acceptsIncomplete);
    const withinMs = mayGoOn ? (rule.answerWithinMs ?? 0) : syncTimeoutMs;
    const outcome = withinMs === 0 ? undefined : await journal.ended(key, operation, { withinMs });
    if (outcome !== undefined || mayGoOn) return outcome;
    const seconds = Math.round(syncTimeoutMs / 1_000);
    const late = `${verb} has not ended within ${seconds} seconds`;
    // An earlier request was promised that it goes on; it is not for a repeat to end it.
    if (!began) throw new BrokerError("concurrency", `${late} and goes on; ask with accepts_incomplete=true`);
    const ended = await this.#undo(waiting);
    if (ended !== undefined) return ended;
    throw new BrokerError("timed-out", `${late} and was cancelled; ask with accepts_incomplete=true`);
  }

  /**
   * A request that outlived its time is not left running unseen: what it began is cancelled, and a create is undone. Answers the
   * outcome of what has ended in the last moment.
   */
  async #undo({ verb, key, operation, caller, binding }: Waiting): Promise<Outcome | undefined> {
    const { journal } = this.#ports;
    const reason = "the platform's request has timed out";
    const by = { ...attributionOf(caller), cause: reason };
    const matter = { ask: null, identity: caller.identity, deadlineMs: defaultDeadlineMs };
    const undo = async (decide: (resource: Resource | undefined) => Verdict, parts: readonly string[]) => {
      const decision: Decide<boolean> = (resource) => {
        const isOpen = resource?.open.some(({ id }) => id === operation);
        const verdict = isOpen ? decide(resource) : undefined;
        return verdict?.kind === "accepted"
          ? { result: true, change: verdict.change, cancel: verdict.cancel }
          : { result: false };
      };
      return (await journal.transact(key, decision, { by, parts })).result;
    };
    let undone = false;
    if (verb === "provision")
      undone = await undo((resource) => decideDeprovision(resource, { ...matter, cascade: true }), [instancePart]);
    else if (verb === "bind" && binding !== undefined) {
      const parts = [instancePart, bindingPart(binding)];
      undone = await undo((resource) => decideUnbind(resource, { ...matter, binding }), parts);
    }
    // What has not even begun, because many others are before it, has nothing to undo.
    undone ||= await journal.cancel(key, operation, reason, by);
    return undone ? undefined : ((await journal.operation(key, operation))?.outcome ?? undefined);
  }

  /**
   * What a create that was waited for has made. ERR-07: a 4xx says that nothing is there, and platforms clean up after a 5xx alone; so
   * one that the author refuses after steps of it were recorded, which a delete has to undo, is a 5xx, in the author's words.
   */
  async #created(verb: "provision" | "bind", outcome: Outcome, key: string, binding = ""): Promise<object | null> {
    if (outcome.kind === "succeeded") return outcome.result as object | null;
    const error = failureOf(verb, outcome);
    if (error.status >= 500) throw error;
    const resource = await this.#ports.journal.read(key, [bindingPart(binding)]);
    const left = verb === "provision" ? instanceData(resource) : bindingRecord(resource, binding);
    throw left?.phase === "failed" ? new BrokerError("operation-failed", error.message, { cause: error }) : error;
  }

  async #endedEarlier(key: string, operation: string, part: string | null): Promise<LastOperationResponse | undefined> {
    const status = await this.#ports.journal.operation(key, operation);
    if (status === undefined || status.part !== part) return undefined;
    if (status.open !== null) return inProgress(status.open);
    const last: EndedOperation | null =
      status.outcome && endedOperation(operation, status.kind as Verb, status.outcome);
    return last === null ? undefined : ended(last);
  }

  /** Accepted, and begun by nobody as long as the operator says so. */
  #waitsPaused(resource: Resource | undefined): boolean {
    const data = instanceData(resource);
    return data !== undefined && resource?.running === false && this.#ports.isPaused(data.serviceId);
  }

  #accepted(body: object): Answer {
    return answer("in progress", body, this.#advice());
  }

  #polled(body: LastOperationResponse): Answer {
    return answer("fetched", body, body.state === "in progress" ? this.#advice() : undefined);
  }

  #advice(): Readonly<Record<string, string>> | undefined {
    const { retryAfterSeconds } = this.#ports;
    return retryAfterSeconds === null ? undefined : { "retry-after": String(retryAfterSeconds) };
  }
}

/** What an author's function has said before the work, if it may be told; else it is the broker's own fault. */
function giveable(name: string, prepared: Prepared | undefined): Prepared {
  const malformed = checkInstance(prepared);
  if (malformed === null) return prepared ?? {};
  // It may be a promise, which nobody else waits for.
  Promise.resolve(prepared).catch(() => undefined);
  throw new Error(`${name} returned what cannot be given out: ${malformed}`);
}

/** Whether there is an operation to wait for, new or not. */
function begins({ kind }: Verdict): boolean {
  return kind === "accepted" || kind === "repeated";
}

/** Whether the platform may be answered before the end. */
function isAsync({ mode }: AsyncRule, acceptsIncomplete: boolean): boolean {
  return acceptsIncomplete && mode !== "never";
}

/** Of identical requests at once, one has made it; to the others, which waited for the same operation, it was there. */
function madeBy(began: boolean): "created" | "exists already" {
  return began ? "created" : "exists already";
}

/** The instance as functions and hooks see it. */
function infoOf(instance: string, { platform }: Caller, record: InstanceRecord): InstanceInfo {
  const { serviceId, planId, organizationGuid, spaceGuid, context } = record;
  return { id: instance, platform, serviceId, planId, organizationGuid, spaceGuid, context };
}

function succeeded(verb: Verb, outcome: Outcome): object | null {
  if (outcome.kind !== "succeeded") throw failureOf(verb, outcome);
  return outcome.result as object | null;
}

/** ERR-04, ERR-05: only where they may stand. */
function withoutFlags(error: BrokerError, verb: Verb): BrokerError {
  if (verb === "update" || (verb === "deprovision" && error.updateRepeatable === undefined)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  return new BrokerError(code, message, {
    cause,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(verb === "deprovision" && error.instanceUsable !== undefined && { instanceUsable: error.instanceUsable }),
  });
}

function gone(what: "instance" | "binding", force: boolean): Answer {
  if (force) return answer("deleted", {});
  throw new BrokerError("gone", `there is no such ${what}`);
}

function planName(catalog: BrokerCatalog, { serviceId, planId }: InstanceRecord): string {
  return catalog.services.get(serviceId)?.plans.get(planId)?.name ?? planId;
}

function instanceBody(dashboardUrl: string | null, metadata: object | null): object {
  return { ...(dashboardUrl !== null && { dashboard_url: dashboardUrl }), ...(metadata !== null && { metadata }) };
}
