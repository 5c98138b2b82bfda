import { type Decide, type Journal, JournalError, type Json, type OperationState, type Page } from "@osbert/journal";
import { BrokerError } from "@osbert/protocol";
import type { BrokerCatalog } from "../catalog/catalog.js";
import { type AdoptedInstance, type AdoptOutcome, adoptOutcome, decideAdopt } from "../decisions/adopt.js";
import { decideCancel } from "../decisions/cancel.js";
import { type Decision, refused } from "../decisions/decision.js";
import { decideForceDelete } from "../decisions/force-delete.js";
import { decidePurge, decidePurgeBinding, decidePurgeBindings } from "../decisions/purge.js";
import { decideRetry } from "../decisions/retry.js";
import { bindingPart, bindingPrefix } from "../records/binding-record.js";
import { checkId } from "../records/ids.js";
import { addressOrKey, type InstanceAddress, instanceKey } from "../records/instance-key.js";
import { instanceData, instancePart, revisionOf } from "../records/instance-record.js";
import { type InstanceResource, instanceResource } from "../records/instance-resource.js";
import type { Verb } from "../service/verb.js";
import { type BulkItem, type BulkTarget, bulkAction } from "./bulk-action.js";
import type { KeyRotation, RotationView } from "./key-rotation.js";
import { attributionOf, type OperatorAttribution, operatorEntry } from "./operator-attribution.js";
import { type OperationFilter, OperatorQueries } from "./operator-queries.js";
import { type Pauses, pausedKey } from "./pauses.js";
import { type ServiceView, serviceView } from "./views.js";

export interface OperatorPorts {
  readonly journal: Journal;
  readonly catalog: () => BrokerCatalog;
  /** In which the service of an instance is as it was at that revision. */
  readonly catalogOf: (serviceId: string, revision: string | null) => Promise<BrokerCatalog>;
  readonly pauses: Pauses;
  /** As the broker treats bindings that are left when an instance is deprovisioned. */
  readonly cascade: boolean;
  readonly rotation: KeyRotation;
}

/** Which of many operations to retry. */
export interface BulkFilter extends Omit<OperationFilter, "state"> {
  readonly state?: OperationState | "failed";
}

/** Bindings that one commit of a purge forgets. */
const purgePage = 200;
const defaultForceWithinMs = 5 * 60 * 1_000;

/**
 * What an operator sees of a running broker and does to it. Every action is one commit on the instance it touches, with an entry that
 * says who and why; a process that is killed has done all of it or nothing.
 */
export class Operator extends OperatorQueries {
  readonly #ports: OperatorPorts;

  constructor(ports: OperatorPorts) {
    super(ports);
    this.#ports = ports;
  }

  /** Runs a waiting operation now, or begins one anew that did not succeed. Answers the operation that goes on. */
  async retry(
    address: InstanceAddress,
    operation: string,
    by: OperatorAttribution,
  ): Promise<{ readonly operation: string }> {
    const { journal, catalogOf, cascade, pauses } = this.#ports;
    const key = keyOf(address);
    const status = await journal.operation(key, operation);
    if (status === undefined) throw noOperation();
    const { kind, part, outcome } = status;
    const input = await this.#inputOf(key, operation);
    const parts = part === null ? [instancePart] : [instancePart, part];
    const data = instanceData(instanceResource.resource(await journal.read(key)));
    const revision = revisionOf(data);
    const given = (input as { readonly revision?: string | null } | null)?.revision;
    const leadsTo = given === undefined ? revision : given;
    // One that is open is only hurried, which takes no catalog.
    const catalog = outcome === null ? this.#ports.catalog() : await catalogOf(data?.serviceId ?? "", leadsTo);
    const decide = (resource: InstanceResource | undefined, now: number) => {
      const facts = {
        operation,
        verb: kind as Verb,
        part,
        ended: outcome?.kind ?? null,
        input,
        isPaused: pauses.of(instanceData(resource)?.serviceId ?? "") !== undefined,
        catalog,
        revision,
        cascade,
      };
      return decideRetry(resource, facts, now);
    };
    const begun = await this.#transact(key, parts, by, "retry", { operation }, decide);
    return { operation: begun ?? operation };
  }

