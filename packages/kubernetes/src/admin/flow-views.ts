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
  readonly refused: RefusalView | null;
  readonly flows: readonly FlowView[];
  readonly wires: readonly WireView[];
}

export interface FlowView {
  readonly id: string;
  readonly instance: string;
  readonly application: string;
  readonly service: string;
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

export function namespaceSummary({ data }: Pick<TypedResource<NamespaceShape>, "data">): NamespaceSummary {
  const { namespace, holders, applications, broker } = data;
  return { namespace, flows: holders.length, applications, broker: broker.state, adopted: broker.adopted };
}

export function namespaceView({ data, parts }: Pick<TypedResource<NamespaceShape>, "data" | "parts">): NamespaceView {
  const { broker } = data;
  const flows: FlowView[] = [];
  const wires: WireView[] = [];
  for (const [id, part] of parts) {
    if (id.startsWith(flowPrefix)) flows.push(flowView(id.slice(flowPrefix.length), part as FlowRecord));
    else if (id.startsWith(wirePrefix)) wires.push(wireView(part as WireRecord));
  }
  return {
    ...namespaceSummary({ data }),
    ...{ broker_epoch: broker.epoch, linger_until: when(broker.lingerUntil), refused: refusalView(broker.refused) },
    ...{ flows, wires },
  };
}

function flowView(id: string, flow: FlowRecord): FlowView {
  const { instance, application, service, since, activatedAt, conditions } = flow;
  const ready = conditionOf(flow, "Ready");
  return {
    ...{ id, instance, application, service, since: iso(since), activated_at: when(activatedAt) },
    ...{ ready: ready?.status ?? "Unknown", reason: ready?.reason ?? "NotLookedAt" },
    conditions: conditions.map((condition: Condition) => ({ ...condition, since: iso(condition.since) })),
  };
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

export function historyView({ seq, at, kind, payload }: Entry): HistoryView {
  return { seq, at: iso(at), kind, what: payload };
}

function when(at: number | null): string | null {
  return at === null ? null : iso(at);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
