import { instanceKey, instanceService } from "@osbert/broker";
import { type Journal, RetryLater, type TypedKind, type TypedOperation, type TypedResource } from "@osbert/journal";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError } from "../cluster/cluster-error.js";
import { release } from "../flows/claims.js";
import { decidePass, type Pass, type StoredNamespace } from "../flows/decide-pass.js";
import { isOwn } from "../flows/desired-objects.js";
import {
  conditionOf,
  flowPart,
  flowPrefix,
  followKind,
  type NamespaceShape,
  namespaceResource,
  type SharedBroker,
  wirePart,
  wirePrefix,
} from "../flows/flow-record.js";
import { type FlowSettings, kinds } from "../flows/flow-settings.js";
import type { Evidence } from "../flows/next-broker.js";
import { isRecord } from "../flows/observed.js";
import type { Action } from "../flows/pass.js";
import { refusedAgain } from "../flows/refusals.js";
import type { FlowObserver } from "../watch/flow-event.js";
import { type Carried, carryOut, nameOf } from "./carry-out.js";
import type { FlowWatches } from "./flow-watches.js";
import { byEventFlow, hurryWaiting } from "./hurry-waiting.js";
import { NamespaceMemories, type NamespaceMemory } from "./namespace-memory.js";

export interface FollowNamespacePorts {
  readonly journal: () => Journal;
  readonly cluster: Cluster;
  readonly watches: () => FlowWatches;
  readonly settings: FlowSettings;
  readonly tell: FlowObserver;
  readonly random: () => number;
}

type FollowOperation = TypedOperation<NamespaceShape, typeof followKind>;

/** Not sooner, however much there is to do: what was done has to be seen first. */
const leastPauseMs = 200;
/** Then another operation goes on: a journal keeps all entries of one that is open, and this one would be for years. */
const renewedAfterMs = 24 * 60 * 60 * 1_000;
/** What no journal could keep, or a person has cancelled, is begun again after so long. */
const failedAgainMs = 60_000;

/**
 * The operation that a namespace has for as long as there are flows in it, or something is left of them. It alone writes to the cluster for them: the
 * journal sees to it that one process does, and that another goes on when that dies. The order is always the same: decide, commit what was
 * decided, act, look again. Killed anywhere, the next look comes to the same actions.
 */
export function followNamespace(ports: FollowNamespacePorts): TypedKind<NamespaceShape, typeof followKind> {
  const memories = new NamespaceMemories();
  return {
    deadlineMs: null,
    run: (operation) =>
      operation.poll("following", ({ signal }) => followOnce(ports, memories, operation, signal), {
        everyMs: ports.settings.resyncMs,
      }),
    // A claim that came while it ended counts on somebody who follows. What ended it badly is not met again at once.
    settle: ({ data }, _operation, { kind }) =>
      isHeld(data)
        ? { accept: [{ kind: followKind, ...(kind !== "succeeded" && { delayMs: failedAgainMs }) }] }
        : { gone: true },
  };
}

/** Something is to be followed; beside it, only what is left of wires. */
export function isHeld({ holders, broker, released }: NamespaceShape["data"]): boolean {
  return holders.length > 0 || broker.state !== "absent" || Object.keys(released).length > 0;
}

/** Answers when there is nothing left to follow; throws RetryLater for the next look. */
async function followOnce(
  ports: FollowNamespacePorts,
  memories: NamespaceMemories,
  operation: FollowOperation,
  signal: AbortSignal,
): Promise<null> {
  const journal = ports.journal();
  const began = journal.now();
  const stored = await readNamespace(journal, operation);
  if (stored === undefined) return null;
  const { namespace } = stored.data;
  const memory = memories.of(namespace, began);
  const first = look(ports, stored, memory);
  const evidence = first.asks ? await askForBroker(ports, namespace, signal) : undefined;
  const pass =
    first.change === null && evidence === undefined ? first : await commit(ports, operation, memory, evidence);
  memory.pending = pass.pending;
  memory.forget(new Set([...stored.wires].filter(([id]) => !pass.after.wires.has(id)).map(([, { name }]) => name)));
  tellOf(ports, stored, pass);
  const { due, nextAt } = memory.due(pass.actions, began);
  const afterMs = await act(ports, operation, memory, due, signal);
  await wake(journal, pass.wake);
  const now = journal.now();
  const pauses = [
    ports.settings.resyncMs * (0.9 + ports.random() / 5),
    ...[pass.dueAt, nextAt].flatMap((at) => (at === null ? [] : [at - now])),
    ...(afterMs === null ? [] : [afterMs]),
  ];
  const againMs = Math.max(leastPauseMs, Math.min(...pauses));
  const { data, flows } = pass.after;
  ports.tell({
    ...{ kind: "namespace looked at", namespace, tookMs: now - began, brokerState: data.broker.state, againMs },
    flows: [...flows.values()].map((flow) => ({
      application: flow.application,
      ready: conditionOf(flow, "Ready")?.status ?? "Unknown",
    })),
  });
  if (pass.isOver) {
    memories.forget(namespace);
    return null;
  }
  memories.keep(namespace, memory, now + againMs);
  if (isHeld(data) && now - operation.acceptedAt >= renewedAfterMs) {
    await releaseOrphans(journal, operation.key, pass.after);
    return null;
  }
  throw new RetryLater("until something changes", { afterMs: againMs });
}

