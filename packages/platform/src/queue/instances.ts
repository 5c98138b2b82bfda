import { hash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Attribution, Journal, OpenOperation, Outcome, Page, TransactOptions } from "@osbert/journal";
import type { BrokerPort } from "../brokers/broker-port.js";
import { admitBind, type WantedBinding } from "../decisions/admit-bind.js";
import { admitCreate } from "../decisions/admit-create.js";
import { admitDelete } from "../decisions/admit-delete.js";
import { admitUnbind } from "../decisions/admit-unbind.js";
import { admitUpdate, type WantedUpdate } from "../decisions/admit-update.js";
import { partOfBinding } from "../decisions/binding-part.js";
import { type Control, checkLockEnd, control } from "../decisions/controls.js";
import {
  type Admission,
  type Admitting,
  type Desk,
  deskOf,
  type Inputs,
  type Offered,
  type Request,
} from "../decisions/desk.js";
import { readsInterrupted } from "../decisions/interrupted.js";
import { JsonTextError, parseJsonText } from "../decisions/json-text.js";
import { preflight } from "../decisions/preflight.js";
import { nothingNew } from "../decisions/project.js";
import type { InstanceChange, InstanceResource } from "../decisions/queue-state.js";
import { isSuccessorOf } from "../decisions/same-binding.js";
import { successorName } from "../decisions/schedule-rotation.js";
import { PlatformError } from "../errors.js";
import { findOwner } from "../operations/find-owner.js";
import type {
  Admitted,
  Asking,
  CreateBinding,
  CreateInstance,
  DeleteInstance,
  InstanceQuery,
  InstanceSummary,
  Instances,
  InstanceView,
  JournalLine,
  OfferedService,
  OperationView,
  UpdateInstance,
} from "../platform.js";
import { hasBrokerLabel } from "../records/instance-labels.js";
import {
  type AppliedState,
  type AskedBefore,
  type BindInput,
  type CreateInput,
  type DeleteInput,
  type InstanceLock,
  type InstancePolicy,
  type IntentName,
  instances,
  type UnbindInput,
  type UpdateInput,
} from "../records/instance-record.js";
import { type InstanceRef, instanceRef, keys } from "../records/keys.js";
import { isName, nameRule } from "../records/name.js";
import type { PreflightFinding } from "../records/preflight-report.js";
import type { Counted } from "../records/quota-record.js";
import { unlocks } from "../records/unlock-record.js";
import { isVisible } from "../records/visibility-record.js";
import { type FoundPlan, findPlan } from "./find-plan.js";
import { instanceSummary, instanceView, stateAfter } from "./instance-view.js";
import { journalLine } from "./journal-line.js";
import type { JournalQuotas, QuotaVerdict } from "./quotas.js";
import { resourceAfter, type Seen } from "./resource-after.js";

export interface InstancesPorts {
  readonly journal: Journal;
  readonly brokers: BrokerPort;
  /** What a user may mean by the id or name of an offering. */
  readonly offeringsCalled: (broker: string | undefined, idOrName: string) => readonly OfferedService[];
  readonly quotas: Pick<JournalQuotas, "reserve">;
  /** The word before originating identities, and in contexts. */
  readonly platformName: string;
  /** Ids at brokers: never one twice. */
  readonly newId: () => string;
}

/** What a request wants to see of its instance besides the queue. */
type Sees = Pick<TransactOptions, "parts" | "partsUnder" | "likelyNew">;

/** How often a decision is made anew because the queue has grown since its inputs were read. */
const mostTries = 10;
/** Open operations of which inputs are read: more than there can be. */
const mostInputs = 1_000;
const followEveryMs = 250;
const longestLinePage = 500;

/** Instances as operations on the journal: what is asked for is decided and kept in one commit. */
export class JournalInstances implements Instances {
  readonly #ports: InstancesPorts;
  readonly #journal: Journal;

  constructor(ports: InstancesPorts) {
    this.#ports = ports;
    this.#journal = ports.journal;
  }

  async create(ref: InstanceRef, wanted: CreateInstance, asking: Asking): Promise<Admitted> {
    return this.#create(ref, wanted, null, asking);
  }

