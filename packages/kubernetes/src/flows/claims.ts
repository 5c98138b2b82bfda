import type { TypedChange, TypedResource } from "@osbert/journal";
import {
  type Delivery,
  type FlowRecord,
  flowPart,
  followKind,
  mostFlows,
  type NamespaceShape,
  namespaceResource,
  newNamespace,
  type Release,
} from "./flow-record.js";

/** What an operation of an instance claims for its flow. */
export interface Claim {
  readonly flow: string;
  readonly namespace: string;
  readonly platform: string;
  readonly instance: string;
  /** What its user calls it. */
  readonly instanceName?: string;
  /** The number of the operation, which is higher for later operations of the same instance. */
  readonly operation: number;
  readonly application: string;
  readonly service: string;
  readonly delivery: Delivery | null;
}

/** `too late`: the flow was released by a later operation; who asks has been frozen since. `full`: the namespace has as many flows as it may. */
export type ClaimOutcome = "held" | "too late" | "full";

type Namespace = TypedResource<NamespaceShape> | undefined;
type Change = TypedChange<NamespaceShape>;

/** Holds what the flow needs. Done twice, it is done once. */
export function claim(
  resource: Namespace,
  wanted: Claim,
  now: number,
): { readonly result: ClaimOutcome; readonly change?: Change } {
  const { flow, namespace, platform, instance, operation, application, service, delivery } = wanted;
  const instanceName = wanted.instanceName ?? resource?.parts.get(flowPart(flow))?.instanceName;
  const data = resource?.data ?? newNamespace(namespace);
  const released = data.released[flow];
  if (released !== undefined && released.operation >= operation) return { result: "too late" };
  const before = resource?.parts.get(flowPart(flow));
  if (before !== undefined && before.operation > operation) return { result: "too late" };
  if (before === undefined && data.holders.length >= mostFlows) return { result: "full" };
  const isSame =
    before !== undefined &&
    before.application === application &&
    before.service === service &&
    JSON.stringify(before.delivery) === JSON.stringify(delivery);
  if (isSame && before.operation === operation && data.holders.includes(flow)) return { result: "held" };
  const record: FlowRecord = {
    ...{ platform, instance, operation, application, service, delivery },
    ...(instanceName !== undefined && { instanceName }),
    deliveryAt: isSame ? before.deliveryAt : now,
    since: before?.since ?? now,
    activatedAt: before?.activatedAt ?? null,
    conditions: before?.application === application ? before.conditions : [],
  };
  const { [flow]: _, ...others } = data.released;
  return {
    result: "held",
    change: {
      data: {
        ...data,
        holders: added(data.holders, flow),
        applications: added(data.applications, application),
        released: others,
      },
      parts: namespaceResource.part(flowPart(flow), record),
      entries:
        before === undefined ? [{ kind: "flow-claimed", payload: { flow, application, service, instance } }] : [],
      ...followed(resource),
    },
  };
}

/** So many are remembered of those who have let go, the latest: without a bound, the record of a busy namespace outgrows what a journal keeps. */
export const mostReleases = 500;

/**
 * Lets go of it. Whoever else holds the same is not touched; what nobody holds any more is cleared away by the one who follows the namespace.
 * Answers the application whose events it had; `null`: it had none, or has them by a later operation.
 */
export function release(
  resource: Namespace,
  { flow, namespace, platform, instance, operation }: Omit<Claim, "application" | "service" | "delivery">,
  now: number,
): { readonly result: string | null; readonly change?: Change } {
  const data = resource?.data ?? newNamespace(namespace);
  const before = resource?.parts.get(flowPart(flow));
  if (before !== undefined && before.operation > operation) return { result: null };
  // Also of a flow that never claimed: its claim may still be under way, in a process that is late.
  const known = data.released[flow];
  const application = before?.application ?? known?.application ?? null;
  if (before === undefined && known !== undefined && known.operation >= operation) return { result: application };
  return {
    result: application,
    change: {
      data: {
        ...data,
        holders: data.holders.filter((holder) => holder !== flow),
        released: latest({ ...data.released, [flow]: { operation, at: now, platform, instance, application } }),
      },
      parts: namespaceResource.part(flowPart(flow), null),
      entries: before === undefined ? [] : [{ kind: "flow-released", payload: { flow, ...named(before) } }],
      ...followed(resource),
    },
  };
}

/** What of a flow tells a person which one it is: its id does not, and the flow may be gone when it is read. */
export function named({ application, service, instance }: FlowRecord): Record<string, string> {
  return { application, service, instance };
}

function latest(released: Readonly<Record<string, Release>>): Readonly<Record<string, Release>> {
  const all = Object.entries(released);
  if (all.length <= mostReleases) return released;
  return Object.fromEntries(all.sort(([, one], [, other]) => one.at - other.at).slice(-mostReleases));
}

/** Somebody follows the namespace, and looks at it now. */
export function followed(resource: Namespace): Pick<Change, "accept" | "hurry"> {
  const open = resource?.open.find(({ kind }) => kind === followKind);
  return open === undefined ? { accept: [{ kind: followKind }] } : { hurry: [open.id] };
}

function added(names: readonly string[], name: string): readonly string[] {
  return names.includes(name) ? names : [...names, name].sort();
}
