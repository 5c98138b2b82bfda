import type { Attribution, Journal, Page } from "@osbert/journal";
import { admitBind, type WantedBinding } from "../decisions/admit-bind.js";
import { admitCreate } from "../decisions/admit-create.js";
import { admitDelete, type WantedDelete } from "../decisions/admit-delete.js";
import { admitUnbind } from "../decisions/admit-unbind.js";
import { admitUpdate, type WantedUpdate } from "../decisions/admit-update.js";
import { partOfBinding } from "../decisions/binding-part.js";
import { checkLockEnd } from "../decisions/controls.js";
import { askedBefore, type Desk, repeatedOr } from "../decisions/desk.js";
import { nothingNew } from "../decisions/project.js";
import { isSuccessorOf } from "../decisions/same-binding.js";
import { successorName } from "../decisions/schedule-rotation.js";
import { PlatformError } from "../errors.js";
import { findOwner, osbIdAt } from "../operations/find-owner.js";
import type {
  Admitted,
  Asking,
  Brokers,
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
import {
  type AppliedState,
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
import { type InstanceRef, keys } from "../records/keys.js";
import type { Counted } from "../records/quota-record.js";
import { unlocks } from "../records/unlock-record.js";
import { isVisible } from "../records/visibility-record.js";
import { Admissions, type AdmissionsPorts, type Sees } from "./admissions.js";
import {
  checkBindingName,
  checkParameters,
  isOsbId,
  keyOf,
  osbIdRule,
  pickRef,
  shortReason,
} from "./checked-request.js";
import { type FoundPlan, findPlan } from "./find-plan.js";
import { InstanceReader } from "./instance-reader.js";

export interface InstancesPorts extends AdmissionsPorts {
  readonly offeringsCalled: Brokers["offeringsCalled"];
}

/** Instances as operations on the journal: what is asked for is decided and kept in one commit. */
export class JournalInstances implements Instances {
  readonly #ports: InstancesPorts;
  readonly #journal: Journal;
  readonly #reader: InstanceReader;
  readonly #admissions: Admissions;

  constructor(ports: InstancesPorts) {
    this.#ports = ports;
    this.#journal = ports.journal;
    this.#reader = new InstanceReader(ports.journal);
    this.#admissions = new Admissions(ports, this.#reader);
  }

  async create(ref: InstanceRef, wanted: CreateInstance, asking: Asking): Promise<Admitted> {
    checkParameters(wanted.parameters);
    return this.#unlessRepeated(ref, "create", wanted, asking, () => this.#create(ref, wanted, null, asking));
  }

  async adopt(
    ref: InstanceRef,
    wanted: CreateInstance & { readonly osbId: string },
    asking: Asking,
  ): Promise<Admitted> {
    if (!isOsbId(wanted.osbId)) throw new PlatformError("invalid", `the id of what is to be adopted ${osbIdRule}`);
    checkParameters(wanted.parameters);
    return this.#unlessRepeated(ref, "adopt", wanted, asking, () => this.#adopt(ref, wanted, asking));
  }

  async #adopt(ref: InstanceRef, wanted: CreateInstance & { readonly osbId: string }, asking: Asking) {
    const { broker } = this.#found(ref, wanted);
    const key = keyOf(ref);
    const id = osbIdAt(this.#ports.brokers, broker, wanted.osbId);
    const owner = await findOwner(this.#journal, id, (other) => other !== key);
    // Not whose: it may be in another space. Whether it still is so when the adoption runs is looked at then.
    if (owner !== undefined) throw new PlatformError("exists", "another instance has that id at the broker");
    return this.#create(ref, wanted, wanted.osbId, asking);
  }

  async update(ref: InstanceRef, wanted: UpdateInstance, asking: Asking): Promise<Admitted> {
    checkParameters(wanted.parameters);
    return this.#unlessRepeated(ref, "update", wanted, asking, async () => {
      const plan = wanted.plan === undefined ? null : (await this.#planOf(ref, wanted.plan)).plan;
      const text = { plan, parameters: wanted.parameters ?? null, maintenance: null };
      return this.#update(ref, { op: "update", text, after: wanted.after ?? [] }, asking, wanted);
    });
  }

  async refresh(ref: InstanceRef, asking: Asking): Promise<Admitted> {
    return this.#update(ref, { op: "refresh", text: nothingNew, after: [] }, asking, {});
  }

  async upgrade(ref: InstanceRef, version: string | undefined, asking: Asking): Promise<Admitted> {
    const { broker, offering, desired } = await this.#reader.mustRead(ref);
    const plan = desired === null ? undefined : this.#ports.brokers.plan(broker, offering.id, desired.plan.id);
    const maintenance = version ?? plan?.maintenance_info?.version ?? null;
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
    return this.#delete(ref, asked, asking, wanted);
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
    const decide = (desk: Desk) => admitUnbind(desk, binding, this.#admissions.isSerial(desk));
    return this.#admissions.ask(ref, "unbind", { binding }, asking, decide, { parts: [partOfBinding(binding)] });
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
      const { desired } = await this.#reader.mustRead(ref);
      return { kind: "dry run", report: { ok: true, findings: [] }, desired };
    }
    if (status.status === "open") {
      const by = caused(asking.by, operation);
      const hurry = instances.decide<null>(() => ({ result: null, change: { hurry: [operation] } }));
      await this.#journal.transact(keyOf(ref), hurry, { by });
      return { kind: "repeated", operation, instance: await this.#reader.mustRead(ref) };
    }
    if (status.status === "succeeded")
      throw new PlatformError("too-late", `operation ${operation} has succeeded; there is nothing to retry`);
    const input = await this.#reader.inputOf(ref, operation);
    // Only a delete that was to take them along was called off by a binding.
    const { lastDelete } = await this.#reader.mustRead(ref);
    const cascade = lastDelete?.operation === operation && lastDelete.how === "blocked";
    return this.#again(ref, { kind: status.kind, input, cascade }, { ...asking, by: caused(asking.by, operation) });
  }

  async cancel(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "cancel", operation }, asking);
  }

  async hold(ref: InstanceRef, operation: string, reason: string, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "hold", operation, reason: shortReason(reason) }, asking);
  }

  async release(ref: InstanceRef, operation: string, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "release", operation }, asking);
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
    return this.#admissions.control(ref, { action: "lock", lock }, asking);
  }

  async unlock(ref: InstanceRef, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "unlock" }, asking);
  }

  async restore(ref: InstanceRef, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "restore" }, asking);
  }

  async setPolicy(ref: InstanceRef, policy: Partial<InstancePolicy>, asking: Asking): Promise<InstanceView> {
    return this.#admissions.control(ref, { action: "set policy", policy }, asking);
  }

  read(ref: InstanceRef): Promise<InstanceView | undefined> {
    return this.#reader.read(ref);
  }

  operation(ref: InstanceRef, operation: string): Promise<OperationView | undefined> {
    return this.#reader.operation(ref, operation);
  }

  after(ref: InstanceRef, operation: string): Promise<AppliedState | null> {
    return this.#reader.after(ref, operation);
  }

  list(query: InstanceQuery): Promise<Page<InstanceSummary>> {
    return this.#reader.list(query);
  }

  journal(ref: InstanceRef, page: Parameters<Instances["journal"]>[1] = {}): Promise<readonly JournalLine[]> {
    return this.#reader.journal(ref, page);
  }

  follow(ref: InstanceRef, after: number, signal: AbortSignal): AsyncIterable<JournalLine> {
    return this.#reader.follow(ref, after, signal);
  }

  #found(ref: InstanceRef, wanted: CreateInstance): ReturnType<typeof findPlan> {
    const offered = this.#ports.offeringsCalled(wanted.offering, wanted.broker);
    // What is not offered in the space makes no name ambiguous there.
    const here = offered.filter((one) => this.#isOfferedIn(ref.space, one));
    return findPlan(here.length > 0 ? here : offered, wanted);
  }

  /** What a request names may be gone since the same one was taken: its key still tells what came of it (E2). */
  #unlessRepeated(
    ref: InstanceRef,
    op: IntentName,
    asked: object,
    asking: Asking,
    admit: () => Promise<Admitted>,
  ): Promise<Admitted> {
    if (asking.idempotencyKey === undefined) return admit();
    const unlessRefused = async () => {
      try {
        return await admit();
      } catch (error) {
        if (!(error instanceof PlatformError)) throw error;
        return this.#admissions.ask(ref, op, asked, asking, repeatedOr(error), {});
      }
    };
    return unlessRefused();
  }

  #create(ref: InstanceRef, wanted: CreateInstance, osbId: string | null, asking: Asking): Promise<Admitted> {
    const found = this.#found(ref, wanted);
    const { broker, offering, plan, maintenance } = found;
    const { parameters = null, policy = {} } = wanted;
    const asked = { broker, offering, plan, maintenance, parameters, policy, osbId };
    const decide = (desk: Desk) => admitCreate(desk, asked);
    return this.#admissions.ask(
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
    const failedCreate = await this.#reader.failedCreate(ref);
    // Only another plan, or what could not be created before, takes a place that it did not have.
    const plan = wanted.text.plan ?? failedCreate?.plan;
    const what = plan === undefined ? undefined : await this.#countedOf(ref, plan.id);
    const decide = (desk: Desk) => admitUpdate(desk, { ...wanted, failedCreate });
    return this.#admissions.ask(ref, wanted.op, asked, asking, decide, {}, what);
  }

  #delete(ref: InstanceRef, wanted: WantedDelete, asking: Asking, asked: object): Promise<Admitted> {
    return this.#admissions.ask(ref, "delete", asked, asking, (desk) => admitDelete(desk, wanted), {});
  }

  async #bind(
    ref: InstanceRef,
    wanted: Omit<WantedBinding, "serial">,
    asking: Asking,
    asked: object,
  ): Promise<Admitted> {
    checkBindingName(wanted.name);
    const { name, predecessor } = wanted;
    const decide = (desk: Desk) => admitBind(desk, { ...wanted, serial: this.#admissions.isSerial(desk) });
    // Of a rotation: what became of an earlier successor, whatever its name is.
    const sees: Sees = predecessor === null ? { parts: [partOfBinding(name)] } : { partsUnder: ["binding/"] };
    if (predecessor !== null) return this.#admissions.ask(ref, "rotate", asked, asking, decide, sees);
    return this.#admissions.ask(ref, "bind", asked, asking, decide, sees, await this.#bindingOf(ref, name));
  }

  #again(
    ref: InstanceRef,
    { kind, input, cascade }: { readonly kind: string; readonly input: unknown; readonly cascade: boolean },
    asking: Asking,
  ): Promise<Admitted> {
    switch (kind) {
      case "create": {
        const { plan, parameters } = input as CreateInput;
        const text = { plan, parameters, maintenance: null };
        const asked = { retried: text };
        return this.#unlessRepeated(ref, "create", asked, asking, () => this.#recreate(ref, text, asking, asked));
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
        const wanted = { mode: mode === "after" ? ("preempt" as const) : mode, after: null, now: false, reason };
        // Not what becomes of the bindings: that is told by the last delete, which is another when it is asked again.
        return this.#delete(ref, { ...wanted, cascade }, asking, { retried: { mode, reason } });
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
    const { bindings } = await this.#reader.mustRead(ref);
    return successorName(binding, new Set(bindings.map(({ name }) => name)));
  }

  /** The binding that failed still knows whose successor it was to be. */
  async #rotateAgain(ref: InstanceRef, successor: string, asking: Asking): Promise<Admitted> {
    const { bindings } = await this.#reader.mustRead(ref);
    const failed = bindings.find(({ name }) => name === successor);
    const predecessor = failed && bindings.find((binding) => isSuccessorOf(failed, binding))?.name;
    if (predecessor === undefined)
      throw new PlatformError("too-late", `the binding that ${successor} was to follow is not known any more`);
    return this.rotate(ref, predecessor, successor, asking);
  }

  /** The same create once more, with a new id at the broker: what waited behind it goes on when it succeeds. */
  async #recreate(ref: InstanceRef, before: AppliedState, asking: Asking, asked: object): Promise<Admitted> {
    const failedCreate = await this.#reader.failedCreate(ref);
    const found = await this.#planOf(ref, before.plan.id);
    const wanted: WantedUpdate = { op: "update", text: { ...before, plan: found.plan }, after: [], failedCreate };
    const decide = (desk: Desk) => {
      const known = askedBefore(desk);
      if (known !== undefined) return { result: known };
      // What was wanted then would go over all that was wanted since.
      if (desk.data !== undefined && desk.data.applied !== null)
        throw new PlatformError("too-late", "the instance was created since; change it as it is now");
      return admitUpdate(desk, wanted);
    };
    return this.#admissions.ask(ref, "create", asked, asking, decide, {}, counted(found));
  }

  #isOfferedIn(space: string, { broker, offering }: OfferedService): boolean {
    const rules = this.#ports.brokers.visibilities();
    return offering.plans.some((plan) => isVisible(rules, { broker, offering: offering.id, plan: plan.id }, [space]));
  }

  async #countedOf(ref: InstanceRef, plan: string): Promise<Counted | undefined> {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    return data == null ? undefined : { broker: data.broker, offering: data.offering.id, plan };
  }

  /** A successor is none: it takes the place of another, which goes when it is there (P-ROT-02). */
  async #bindingOf(ref: InstanceRef, binding: string): Promise<Counted | undefined> {
    if (!this.#ports.quotas.countsBindings(ref.space)) return undefined;
    const view = await this.#reader.read(ref);
    const plan = (view?.applied ?? view?.desired)?.plan.id;
    if (view === undefined || plan === undefined) return undefined;
    return { binding, broker: view.broker, offering: view.offering.id, plan };
  }

  async #planOf(ref: InstanceRef, plan: string) {
    const data = instances.resource(await this.#journal.read(keyOf(ref)))?.data;
    if (data == null) throw new PlatformError("not-found", "there is no such instance");
    const { broker, offering } = data;
    return findPlan(this.#ports.offeringsCalled(offering.id, broker), { broker, offering: offering.id, plan });
  }
}

function counted({ broker, offering, plan }: FoundPlan): Counted {
  return { broker, offering: offering.id, plan: plan.id };
}

function caused(by: Attribution, operation: string): Attribution {
  return { ...by, cause: operation };
}
