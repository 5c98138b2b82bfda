import type { Journal, Resource } from "@osbert/journal";
import { type InstanceAddress, instanceAddress } from "../records/instance-key.js";
import { type InstancePhase, instanceData, revisionOf } from "../records/instance-record.js";
import { instanceResource } from "../records/instance-resource.js";

/** What refers to a service: its instances, in whatever phase they are until they are gone, and the operations that are open on them. */
export interface ServiceUse {
  /** Anything refers to it. */
  readonly isUsed: boolean;
  /** Revisions that instances are at, or are about to be at. */
  readonly revisions: ReadonlySet<string>;
  /** It may be used at any other revision, too: an instance cannot be read, or says nothing of its revision, or there are too many. */
  readonly isUncertain: boolean;
}

/** What an instance is of. */
export interface InstanceService extends InstanceAddress {
  /** How far it is in its life. */
  readonly phase: InstancePhase;
  /** As the catalog has it, or had it. */
  readonly serviceId: string;
  /** `null`: it goes with whatever is offered. */
  readonly revision: string | null;
}

/** `undefined`: the resource is no instance, or it is one that is gone. */
export function instanceService(resource: Resource): InstanceService | undefined {
  const address = instanceAddress(resource.key);
  const data = address && instanceData(instanceResource.resource(resource));
  if (address === undefined || data === undefined || data.phase === "gone") return undefined;
  return { ...address, phase: data.phase, serviceId: data.serviceId, revision: revisionOf(data) };
}

const instancesAtOnce = 200;
const operationsAtOnce = 100;

/** Looks at up to `most` instances of a service. For whoever keeps revisions of services, before it removes one. */
export async function serviceUse(journal: Journal, serviceId: string, most = 10_000): Promise<ServiceUse> {
  const label = { name: "service", value: serviceId };
  const revisions = new Set<string>();
  let isUncertain = false;
  let lookedAt = 0;
  for (let after: string | undefined; ; ) {
    const from = after === undefined ? {} : { after };
    const { items, next } = await journal.find({ label, ...from, limit: instancesAtOnce });
    lookedAt += items.length;
    for (const resource of items) {
      const found = await revisionsOf(journal, resource);
      if (found === undefined) isUncertain = true;
      else for (const revision of found) revisions.add(revision);
    }
    if (next === null) {
      // One that cannot be read is no item: but asked for one more than there were, there is a next page.
      const more = await journal.find({ label, ...from, limit: items.length + 1 });
      return { isUsed: lookedAt > 0 || more.next !== null, revisions, isUncertain: isUncertain || more.next !== null };
    }
    if (items.length < instancesAtOnce) isUncertain = true;
    if (lookedAt >= most) return { isUsed: true, revisions, isUncertain: true };
    after = next;
  }
}

/** `undefined`: it goes with whatever is offered. */
async function revisionsOf(journal: Journal, resource: Resource): Promise<readonly string[] | undefined> {
  const own = revisionOf(instanceData(instanceResource.resource(resource)));
  if (own === null) return undefined;
  const revisions = [own];
  if (resource.open.length === 0 && resource.queued === 0) return revisions;
  // An update that is under way, or waits, leads to the revision that it was accepted for.
  for (let after: string | undefined; ; ) {
    const page = { limit: operationsAtOnce, ...(after !== undefined && { after }) };
    const { items, next } = await journal.operations(resource.key, page);
    for (const { kind, input } of items) {
      const given = kind === "update" ? (input as { readonly revision?: unknown } | null)?.revision : null;
      if (typeof given === "string") revisions.push(given);
    }
    if (next === null) return revisions;
    after = next;
  }
}
