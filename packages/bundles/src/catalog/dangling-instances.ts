import { type InstanceService, instanceService, type Service } from "@osbert/broker";
import type { Journal, Page } from "@osbert/journal";
import type { Paging } from "@osbert/server";
import type { DanglingInstance } from "../admin/bundle-admin.js";
import type { StoredSource } from "../reconcile/records.js";

const instancesAtOnce = 200;
/** For one request. */
const mostPages = 25;
const defaultLimit = 100;

export interface WhyDanglingPorts {
  readonly isInCode: (serviceId: string) => boolean;
  readonly sources: Iterable<StoredSource>;
  readonly find: (serviceId: string, revision: string) => Promise<Service | undefined>;
}

/** Instances of which `why` says why their bundle cannot be found (F5-54), in the order of their keys. */
export async function danglingInstances(
  journal: Journal,
  { after, limit = defaultLimit }: Paging,
  why: (instance: InstanceService) => Promise<string | undefined>,
): Promise<Page<DanglingInstance>> {
  const items: DanglingInstance[] = [];
  let next: string | null = after ?? null;
  for (let pages = 0; pages < mostPages; pages++) {
    const page = await journal.find({ ...(next !== null && { after: next }), limit: instancesAtOnce });
    for (const resource of page.items) {
      const instance = instanceService(resource);
      const reason = instance && (await why(instance));
      if (instance !== undefined && reason !== undefined) items.push({ ...instance, why: reason });
      if (items.length >= limit) return { items, next: resource.key };
    }
    next = page.next;
    if (next === null) break;
  }
  return { items, next };
}

/** What is asked of an instance. For one request: each service and each revision is looked for once. */
export function whyDangling({
  isInCode,
  sources,
  find,
}: WhyDanglingPorts): (instance: InstanceService) => Promise<string | undefined> {
  const known = new Set<string>();
  for (const { specs } of sources)
    for (const record of specs.values()) if (record.kind !== "candidate") known.add(record.serviceId);
  const found = new Map<string, boolean>();
  return async ({ serviceId, revision }) => {
    if (isInCode(serviceId)) return undefined;
    if (!known.has(serviceId)) return "no source knows its service";
    if (revision === null) return undefined;
    const wanted = `${serviceId}@${revision}`;
    const isFound = found.get(wanted) ?? (await find(serviceId, revision)) !== undefined;
    found.set(wanted, isFound);
    return isFound ? undefined : "its revision is not kept any more";
  };
}