  async adopt(
    ref: InstanceRef,
    wanted: CreateInstance & { readonly osbId: string },
    asking: Asking,
  ): Promise<Admitted> {
    if (!isOsbId(wanted.osbId)) throw new PlatformError("invalid", `the id of what is to be adopted ${osbIdRule}`);
    const { broker } = this.#found(ref, wanted);
    const key = keyOf(ref);
    const brokers = this.#ports.brokers.namesOf(broker);
    const owner = await findOwner(this.#journal, { brokers, osbId: wanted.osbId }, (other) => other !== key);
    // Not whose: it may be in another space. Whether it still is so when the adoption runs is looked at then.
    if (owner !== undefined) throw new PlatformError("exists", "another instance has that id at the broker");
    return this.#create(ref, wanted, wanted.osbId, asking);
  }

  async update(ref: InstanceRef, wanted: UpdateInstance, asking: Asking): Promise<Admitted> {
    checkParameters(wanted.parameters);
    const plan = wanted.plan === undefined ? null : (await this.#planOf(ref, wanted.plan)).plan;
    const text = { plan, parameters: wanted.parameters ?? null, maintenance: null };
    return this.#update(ref, { op: "update", text, after: wanted.after ?? [] }, asking, wanted);
  }

  async refresh(ref: InstanceRef, asking: Asking): Promise<Admitted> {
    return this.#update(ref, { op: "refresh", text: nothingNew, after: [] }, asking, {});
  }

  async upgrade(ref: InstanceRef, version: string | undefined, asking: Asking): Promise<Admitted> {
    const { broker, offering, desired } = await this.#mustRead(ref);
    const plan = desired === null ? undefined : this.#ports.brokers.plan(broker, offering.id, desired.plan.id);
    const maintenance = version ?? plan?.maintenance_info?.version;
    if (maintenance === undefined) throw new PlatformError("invalid", "the plan has no maintenance version");
    const text = { plan: null, parameters: null, maintenance };
    const latest = version === undefined;
    // Who asks again for the latest asks for the same, whichever that is by now.
    return this.#update(ref, { op: "upgrade", text, after: [], latest }, asking, latest ? { latest } : { version });
  }

  async delete(ref: InstanceRef, wanted: DeleteInstance, asking: Asking): Promise<Admitted> {
    const { mode = wanted.after === undefined ? "preempt" : "after", cascade = false, now = false } = wanted;
    if ((mode === "after") !== (wanted.after !== undefined))
      throw new PlatformError("invalid", "after names an operation, and is for the mode after alone");
    const asked = { mode, after: wanted.after ?? null, cascade, now, reason: wanted.reason ?? null };
    const decide = (desk: Desk) => admitDelete(desk, asked);
    return this.#ask(ref, "delete", wanted, asking, decide, {});
  }

  async bind(ref: InstanceRef, wanted: CreateBinding, asking: Asking): Promise<Admitted> {
    checkParameters(wanted.parameters);
    const { name, parameters = null, appGuid = null } = wanted;
    return this.#bind(ref, { name, parameters, appGuid, predecessor: null }, asking, wanted);
  }

  async rotate(ref: InstanceRef, binding: string, successor: string | undefined, asking: Asking): Promise<Admitted> {
    checkBindingName(binding);
    const part = partOfBinding(binding);
    const found = instances.resource(await this.#journal.read(keyOf(ref), [part]))?.parts.get(part);
    const { parameters = null, appGuid = null } = found ?? {};
    const name = successor ?? (await this.#successorOf(ref, binding));
    // As it was asked: the same request finds the same successor, although its name is not free any more.
    const asked = { binding, successor: successor ?? null };
    return this.#bind(ref, { name, parameters, appGuid, predecessor: binding }, asking, asked);
  }

  async unbind(ref: InstanceRef, binding: string, asking: Asking): Promise<Admitted> {
    checkBindingName(binding);
    const decide = (desk: Desk) => admitUnbind(desk, binding, this.#isSerial(desk));
    return this.#ask(ref, "unbind", { binding }, asking, decide, { parts: [partOfBinding(binding)] });
  }

  async credentials(ref: InstanceRef, binding: string): Promise<string> {
    checkBindingName(binding);
    const part = partOfBinding(binding);
    const record = instances.resource(await this.#journal.read(keyOf(ref), [part]))?.parts.get(part);
    if (record === undefined) throw new PlatformError("not-found", `there is no binding ${binding}`);
    // Those of one that is being bound are still to come; others never do.
    if (record.answer === null || record.phase === "binding")
      throw new PlatformError(
        record.phase === "binding" ? "unavailable" : "not-found",
        `the binding ${binding} has no credentials: it is ${record.phase}`,
      );
    // P-BIND-09: what has expired must not be used any more.
    if (record.expiresAt !== null && Date.parse(record.expiresAt) <= this.#journal.now())
      throw new PlatformError("not-found", `the binding ${binding} expired at ${record.expiresAt}`);
    return record.answer;
  }

  /** E10-33: a new entry, caused by the old one, with a fresh budget. */
  async retry(ref: InstanceRef, operation: string, asking: Asking): Promise<Admitted> {
    const status = await this.#journal.operation(keyOf(ref), operation);
    if (status === undefined) throw new PlatformError("not-found", `there is no operation ${operation}`);
    if (status.status === "open" && asking.dryRun === true) {
      const { desired } = await this.#mustRead(ref);
      return { kind: "dry run", report: { ok: true, findings: [] }, desired };
    }
    if (status.status === "open") {
      const by = caused(asking.by, operation);
      const hurry = instances.decide<null>(() => ({ result: null, change: { hurry: [operation] } }));
      await this.#journal.transact(keyOf(ref), hurry, { by });
      return { kind: "repeated", operation, instance: await this.#mustRead(ref) };
    }
    if (status.status === "succeeded")
      throw new PlatformError("too-late", `operation ${operation} has succeeded; there is nothing to retry`);
    const input = await this.#inputOf(ref, operation);
    // Only a delete that was to take them along was called off by a binding.
    const { lastDelete } = await this.#mustRead(ref);
    const cascade = lastDelete?.operation === operation && lastDelete.how === "blocked";
    return this.#again(ref, { kind: status.kind, input, cascade }, { ...asking, by: caused(asking.by, operation) });
  }

  async cancel(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "cancel", operation }, asking);
  }

  async hold(ref: InstanceRef, operation: string, reason: string, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "hold", operation, reason: shortReason(reason) }, asking);
  }

  async release(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "release", operation }, asking);
  }

  /**
   * The end of a lock that has one is accepted before the lock: killed in between, it finds nothing to unlock. The other way round a lock
   * would never end.
   */
  async lock(
    ref: InstanceRef,
    wanted: Pick<InstanceLock, "reason"> & Partial<InstanceLock>,
    asking: Asking,
  ): Promise<InstanceView> {
    const at = this.#journal.now();
    const { effect = "queue", deletesExempt = false, until = null } = wanted;
    const reason = shortReason(wanted.reason);
    checkLockEnd(until, at);
    if (until !== null && asking.dryRun !== true) {
      const input = { ...pickRef(ref), at };
      const later = unlocks.decide<null>(() => ({
        result: null,
        change: {
          accept: [{ kind: "unlock", input, mode: "shared", delayMs: Math.max(0, until - at), deadlineMs: null }],
        },
      }));
      await this.#journal.transact(keys.unlock(ref.space, ref.name), later, { by: asking.by });
    }
    const lock: InstanceLock = { by: asking.by.actor.subject, at, reason, effect, deletesExempt, until };
    return this.#control(ref, { action: "lock", lock }, asking);
  }

  async unlock(ref: InstanceRef, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "unlock" }, asking);
  }

