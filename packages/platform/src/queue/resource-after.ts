import type { OpenOperation } from "@osbert/journal";
import type { Desk, Inputs } from "../decisions/desk.js";
import type { InstanceChange, InstanceResource } from "../decisions/queue-state.js";
import type { InstanceData } from "../records/instance-record.js";

export interface Seen {
  readonly resource: InstanceResource;
  readonly inputs: Inputs;
}

/**
 * An instance as a commit has left it, made of what was decided on: whoever asked for a change is told of it without another read. It is made when
 * it is asked for. `undefined`: the change did more to the queue than to add to its end, so that it has to be read.
 */
export function resourceAfter(
  key: string,
  { resource, request }: Pick<Desk, "resource" | "request">,
  change: InstanceChange,
  accepted: readonly OpenOperation[],
): (() => Seen) | undefined {
  const { data, accept = [], cancel, hold, release, order } = change;
  const moves = [cancel, hold, release, order].some(
    (list) => list !== undefined && !(Array.isArray(list) && list.length === 0),
  );
  const before = resource?.open ?? [];
  const isBehind = before.length === 0 || accept.every(({ place }) => place !== "front");
  if (data === undefined || moves || !isBehind || accept.length > 1) return undefined;
  return () => seenAfter(key, { resource, request }, change, data, accepted);
}

function seenAfter(
  key: string,
  { resource, request }: Pick<Desk, "resource" | "request">,
  change: InstanceChange,
  data: InstanceData,
  accepted: readonly OpenOperation[],
): Seen {
  const { accept = [] } = change;
  const before = resource?.open ?? [];
  const added = accept.flatMap(({ brief }, index) => {
    const operation = accepted[index];
    if (operation === undefined) return [];
    const state = operation.held ? ("held" as const) : ("queued" as const);
    // The new member first: what is added behind a spread costs as much as the rest of this.
    return [{ state, ...operation, brief }];
  });
  const inputs = new Map(request.inputs ?? []);
  for (const [index, { id }] of accepted.entries()) inputs.set(id, { by: request.by, input: accept[index]?.input });
  return {
    inputs,
    resource: {
      key,
      seq: resource?.seq ?? 0,
      labels: resource?.labels ?? {},
      queued: resource?.queued ?? 0,
      last: resource?.last ?? null,
      running: resource?.running ?? false,
      data,
      open: [...before, ...added],
      parts: partsAfter(resource?.parts, change.parts),
    },
  };
}

function partsAfter(
  before: InstanceResource["parts"] | undefined,
  written: InstanceChange["parts"],
): InstanceResource["parts"] {
  if (written === undefined) return before ?? new Map();
  const parts = new Map<string, unknown>(before ?? []);
  for (const [id, value] of Object.entries(written)) {
    if (value === null) parts.delete(id);
    else parts.set(id, value);
  }
  // Each value came with its own id, which a Map cannot say.
  return new Map([...parts].sort(([one], [other]) => (one < other ? -1 : 1))) as unknown as InstanceResource["parts"];
}
