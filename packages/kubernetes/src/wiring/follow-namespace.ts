import { instanceKey, instanceService } from "@osbert/broker";
import { type Journal, RetryLater, type TypedKind } from "@osbert/journal";
import { release } from "../flows/claims.js";
import { decidePass, type Pass, type StoredNamespace } from "../flows/decide-pass.js";
import {
  conditionOf,
  flowPart,
  flowPrefix,
  followKind,
  isHeld,
  type NamespaceShape,
  namespaceResource,
  wirePrefix,
} from "../flows/flow-record.js";
import type { Evidence } from "../flows/next-broker.js";
import { type ActPorts, act } from "./act.js";
import type { FlowWatches } from "./flow-watches.js";
import { byEventFlow, hurryWaiting } from "./hurry-waiting.js";
import { NamespaceMemories, type NamespaceMemory } from "./namespace-memory.js";
import { type FollowOperation, readNamespace, storedNamespace } from "./stored-namespace.js";
import { tellOfPass } from "./tell-of-pass.js";
import { useOfBroker } from "./use-of-broker.js";

export interface FollowNamespacePorts extends ActPorts {
  readonly watches: () => FlowWatches;
  readonly random: () => number;
}

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
  memory.begin(began);
  const first = look(ports, stored, memory);
  const evidence = first.asks ? await useOfBroker(ports, namespace, signal) : undefined;
  const pass =
    first.change === null && evidence === undefined ? first : await commit(ports, operation, memory, evidence);
  memory.pending = pass.pending;
  memory.forget(new Set([...stored.wires].filter(([id]) => !pass.after.wires.has(id)).map(([, { name }]) => name)));
  tellOfPass(ports.tell, stored, pass);
  const { due, nextAt } = memory.due(pass.actions, began);
  const afterMs = await act(ports, operation, memory, due, pass.after, signal);
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
  memory.end(now + againMs);
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

/** Operations of instances that wait for what has changed look now. What is missed here they see at their next look. */
async function wake(journal: Journal, instances: Pass["wake"]): Promise<void> {
  for (const { platform, instance } of instances) await hurryWaiting(journal, instanceKey(platform, instance));
}