  async restore(ref: InstanceRef, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "restore" }, asking);
  }

  async setPolicy(ref: InstanceRef, policy: Partial<InstancePolicy>, asking: Asking): Promise<InstanceView> {
    return this.#control(ref, { action: "set policy", policy }, asking);
  }

  async read(ref: InstanceRef): Promise<InstanceView | undefined> {
    const seen = await this.#see(ref);
    return seen && instanceView(pickRef(ref), seen.resource, seen.inputs, this.#journal.now());
  }

  async operation(ref: InstanceRef, operation: string): Promise<OperationView | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      const status = await this.#journal.operation(keyOf(ref), operation);
      if (status === undefined) return undefined;
      if (status.status !== "open") return { operation, state: status.status, message: endMessage(status.outcome) };
      // It may end between the two looks: then the next one says how.
      const intent = (await this.read(ref))?.queue.find((queued) => queued.operation === operation);
      if (intent !== undefined) return { operation, state: "open", intent };
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  async after(ref: InstanceRef, operation: string): Promise<AppliedState | null> {
    const seen = await this.#see(ref);
    const state = seen === undefined ? undefined : stateAfter(seen.resource, seen.inputs, operation);
    if (state === undefined) throw new PlatformError("not-found", `there is no open operation ${operation}`);
    return state;
  }

  async list(query: InstanceQuery): Promise<Page<InstanceSummary>> {
    const { space, broker, phase, after, limit } = query;
    const isLabelled = phase === undefined || hasBrokerLabel(phase);
    const page = await this.#journal.find({
      ...(broker !== undefined && space === undefined && isLabelled
        ? { label: { name: "broker", value: broker } }
        : { prefix: space === undefined ? keys.instances : keys.instancesOf(space) }),
      ...(after !== undefined && { after }),
      ...(limit !== undefined && { limit }),
    });
    const items = page.items.flatMap((resource) => {
      const ref = instanceRef(resource.key);
      if (ref === undefined || resource.data === null) return [];
      const summary = instanceSummary(ref, instances.resource(resource));
      const isMeant = (broker === undefined || summary.broker === broker) && isMeantPhase(summary, phase);
      return isMeant ? [summary] : [];
    });
    return { items, next: page.next };
  }

  async journal(
    ref: InstanceRef,
    page: { readonly after?: number; readonly before?: number; readonly limit?: number } = {},
  ): Promise<readonly JournalLine[]> {
    const limit = Math.min(page.limit ?? 100, longestLinePage);
    const entries = await this.#journal.entries(keyOf(ref), { ...page, limit });
    return entries.map(journalLine);
  }

  async *follow(ref: InstanceRef, after: number, signal: AbortSignal): AsyncIterable<JournalLine> {
    let seen = after;
    while (!signal.aborted) {
      const lines = await this.journal(ref, { after: seen });
      for (const line of lines) {
        if (signal.aborted) return;
        yield line;
        seen = line.seq;
      }
      if (lines.length === 0) await pause(followEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  #found(ref: InstanceRef, wanted: CreateInstance): ReturnType<typeof findPlan> {
    const offered = this.#ports.offeringsCalled(wanted.broker, wanted.offering);
    // What is not offered in the space makes no name ambiguous there.
    const here = offered.filter((one) => this.#isOfferedIn(ref.space, one));
    return findPlan(here.length > 0 ? here : offered, wanted);
  }

  async #create(ref: InstanceRef, wanted: CreateInstance, osbId: string | null, asking: Asking): Promise<Admitted> {
    checkParameters(wanted.parameters);
    const found = this.#found(ref, wanted);
    const { broker, offering, plan, maintenance } = found;
    const { parameters = null, policy = {} } = wanted;
    const asked = { broker, offering, plan, maintenance, parameters, policy, osbId };
    const decide = (desk: Desk) => admitCreate(desk, asked);
    return this.#ask(
      ref,
      osbId === null ? "create" : "adopt",
      wanted,
      asking,
      decide,
      { likelyNew: true },
      counted(found),
    );
  }

  async #update(
    ref: InstanceRef,
    wanted: Omit<WantedUpdate, "failedCreate">,
    asking: Asking,
    asked: object,
  ): Promise<Admitted> {
    const failedCreate = await this.#failedCreate(ref);
    // Only another plan, or what could not be created before, takes a place that it did not have.
    const plan = wanted.text.plan ?? failedCreate?.plan;
    const what = plan === undefined ? undefined : await this.#countedOf(ref, plan.id);
    const decide = (desk: Desk) => admitUpdate(desk, { ...wanted, failedCreate });
    return this.#ask(ref, wanted.op, asked, asking, decide, {}, what);
  }

  async #bind(
    ref: InstanceRef,
    wanted: Omit<WantedBinding, "serial">,
    asking: Asking,
    asked: object,
  ): Promise<Admitted> {
    checkBindingName(wanted.name);
    const { name, predecessor } = wanted;
    const decide = (desk: Desk) => admitBind(desk, { ...wanted, serial: this.#isSerial(desk) });
    // Of a rotation: what became of an earlier successor, whatever its name is.
    const sees: Sees = predecessor === null ? { parts: [partOfBinding(name)] } : { partsUnder: ["binding/"] };
    return this.#ask(ref, predecessor === null ? "bind" : "rotate", asked, asking, decide, sees);
  }

  #again(
    ref: InstanceRef,
    { kind, input, cascade }: { readonly kind: string; readonly input: unknown; readonly cascade: boolean },
    asking: Asking,
  ): Promise<Admitted> {
    switch (kind) {
      case "create": {
        const { plan, parameters } = input as CreateInput;
        return this.#recreate(ref, plan.id, parameters, asking);
      }
      case "update": {
        const { op, text, latest = false } = input as UpdateInput;
        if (latest) return this.upgrade(ref, undefined, asking);
        const again = op === "refresh" || op === "upgrade" ? op : "update";
        const wanted = { op: again, text: again === "refresh" ? nothingNew : text, after: [] } as const;
        return this.#update(ref, wanted, asking, { retried: text });
      }
      case "delete": {
        const { mode, reason } = input as DeleteInput;
        const wanted = { mode: mode === "after" ? ("preempt" as const) : mode, ...(reason !== null && { reason }) };
        return this.delete(ref, { ...wanted, cascade }, asking);
      }
      case "bind": {
        const { binding, parameters, appGuid, predecessor } = input as BindInput;
        if (predecessor !== null) return this.#rotateAgain(ref, binding, asking);
        return this.bind(
          ref,
          { name: binding, ...(parameters !== null && { parameters }), ...(appGuid !== null && { appGuid }) },
          asking,
        );
      }
      case "unbind":
        return this.unbind(ref, (input as UnbindInput).binding, asking);
      default:
        throw new PlatformError("invalid", "that cannot be retried; ask for it anew");
    }
  }

  async #successorOf(ref: InstanceRef, binding: string): Promise<string> {
    const { bindings } = await this.#mustRead(ref);
    return successorName(binding, new Set(bindings.map(({ name }) => name)));
  }

  /** The binding that failed still knows whose successor it was to be. */
  async #rotateAgain(ref: InstanceRef, successor: string, asking: Asking): Promise<Admitted> {
    const { bindings } = await this.#mustRead(ref);
    const failed = bindings.find(({ name }) => name === successor);
    const predecessor = failed && bindings.find((binding) => isSuccessorOf(failed, binding))?.name;
    if (predecessor === undefined)
      throw new PlatformError("too-late", `the binding that ${successor} was to follow is not known any more`);
    return this.rotate(ref, predecessor, successor, asking);
  }

  /** The same create once more, with a new id at the broker: what waited behind it goes on when it succeeds. */
  async #recreate(ref: InstanceRef, plan: string, parameters: string | null, asking: Asking): Promise<Admitted> {
    const failedCreate = await this.#failedCreate(ref);
    const found = await this.#planOf(ref, plan);
    const text = { plan: found.plan, parameters, maintenance: null };
    const wanted: WantedUpdate = { op: "update", text, after: [], failedCreate };
    const decide = (desk: Desk) => {
      // What was wanted then would go over all that was wanted since.
      if (desk.data !== undefined && desk.data.applied !== null)
        throw new PlatformError("too-late", "the instance was created since; change it as it is now");
      return admitUpdate(desk, wanted);
    };
    return this.#ask(ref, "create", { retried: text }, asking, decide, {}, counted(found));
  }

  async #ask(
    ref: InstanceRef,
    op: IntentName,
    wanted: object,
    asking: Asking,
    decide: (desk: Desk) => Admitting,
    sees: Sees,
    takes?: Counted,
  ): Promise<Admitted> {
    keyOf(ref);
    if (takes === undefined) return this.#askNow(ref, op, wanted, asking, decide, sees, undefined);
    const quota = await this.#ports.quotas.reserve(ref, takes, asking);
    try {
      return await this.#askNow(ref, op, wanted, asking, decide, sees, quota);
    } finally {
      await quota.release();
    }
  }

  async #askNow(
    ref: InstanceRef,
    op: IntentName,
    wanted: object,
    asking: Asking,
    decide: (desk: Desk) => Admitting,
    sees: Sees,
    quota: QuotaVerdict | undefined,
  ): Promise<Admitted> {
    const key = keyOf(ref);
    const request = this.#request(ref, op, wanted, asking, quota);
    let inputs: Inputs = new Map();
    for (let tries = 0; tries < mostTries; tries++) {
      const { result, accepted, seen } = await this.#decide(key, { ...request, inputs }, asking.by, decide, sees);
      switch (result.kind) {
        case "read more":
          inputs = await this.#inputs(key);
          continue;
        case "accepted": {
          const operation = (accepted.find(({ kind }) => kind === "delete") ?? accepted[0])?.id ?? "";
          return { kind: "accepted", operation, instance: await this.#told(ref, seen) };
        }
        case "repeated":
          return { kind: "repeated", operation: result.operation, instance: await this.#told(ref, seen) };
        case "asked before": {
          const operation = await this.#operationOf(key, result.asked);
          return { kind: "repeated", operation, instance: await this.#told(ref, seen) };
        }
        case "done":
        case "unchanged":
          return { kind: "unchanged", instance: await this.#told(ref, seen) };
        case "dry run":
          return result;
      }
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  /** `seen`: the instance after the commit, where that can be told without a read. */
  async #decide(
    key: string,
    request: Request,
    by: Attribution,
    decide: (desk: Desk) => Admitting,
    { parts = [], partsUnder = [], likelyNew = false }: Sees,
  ) {
    // Marks of calls: what was sent, and what was not, is told by nothing else.
    const prefixes = ["binding/", "call/", ...partsUnder, ...(request.keyPart === null ? [] : ["asked/"])];
    // The last call of the decision is the one that counts.
    let last: { readonly desk: Desk; readonly change: InstanceChange | undefined } | undefined;
    const { result, accepted } = await this.#journal.transact(
      key,
      instances.decide<Admission>((resource, now) => {
        last = undefined;
        const desk = deskOf(resource, now, request);
        if (desk === undefined) return { result: { kind: "read more" } };
        const decided = decide(desk);
        const change = request.dryRun ? undefined : decided.change;
        last = { desk, change };
        return { result: decided.result, ...(change !== undefined && { change }) };
      }),
      { by, parts: [...parts, ...readsInterrupted], partsUnder: prefixes, open: "all", likelyNew },
    );
    return { result, accepted, seen: seenBy(key, last, accepted) };
  }

  async #control(ref: InstanceRef, asked: Control, asking: Asking): Promise<InstanceView> {
    const request = { ...this.#request(ref, "update", asked, asking), keyPart: null, inputs: null };
    const decide = (desk: Desk) => control(desk, asked);
    await this.#decide(keyOf(ref), request, asking.by, decide, {});
    return this.#mustRead(ref);
  }

  #request(ref: InstanceRef, op: IntentName, wanted: object, asking: Asking, quota?: QuotaVerdict): Request {
    const { platformName, newId } = this.#ports;
    const { actor } = asking.by;
    const { subject } = actor;
    const isPerson = actor.type !== "system";
    return {
      by: subject,
      asked: hashOf(JSON.stringify([op, wanted])),
      ifMatch: asking.ifMatch ?? null,
      keyPart: asking.idempotencyKey === undefined ? null : `asked/${hashOf(`${subject}\n${asking.idempotencyKey}`)}`,
      dryRun: asking.dryRun ?? false,
      intent: {
        identity: isPerson ? { platform: platformName, value: asking.identity ?? { username: subject } } : null,
        context: {
          platform: platformName,
          space_guid: ref.space,
          organization_guid: ref.space,
          instance_name: ref.name,
        },
      },
      catalogOf: (broker) => this.#ports.brokers.broker(broker)?.catalog.revision ?? 0,
      inputs: null,
      newId: newId(),
      preflight: (intent, desk, offered) => {
        // The place may be another's by now.
        if (quota?.until != null && desk.now >= quota.until)
          throw new PlatformError("unavailable", "it took too long; try again");
        return this.#preflight(ref, intent, desk, offered, quota?.findings ?? []);
      },
    };
  }

  #preflight(
    ref: InstanceRef,
    intent: Parameters<typeof preflight>[0],
    { data, desired, now }: Desk,
    offered: Offered,
    found: readonly PreflightFinding[],
  ) {
    const { brokers } = this.#ports;
    // What could not be created has no plan, and is deleted all the same (E10-28): nothing may become a trap.
    const plan = desired?.plan.id ?? data?.applied?.plan.id ?? (intent.op === "delete" ? "" : undefined);
    return preflight(intent, {
      space: ref.space,
      name: ref.name,
      brokerName: offered.broker,
      health: brokers.broker(offered.broker)?.health,
      offering: brokers.offering(offered.broker, offered.offering.id),
      instance:
        data === undefined || plan === undefined
          ? null
          : { phase: data.phase, plan, usable: data.usable, bindings: data.bindings },
      freezes: brokers.freezes(),
      visibilities: brokers.visibilities(),
      found,
      now,
      checkParameters: brokers.checkParameters,
    });
  }

  #isSerial({ data, now }: Desk): boolean {
    const until =
      data === undefined ? undefined : this.#ports.brokers.broker(data.broker)?.serialBindings[data.offering.id];
    return until !== undefined && until > now;
  }

  /** The resource of one moment, and what its open operations were given. */
  async #see(ref: InstanceRef): Promise<Seen | undefined> {
    const key = keyOf(ref);
    for (let tries = 0; tries < mostTries; tries++) {
      const look = instances.decide<InstanceResource | undefined>((resource) => ({ result: resource }));
      const { result } = await this.#journal.transact(key, look, { by: reader, partsUnder: ["binding/"], open: "all" });
      if (result === undefined || result.data === null) return undefined;
      const inputs = result.open.length === 0 ? new Map() : await this.#inputs(key);
      if (result.open.every(({ id }) => inputs.has(id))) return { resource: result, inputs };
    }
    throw new PlatformError("unavailable", "the instance is changed all the time; try again");
  }

  async #told(ref: InstanceRef, seen: Seen | undefined): Promise<InstanceView> {
    if (seen === undefined) return this.#mustRead(ref);
    return instanceView(pickRef(ref), seen.resource, seen.inputs, this.#journal.now());
  }

  async #mustRead(ref: InstanceRef): Promise<InstanceView> {
    const view = await this.read(ref);
    if (view === undefined) throw new PlatformError("not-found", "there is no such instance");
    return view;
  }

  async #inputs(key: string): Promise<Inputs> {
    const { items } = await this.#journal.operations(key, { limit: mostInputs });
    return new Map(items.map(({ id, author, input }) => [id, { by: author.subject, input }]));
  }

  /** What an operation was given, as long as its entries are kept. */
  async #inputOf(ref: InstanceRef, operation: string): Promise<unknown> {
    const seq = Number.parseInt(operation, 10);
    const [entry] = await this.#journal.entries(keyOf(ref), { after: seq - 1, limit: 1 });
    const isIt = entry?.operation === operation && entry.kind === "accepted";
    if (!isIt) throw new PlatformError("too-late", `nobody knows any more what operation ${operation} was given`);
    return (entry.payload as { readonly input?: unknown }).input;
  }

  async #failedCreate(ref: InstanceRef): Promise<CreateInput | null> {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    const failed = data?.applied === null ? data.failures.findLast(({ op }) => op === "create") : undefined;
    if (failed === undefined) return null;
    return (await this.#inputOf(ref, failed.operation).catch(() => null)) as CreateInput | null;
  }

  /** The first operation that was accepted for a request after what was kept before it. */
  async #operationOf(key: string, { after, body }: AskedBefore): Promise<string> {
    const entries = await this.#journal.entries(key, { after, limit: 1_000 });
    const found = entries.find(({ kind, payload }) => {
      const brief =
        kind === "accepted" ? (payload as { readonly brief?: { readonly asked?: string } }).brief : undefined;
      return brief?.asked === body;
    });
    if (found?.operation == null)
      throw new PlatformError("too-late", "what came of that request is not known any more");
    return found.operation;
  }

  #isOfferedIn(space: string, { broker, offering }: OfferedService): boolean {
    const rules = this.#ports.brokers.visibilities();
    return offering.plans.some((plan) => isVisible(rules, { broker, offering: offering.id, plan: plan.id }, [space]));
  }

  async #countedOf(ref: InstanceRef, plan: string): Promise<Counted | undefined> {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    return data == null ? undefined : { broker: data.broker, offering: data.offering.id, plan };
  }

  async #planOf(ref: InstanceRef, plan: string) {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    if (data == null) throw new PlatformError("not-found", "there is no such instance");
    const { broker, offering } = data;
    return findPlan(this.#ports.offeringsCalled(broker, offering.id), { broker, offering: offering.id, plan });
  }
}

