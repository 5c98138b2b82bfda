import type { Journal } from "@osbert/journal";
import type { Cluster } from "../cluster/cluster.js";
import type { StoredNamespace } from "../flows/decide-pass.js";
import { namespaceResource, type SharedBroker, wirePart, wirePrefix } from "../flows/flow-record.js";
import type { FlowSettings } from "../flows/flow-settings.js";
import type { Action } from "../flows/pass.js";
import { isOldRefusal, refusedAgain } from "../flows/refusals.js";
import type { FlowObserver } from "../watch/flow-event.js";
import { type Carried, carryOut, nameOf } from "./carry-out.js";
import type { NamespaceMemory } from "./namespace-memory.js";
import { type FollowOperation, storedNamespace } from "./stored-namespace.js";

export interface ActPorts {
  readonly journal: () => Journal;
  readonly cluster: Cluster;
  readonly settings: FlowSettings;
  readonly tell: FlowObserver;
}

/** Carries actions out, one after the other. Answers when to try again what could not be done; `null`: all is done. */
export async function act(
  ports: ActPorts,
  operation: FollowOperation,
  memory: NamespaceMemory,
  actions: readonly Action[],
  { flows }: Pick<StoredNamespace, "flows">,
  signal: AbortSignal,
): Promise<number | null> {
  const { cluster, tell, journal, settings } = ports;
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
    const now = journal().now();
    const askedMs = carried.kind === "later" ? (carried.afterMs ?? 0) : 0;
    // While somebody who came lately waits for it, what is refused is tried as often as what fails.
    const wordAt = lastWordAt(flows);
    const isPatient = carried.kind === "refused" && now - wordAt > settings.softDeadlineMs;
    const pauseMs = isPatient ? memory.refused(action, now) : memory.failed(action, askedMs, now);
    if (carried.error !== null)
      await noteFailure(operation, action, carried, { now, wordAt, refusedMs: settings.refusedMs });
    again = Math.min(again ?? pauseMs, pauseMs);
  }
  return again;
}

/** When an instance has last asked for something here. */
function lastWordAt(flows: StoredNamespace["flows"]): number {
  return Math.max(0, ...[...flows.values()].map(({ since, deliveryAt }) => Math.max(since, deliveryAt)));
}

/**
 * Kept, because whoever waits for it has to be told why, and fails when the cluster refuses it for long. What says the same again is written for as
 * long as somebody waits for that, and then no more: it may be refused for years.
 */
async function noteFailure(
  operation: FollowOperation,
  action: Action,
  { kind, error }: Exclude<Carried, { readonly kind: "done" }>,
  { now, wordAt, refusedMs }: { readonly now: number; readonly wordAt: number; readonly refusedMs: number },
): Promise<void> {
  const message = error instanceof Error ? error.message : "unknown error";
  const isRefused = kind === "refused" && action.kind === "apply";
  const noted = <Kept extends Pick<SharedBroker, "refused" | "trouble">>(kept: Kept): Kept =>
    isRefused
      ? { ...kept, refused: refusedAgain(kept.refused, message, now), trouble: null }
      : { ...kept, trouble: message };
  const isOld = ({ refused, trouble }: Pick<SharedBroker, "refused" | "trouble">) =>
    isRefused ? isOldRefusal(refused, message, wordAt, refusedMs) : trouble === message;
  switch (action.what) {
    case "broker":
      return operation.change(({ data }) => {
        if (isOld(data.broker)) return {};
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
          if (wire === undefined || isOld(wire)) return {};
          return { parts: namespaceResource.part(wirePart(wire.application), noted(wire)) };
        },
        { partsUnder: [wirePrefix] },
      );
    case "mirror":
      return;
  }
}
