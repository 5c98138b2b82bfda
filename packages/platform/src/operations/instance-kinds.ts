import { randomUUID } from "node:crypto";
import type { OperationKinds, TypedChange, TypedKind } from "@osbert/journal";
import { readsInterrupted } from "../decisions/interrupted.js";
import { type InstanceData, type InstanceShape, instances } from "../records/instance-record.js";
import type { InstanceKindName, Settle } from "./instance-operation.js";
import { defaultPauses } from "./pauses.js";
import { runAdopt } from "./run-adopt.js";
import { runBind } from "./run-bind.js";
import { runCreate } from "./run-create.js";
import { runDelete } from "./run-delete.js";
import type { RunPorts } from "./run-ports.js";
import { runUnbind } from "./run-unbind.js";
import { runUpdate } from "./run-update.js";

/** `brokers` and `journal` are needed; the rest has a default. */
export type KindPorts = Pick<RunPorts, "brokers" | "journal"> & Partial<RunPorts>;

export type Settles = { readonly [Name in InstanceKindName]: Settle<Name> };

/**
 * Playing an instance's queue against its broker. None of them has a deadline of the journal's: that would end what has been sent, and nobody would
 * hear what became of it. What was never sent has one of its own.
 */
export function instanceKinds(given: KindPorts, settles: Settles): OperationKinds {
  const ports = runPorts(given);
  return instances.kinds({
    create: kind(settles.create, (operation) => runCreate(ports, operation)),
    update: kind(settles.update, (operation) => runUpdate(ports, operation)),
    delete: { ...kind(settles.delete, (operation) => runDelete(ports, operation)), reads: readsInterrupted },
    adopt: kind(settles.adopt, (operation) => runAdopt(ports, operation)),
    bind: { ...kind(settles.bind, (operation) => runBind(ports, operation)), mode: "shared" },
    unbind: {
      ...kind(settles.unbind, (operation) => runUnbind(ports, operation)),
      mode: "shared",
      reads: readsInterrupted,
    },
  });
}

export function runPorts(given: KindPorts): RunPorts {
  return { newId: randomUUID, random: Math.random, pauses: defaultPauses, recheck: () => null, ...given };
}

function kind<Name extends InstanceKindName>(
  settle: Settle<Name>,
  run: TypedKind<InstanceShape, Name>["run"],
): TypedKind<InstanceShape, Name> {
  return {
    deadlineMs: null,
    // A delete takes up to 100 bindings along beside 50 changes: what holds them, and what they hold, is decided about all of them.
    open: "all",
    run,
    settle: (resource, operation, outcome) => {
      const { attempt } = resource.data;
      const isOwn = attempt?.operation === operation.id;
      const isUnanswered = isOwn && !operation.steps.some(([name]) => name === attempt.call);
      const data = isOwn ? { ...resource.data, attempt: null } : resource.data;
      // It was told to stop while a call was under way: what the broker did is not known.
      const at = isUnanswered ? attempt.since : 0;
      const known = isUnanswered ? { ...data, uncertainSince: { operation: operation.id, at } } : data;
      const seen = known === resource.data ? resource : { ...resource, data: known };
      return ended(operation.id, isOwn ? known : undefined, settle(seen, operation, outcome));
    },
  };
}

/** The mark goes with the end of its operation. */
function ended(
  operation: string,
  data: InstanceData | undefined,
  change: TypedChange<InstanceShape>,
): TypedChange<InstanceShape> {
  const mark = `call/${operation}` as const;
  const isWhole = change.parts?.[mark] === null && (change.data !== undefined || data === undefined);
  if (isWhole) return change;
  const parts = { ...change.parts, ...instances.part(mark, null) };
  return { ...(data !== undefined && { data }), ...change, parts };
}