  /** Asks for the end of an open operation, wherever it runs. It ends within seconds; the platform is told the reason. */
  async cancel(address: InstanceAddress, operation: string, by: OperatorAttribution): Promise<void> {
    try {
      await this.#transact(keyOf(address), [instancePart], by, "cancel", { operation }, (resource) =>
        decideCancel(resource, operation, by.reason),
      );
    } catch (error) {
      if (error instanceof JournalError && error.code === "invalid-change")
        throw new BrokerError("conflict", "the operation is not open: it has ended, or never was", { cause: error });
      throw error;
    }
  }

  /**
   * The same as `retry` for many, a page at a time: those that wait for their next attempt, or with the state `failed` the last ones of
   * instances on which nothing is under way.
   */
  async retryAll({ state, ...filter }: BulkFilter, by: OperatorAttribution, dryRun = false): Promise<Page<BulkItem>> {
    await this.checkNamed(filter);
    const page =
      state === "failed"
        ? await this.failedOperations(filter)
        : await this.#targets({ ...filter, state: state ?? "waiting" });
    return bulkAction(page, dryRun, async (target) => (await this.retry(target, target.operation, by)).operation);
  }

  /** The same as `cancel` for many, a page at a time. */
  async cancelAll(filter: OperationFilter, by: OperatorAttribution, dryRun = false): Promise<Page<BulkItem>> {
    await this.checkNamed(filter);
    const { items, next } = await this.#targets(filter);
    const open = items.filter(({ state }) => state !== "cancelling");
    return bulkAction({ items: open, next }, dryRun, async (target) => {
      await this.cancel(target, target.operation, by);
      return null;
    });
  }

  async #targets(filter: OperationFilter): Promise<Page<BulkTarget>> {
    const { items, next } = await this.operations(filter);
    const targets = items.map(({ id, instance, platform, verb, binding, state }) => {
      return { instance, platform, operation: id, verb, binding, state };
    });
    return { items: targets, next };
  }

  /**
   * Forgets an instance with its bindings, without a call of the author's functions: for what is known to be gone. The bindings go
   * first, some at a time; killed in between, what is left is purged when it is asked for again.
   */
  async purge(address: InstanceAddress, by: OperatorAttribution): Promise<void> {
    const { journal } = this.#ports;
    const key = keyOf(address);
    for (;;) {
      const page = await journal.parts(key, bindingPrefix, { limit: purgePage });
      const { items } = instanceResource.partsUnder(bindingPrefix, page);
      if (items.length === 0) break;
      const parts = items.map(({ id }) => id);
      await this.#transact(key, parts, by, "purge", { bindings: parts.length }, (resource) =>
        decidePurgeBindings(resource, parts, true),
      );
    }
    await this.#transact(key, [instancePart], by, "purge", {}, decidePurge);
  }

  async purgeBinding(address: InstanceAddress, binding: string, by: OperatorAttribution): Promise<void> {
    await this.#transact(keyOf(address), [bindingPart(binding)], by, "purge", { binding }, (resource) =>
      decidePurgeBinding(resource, binding),
    );
  }

  /** Cancels what is open, calls the author's functions once, and forgets the instance whatever comes of them. */
  async forceDelete(
    address: InstanceAddress,
    by: OperatorAttribution,
    { withinMs = defaultForceWithinMs }: { readonly withinMs?: number } = {},
  ): Promise<{ readonly operation: string }> {
    const operation = await this.#transact(keyOf(address), [instancePart], by, "force-delete", {}, (resource) => {
      const isPaused = this.#ports.pauses.of(instanceData(resource)?.serviceId ?? "") !== undefined;
      // It would wait with all others, and go on when nobody thinks of it any more.
      return isPaused
        ? refused("conflict", "the service is paused; resume it first, or purge the instance")
        : decideForceDelete(resource, { withinMs });
    });
    return { operation: operation ?? "" };
  }

  /**
   * Takes in an instance that is there already, as it is: for who comes from another broker. No function of the author is called. From then on it
   * is as one that was made here; what was ever known of its id stays as it was, so that adopting twice is adopting once. A dry run tells what
   * would come of it. Throws a BrokerError if its service or plan is not offered.
   */
  async adopt(
    address: InstanceAddress,
    adopted: AdoptedInstance,
    by: OperatorAttribution,
    dryRun = false,
  ): Promise<AdoptOutcome> {
    const { journal, catalogOf } = this.#ports;
    checkId(address.instance, "the id of the instance");
    const { serviceId, planId, revision } = adopted;
    const catalog = await catalogOf(serviceId, revision);
    const key = keyOf(address);
    if (dryRun) {
      const resource = instanceResource.resource(await journal.read(key));
      return adoptOutcome(resource, decideAdopt(resource, { adopted, catalog }, journal.now()));
    }
    const entry = operatorEntry(by, "adopt", { service: serviceId, plan: planId });
    const decide = instanceResource.decide<AdoptOutcome>((resource, now) => {
      const decision = decideAdopt(resource, { adopted, catalog }, now);
      const result = adoptOutcome(resource, decision);
      return decision.kind === "accepted" ? { result, change: { ...decision.change, entries: [entry] } } : { result };
    });
    return (await journal.transact(key, decide, { by: attributionOf(by), parts: [instancePart] })).result;
  }

  /**
   * From now on nothing of this service begins, in any process; what runs goes on until it waits or ends. Of one that was paused
   * already, the earlier pause stays, with its reason.
   */
  async pause(service: string, by: OperatorAttribution): Promise<ServiceView & { readonly was_paused: boolean }> {
    const named = this.#offered(service);
    const { pause, wasPaused } = await this.#ports.pauses.pause(named.id, by);
    return { ...serviceView(named, pause), was_paused: wasPaused };
  }

  async resume(service: string, by: OperatorAttribution): Promise<ServiceView> {
    const named = this.#offered(service, true);
    await this.#ports.pauses.resume(named.id, by);
    return serviceView(named, undefined);
  }

  /** How far the rotation of keys is that this process does. */
  get keyRotation(): RotationView {
    return this.#ports.rotation.view;
  }

  /** Encrypts everything in the store under the active key, while the broker works. Goes on by itself; `keyRotation` tells how far. */
  async rotateKeys(by: OperatorAttribution): Promise<RotationView> {
    const { journal, rotation } = this.#ports;
    rotation.check();
    // It is about no instance: it stands beside the pauses.
    const decide: Decide<null> = () => ({ result: null, change: { entries: [operatorEntry(by, "rotate keys")] } });
    await journal.transact(pausedKey, decide, { by: attributionOf(by) });
    return rotation.begin();
  }

  /** Instances that were set aside because they cannot be read; the log has told why. */
  async setAside(page: { readonly after?: string; readonly limit?: number }): Promise<Page<InstanceAddress>> {
    const { items, next } = await this.#ports.journal.listSetAside(page);
    return { items: items.map(addressOrKey), next };
  }

  /** Puts an instance that was set aside back to work. The entry first: it shows that the instance can be read and changed again. */
  async restore(address: InstanceAddress, by: OperatorAttribution): Promise<void> {
    const { journal } = this.#ports;
    const key = keyOf(address);
    try {
      await this.#transact(key, [], by, "restore", {}, (resource) =>
        instanceData(resource) === undefined
          ? refused("not-found", "there is no such instance")
          : { kind: "accepted", change: {} },
      );
    } catch (error) {
      if (error instanceof JournalError && error.code === "unreadable")
        throw new BrokerError("conflict", `it cannot be read yet; mend it in the store first: ${error.message}`, {
          cause: error,
        });
      throw error;
    }
    await journal.restore(key);
  }

  /** The action and its entry in one commit. Answers the operation that was accepted with it, if there was one. */
  async #transact(
    key: string,
    parts: readonly string[],
    by: OperatorAttribution,
    action: string,
    about: Readonly<Record<string, Json>>,
    decide: (resource: InstanceResource | undefined, now: number) => Decision,
  ): Promise<string | undefined> {
    const decideAndNote = instanceResource.decide<Decision>((resource, now) => {
      const decision = decide(resource, now);
      if (decision.kind !== "accepted") return { result: decision };
      const { cancel = [] } = decision.change;
      // Of very many, the first: each of them has its own entries.
      const cancelled = "others" in cancel ? openIds(resource) : cancel.map(({ operation }) => operation);
      const entry = operatorEntry(by, action, { ...about, ...(cancelled.length > 0 && { cancelled }) });
      return { result: decision, change: { ...decision.change, entries: [entry] } };
    });
    const { result, accepted } = await this.#ports.journal.transact(key, decideAndNote, {
      by: attributionOf(by),
      parts,
    });
    switch (result.kind) {
      case "accepted":
        return accepted[0]?.id;
      case "refused":
        throw result.error;
      case "gone":
        throw new BrokerError("not-found", "there is no such instance or binding");
      case "repeated":
        throw new BrokerError("conflict", `operation ${result.operation} does that already`);
      case "done already":
        throw new BrokerError("conflict", "there is nothing left to do");
    }
  }

  /** The words of the request are in the entry that accepted it, whose number the operation's id begins with. */
  async #inputOf(key: string, operation: string): Promise<Json> {
    const seq = Number(/^[0-9]+/.exec(operation)?.[0] ?? 0);
    const [entry] = await this.#ports.journal.entries(key, { after: seq - 1, limit: 1 });
    if (entry?.operation !== operation) throw noOperation();
    return (entry.payload as { readonly input?: Json } | null)?.input ?? null;
  }

  /** By id or by name. One that is paused may have left the catalog since. */
  #offered(text: string, orPaused = false): { readonly id: string; readonly name: string | null } {
    const id = this.serviceId(text);
    const service = this.#ports.catalog().services.get(id);
    if (service === undefined && !(orPaused && this.#ports.pauses.of(id) !== undefined))
      throw new BrokerError("not-found", "there is no such service in the catalog");
    return { id, name: service?.offering.name ?? null };
  }
}

function keyOf({ platform, instance }: InstanceAddress): string {
  return instanceKey(platform, instance);
}

function noOperation(): BrokerError {
  return new BrokerError("not-found", "there is no such operation of this instance, or it is not kept any more");
}

function openIds(resource: InstanceResource | undefined): readonly string[] {
  return resource?.open.filter(({ cancel }) => cancel === null).map(({ id }) => id) ?? [];
}