function counted({ broker, offering, plan }: FoundPlan): Counted {
  return { broker, offering: offering.id, plan: plan.id };
}

function seenBy(
  key: string,
  last: { readonly desk: Desk; readonly change: InstanceChange | undefined } | undefined,
  accepted: readonly OpenOperation[],
): Seen | undefined {
  if (last === undefined) return undefined;
  const { desk, change } = last;
  if (change !== undefined) return resourceAfter(key, desk, change, accepted);
  const { resource, data, request } = desk;
  return resource === undefined || data === undefined ? undefined : { resource, inputs: request.inputs ?? new Map() };
}

/** Nothing is written in its name. */
const reader: Attribution = { actor: { type: "system", subject: "platform" } };

function keyOf({ space, name }: InstanceRef): string {
  if (!isName(space)) throw new PlatformError("invalid", `the name of a space ${nameRule}`);
  if (!isName(name)) throw new PlatformError("invalid", `the name of an instance ${nameRule}`);
  return keys.instance(space, name);
}

function pickRef({ space, name }: InstanceRef): InstanceRef {
  return { space, name };
}

/** In addresses of the broker and in keys: what is not plain is no id that a broker could have been given. */
function isOsbId(id: string): boolean {
  return /^[\x21-\x2e\x30-\x7e]{1,200}$/.test(id) && !/^\.+$/.test(id);
}