/** Flows whose instances are gone without having let go: an operator has purged them, or deleted them by force. Nobody else would ever let go. */
async function releaseOrphans(journal: Journal, key: string, { data, flows }: StoredNamespace): Promise<void> {
  for (const [flow, { platform, instance, operation }] of flows) {
    const found = await journal.read(instanceKey(platform, instance));
    if (found !== undefined && instanceService(found) !== undefined) continue;
    const orphan = { flow, namespace: data.namespace, platform, instance, operation };
    await journal.transact(
      key,
      namespaceResource.decide((resource, now) => release(resource, orphan, now)),
      { by: byEventFlow, parts: [flowPart(flow)] },
    );
  }
}

async function readNamespace(journal: Journal, operation: FollowOperation): Promise<StoredNamespace | undefined> {
  const data = namespaceResource.resource(await journal.read(operation.key))?.data;
  if (data === undefined || data === null) return undefined;
  const [flows, wires] = await Promise.all([
    operation.partsUnder(flowPrefix, { limit: 1_000 }),
    operation.partsUnder(wirePrefix, { limit: 1_000 }),
  ]);
  return {
    data,
    flows: new Map(flows.items.map(({ id, value }) => [id.slice(flowPrefix.length), value])),
    wires: new Map(wires.items.map(({ id, value }) => [id.slice(wirePrefix.length), value])),
  };
}

export function storedNamespace({ data, parts }: TypedResource<NamespaceShape>): StoredNamespace {
  const ids = [...parts.keys()];
  const flows = ids.flatMap((id) => {
    if (!id.startsWith(flowPrefix)) return [];
    const flow = parts.get(id as `flow/${string}`);
    return flow === undefined ? [] : [[id.slice(flowPrefix.length), flow] as const];
  });
  const wires = ids.flatMap((id) => {
    if (!id.startsWith(wirePrefix)) return [];
    const wire = parts.get(id as `wire/${string}`);
    return wire === undefined ? [] : [[id.slice(wirePrefix.length), wire] as const];
  });
  return { data, flows: new Map(flows), wires: new Map(wires) };
}

function look(
  ports: FollowNamespacePorts,
  stored: StoredNamespace,
  memory: NamespaceMemory,
  evidence?: Evidence,
): Pass {
  const observed = ports.watches().observe(stored);
  return decidePass(stored, observed, {
    settings: ports.settings,
    now: ports.journal().now(),
    pending: memory.pending,
    evidence,
  });
}

/** Decides on what is kept at the moment of the commit: a claim that has come meanwhile counts. */
async function commit(
  ports: FollowNamespacePorts,
  operation: FollowOperation,
  memory: NamespaceMemory,
  evidence: Evidence | undefined,
): Promise<Pass> {
  let pass: Pass | undefined;
  await operation.change(
    (resource) => {
      pass = look(ports, storedNamespace(resource), memory, evidence);
      return pass.change ?? {};
    },
    { partsUnder: [flowPrefix, wirePrefix] },
  );
  if (pass === undefined) throw new Error("a change was committed that nobody has decided");
  return pass;
}

/** What cannot be found out holds up nothing else that there is to do: the Broker stays, and is asked for again later. */
async function askForBroker(ports: FollowNamespacePorts, namespace: string, signal: AbortSignal): Promise<Evidence> {
  try {
    return await useOfBroker(ports, namespace, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ClusterError)) throw error;
    ports.tell({ kind: "cluster refused", namespace, what: "broker", name: ports.settings.brokerName, error });
    return { kind: "used" };
  }
}

/**
 * Whether somebody else uses a Broker that no flow needs: asked of the cluster itself, because a copy may lack a Trigger that was made a moment ago.
 * A Broker with Triggers holds others' events.
 */
