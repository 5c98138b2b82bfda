import type { Entry, TypedResource } from "@osbert/journal";
import {
  type Condition,
  conditionOf,
  type FlowRecord,
  flowPrefix,
  type NamespaceShape,
  type Refusals,
  type WireRecord,
  wirePrefix,
} from "../flows/flow-record.js";
import { isRecord } from "../flows/observed.js";

/** A namespace as an operator sees it in a list. */
export interface NamespaceSummary {
  readonly namespace: string;
  readonly flows: number;
  readonly applications: readonly string[];
  readonly broker: string;
  readonly adopted: boolean;
}

export interface NamespaceView extends Omit<NamespaceSummary, "flows"> {
  readonly broker_epoch: number;
  readonly linger_until: string | null;
  /** Why a Broker that no flow needs any more is kept. */
  readonly kept_because: string | null;
  readonly refused: RefusalView | null;
  readonly flows: readonly FlowView[];
  readonly wires: readonly WireView[];
}

export interface FlowView {
  readonly id: string;
  readonly instance: string;
  /** What its user calls it. `null`: the platform does not say. */
  readonly instance_name: string | null;
  readonly application: string;
  readonly service: string;
  /** `null`: the application does not offer it any more. */
  readonly service_name: string | null;
  readonly since: string;
  readonly activated_at: string | null;
  readonly ready: string;
  readonly reason: string;
  readonly conditions: readonly ConditionView[];
}

export interface ConditionView {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since: string;
}

/** The Subscription of an application. */
export interface WireView {
  readonly application: string;
  readonly subscription: string;
  readonly state: string;
  readonly holders: readonly string[];
  readonly refused: RefusalView | null;
  readonly repairs: number;
}

export interface RefusalView {
  readonly times: number;
  readonly since: string;
  readonly message: string;
}

/** A line of the history of a namespace. */
export interface HistoryView {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly what: unknown;
}

/** What a service of an application is called now. `null`: it is not there. */
export type ServiceName = (application: string, service: string) => string | null;

export function namespaceSummary({ data }: Pick<TypedResource<NamespaceShape>, "data">): NamespaceSummary {
  const { namespace, holders, applications, broker } = data;
  return { namespace, flows: holders.length, applications, broker: broker.state, adopted: broker.adopted };
}

export function namespaceView(
  { data, parts }: Pick<TypedResource<NamespaceShape>, "data" | "parts">,
  serviceName: ServiceName,
): NamespaceView {
  const { broker } = data;
  const flows: FlowView[] = [];
  const wires: WireView[] = [];
  for (const [id, part] of parts) {
    if (id.startsWith(flowPrefix)) flows.push(flowView(id.slice(flowPrefix.length), part as FlowRecord, serviceName));
    else if (id.startsWith(wirePrefix)) wires.push(wireView(part as WireRecord));
  }
  return {
    ...namespaceSummary({ data }),
    ...{
      broker_epoch: broker.epoch,
      linger_until: when(broker.lingerUntil),
      kept_because: broker.kept ?? null,
      refused: refusalView(broker.refused),
    },
    ...{ flows, wires },
  };
}

function flowView(id: string, flow: FlowRecord, serviceName: ServiceName): FlowView {
  const { instance, application, service, since, activatedAt, conditions } = flow;
  const ready = conditionOf(flow, "Ready");
  return {
    ...{ id, instance, instance_name: flow.instanceName ?? null },
    ...{ application, service, service_name: serviceName(application, service) },
    ...{ since: iso(since), activated_at: when(activatedAt) },
    ...{ ready: ready?.status ?? "Unknown", reason: ready?.reason ?? "NotLookedAt" },
    conditions: conditions.map(conditionView),
  };
}

function conditionView({ type, status, reason, message, since }: Condition): ConditionView {
  return { type, status, reason, message, since: iso(since) };
}

function wireView({ application, name, state, holders, refused, repairs }: WireRecord): WireView {
  return {
    application,
    subscription: name,
    state,
    holders,
    refused: refusalView(refused),
    repairs: repairs?.times ?? 0,
  };
}

function refusalView(refused: Refusals | null): RefusalView | null {
  return refused === null ? null : { times: refused.times, since: iso(refused.since), message: refused.message };
}

/** What is told of the history: what became of flows, not how the journal went about it. */
export const historyKinds: ReadonlySet<string> = new Set([
  "flow-claimed",
  "flow-released",
  "flow-condition",
  "broker-state",
  "wire-repaired",
]);

/** With the names of what it tells by its id, as far as they are known now. */
export function historyView(
  { seq, at, kind, payload }: Entry,
  flows: ReadonlyMap<string, FlowRecord>,
  serviceName: ServiceName,
): HistoryView {
  return { seq, at: iso(at), kind, what: withNames(payload, flows, serviceName) };
}

function withNames(payload: unknown, flows: ReadonlyMap<string, FlowRecord>, serviceName: ServiceName): unknown {
  if (!isRecord(payload) || typeof payload.flow !== "string") return payload;
  const known = flows.get(payload.flow);
  // Entries of earlier versions have the id alone.
  const { flow, application = known?.application, service = known?.service, instance = known?.instance } = payload;
  const name =
    typeof application === "string" && typeof service === "string" ? serviceName(application, service) : null;
  return {
    ...{ flow, application, service, ...(name !== null && { service_name: name }), instance },
    ...(known?.instanceName !== undefined && { instance_name: known.instanceName }),
    ...payload,
  };
}

function when(at: number | null): string | null {
  return at === null ? null : iso(at);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