const osbIdRule = "has 1 to 200 characters of ASCII, without spaces and slashes";

function checkBindingName(name: string): void {
  if (!isName(name)) throw new PlatformError("invalid", `the name of a binding ${nameRule}`);
}

function checkParameters(text: string | undefined): void {
  if (text === undefined) return;
  try {
    if (parseJsonText(text).kind === "object") return;
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    throw new PlatformError("invalid", `the parameters cannot be taken: ${error.message}`);
  }
  throw new PlatformError("invalid", "parameters are a JSON object");
}

function shortReason(reason: string): string {
  if (reason.trim() === "") throw new PlatformError("invalid", "a reason is needed");
  if (reason.length > 500) throw new PlatformError("invalid", "a reason has at most 500 characters");
  return reason;
}

function endMessage(outcome: Outcome | null): string | null {
  switch (outcome?.kind) {
    case "failed":
      return outcome.error.message;
    case "cancelled":
      return outcome.reason;
    case "succeeded":
    case undefined:
      return null;
  }
}

function caused(by: Attribution, operation: string): Attribution {
  return { ...by, cause: operation };
}

function isMeantPhase(summary: InstanceSummary, phase: InstanceQuery["phase"]): boolean {
  // What is gone is told only to whoever asks for it.
  return phase === undefined ? summary.phase !== "gone" && summary.phase !== "abandoned" : summary.phase === phase;
}

function hashOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, 22);
}