async function useOfBroker(
  { cluster, settings }: FollowNamespacePorts,
  namespace: string,
  signal: AbortSignal,
): Promise<Evidence> {
  const { brokerName, deleteBroker } = settings;
  const seen = await cluster.read(kinds.broker, { namespace, name: brokerName }, { signal });
  if (seen === undefined) return { kind: "gone" };
  if (!isOwn(seen, settings)) return { kind: "used" };
  if (deleteBroker === "whenUnused") {
    for await (const { spec } of cluster.list(kinds.trigger, { namespace, signal }))
      if (isRecord(spec) && spec.broker === brokerName) return { kind: "used" };
  }
  const { uid = "", resourceVersion = "" } = seen.metadata;
  return { kind: "unused", uid, resourceVersion };
}

/** Carries actions out, one after the other. Answers when to try again what could not be done; `null`: all is done. */
async function act(
  ports: FollowNamespacePorts,
  operation: FollowOperation,
  memory: NamespaceMemory,
  actions: readonly Action[],
  signal: AbortSignal,
): Promise<number | null> {
  const { cluster, tell, journal } = ports;
  const { namespace } = operation.data;
  let again: number | null = null;
  for (const action of actions) {
    signal.throwIfAborted();
    const carried = await carryOut(cluster, action, signal);
    const { what } = action;
    const name = nameOf(action);
    if (carried.kind === "done") {
      memory.done(action, journal().now());
      tell({ kind: "cluster changed", namespace, what, done: action.kind === "remove" ? "removed" : "applied", name });
      continue;
    }
    if (carried.error !== null) tell({ kind: "cluster refused", namespace, what, name, error: carried.error });
    const askedMs = carried.kind === "later" ? (carried.afterMs ?? 0) : 0;
    const pauseMs = memory.failed(action, askedMs, journal().now());
    if (carried.error !== null) await noteFailure(operation, action, carried, journal().now());
    again = Math.min(again ?? pauseMs, pauseMs);
  }
  return again;
}

/** Kept, because whoever waits for it has to be told why, and fails when the cluster refuses it for long. */
async function noteFailure(
  operation: FollowOperation,
  action: Action,
  { kind, error }: Exclude<Carried, { readonly kind: "done" }>,
  now: number,
): Promise<void> {
  const message = error instanceof Error ? error.message : "unknown error";
  const isRefused = kind === "refused" && action.kind === "apply";
  const noted = <Kept extends Pick<SharedBroker, "refused" | "trouble">>(kept: Kept): Kept =>
    isRefused
      ? { ...kept, refused: refusedAgain(kept.refused, message, now), trouble: null }
      : { ...kept, trouble: message };
  switch (action.what) {
    case "broker":
      return operation.change(({ data }) => {
        if (!isRefused && data.broker.trouble === message) return {};
        return { data: { ...data, broker: noted(data.broker) } };
      });
    case "policy":
      return operation.change(({ data }) =>
        data.policyTrouble === message ? {} : { data: { ...data, policyTrouble: message } },
      );
    case "subscription":
      return operation.change(
        (resource) => {
          const wire = [...storedNamespace(resource).wires.values()].find(({ name }) => name === nameOf(action));
          if (wire === undefined || (!isRefused && wire.trouble === message)) return {};
          return { parts: namespaceResource.part(wirePart(wire.application), noted(wire)) };
        },
        { partsUnder: [wirePrefix] },
      );
    case "mirror":
      return;
  }
}

/** Operations of instances that wait for what has changed look now. What is missed here they see at their next look. */
async function wake(journal: Journal, instances: Pass["wake"]): Promise<void> {
  for (const { platform, instance } of instances) await hurryWaiting(journal, instanceKey(platform, instance));
}

function tellOf({ tell }: FollowNamespacePorts, before: StoredNamespace, { after, change }: Pass): void {
  if (change === null) return;
  const { namespace, broker, holders } = after.data;
  if (before.data.broker.state !== broker.state) {
    tell({
      kind: "broker state",
      namespace,
      from: before.data.broker.state,
      to: broker.state,
      holders: holders.length,
    });
  }
  for (const [flow, record] of after.flows) {
    for (const condition of record.conditions) {
      const was = conditionOf(before.flows.get(flow) ?? { conditions: [] }, condition.type);
      if (was?.status === condition.status) continue;
      const afterMs = was === undefined ? null : condition.since - was.since;
      const sinceClaimMs = condition.since - record.since;
      tell({
        kind: "flow condition",
        namespace,
        flow,
        application: record.application,
        condition,
        afterMs,
        sinceClaimMs,
      });
    }
  }
}
