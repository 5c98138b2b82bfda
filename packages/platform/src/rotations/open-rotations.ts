import type { Journal, OperationKinds, Page, TypedResource } from "@osbert/journal";
import { isPlannedFor } from "../decisions/same-binding.js";
import { rotationLane } from "../decisions/schedule-rotation.js";
import type { Instances, Rotations, RotationView } from "../platform.js";
import { instances as instanceRecords } from "../records/instance-record.js";
import { keys } from "../records/keys.js";
import { type RotationShape, rotationRecords } from "../records/rotation-record.js";
import { renewBinding } from "./renew-binding.js";

export interface OpenRotationsOptions {
  readonly journal: () => Journal;
  readonly instances: () => Pick<Instances, "read" | "rotate" | "unbind">;
  /** How long the old binding is kept when the new one is there. Default: an hour. */
  readonly overlapMs?: number;
}

export interface OpenedRotations {
  readonly kinds: OperationKinds;
  readonly rotations: Rotations;
}

const usualOverlapMs = 60 * 60_000;

export function openRotations({
  journal,
  instances,
  overlapMs = usualOverlapMs,
}: OpenRotationsOptions): OpenedRotations {
  return {
    kinds: rotationRecords.kinds({ renew: renewBinding({ now: () => journal().now(), instances, overlapMs }) }),
    rotations: { due: (query) => due(journal(), query) },
  };
}

/**
 * Of all spaces in the order of their times, which the journal keeps; of one space by its keys, in the order of times within a page: the place
 * where a page ends is told, and must name nothing of another space. Bindings that somebody has unbound are left out: nothing comes of them.
 */
async function due(
  journal: Journal,
  { space, after, limit }: { readonly space?: string; readonly after?: string; readonly limit?: number },
): Promise<Page<RotationView>> {
  const page = { ...(after !== undefined && { after }), ...(limit !== undefined && { limit }) };
  const { items, next } = await (space === undefined
    ? journal.withWork({ lane: rotationLane, ...page })
    : journal.find({ prefix: keys.rotationsOf(space), ...page }));
  const found = items.map((resource) => rotationRecords.resource(resource)).filter(({ open }) => open.length > 0);
  const isThere = await Promise.all(found.map((rotation) => hasBinding(journal, rotation)));
  const listed = found.filter((_, at) => isThere[at]).map(({ data }) => data);
  return { items: listed.sort((a, b) => a.renewAt - b.renewAt), next };
}

async function hasBinding(journal: Journal, { data, open }: TypedResource<RotationShape>): Promise<boolean> {
  const part = `binding/${data.binding}` as const;
  const resource = await journal.read(keys.instance(data.space, data.instance), [part]);
  const record = instanceRecords.resource(resource)?.parts.get(part);
  // Of two, the older one is being called off.
  return record !== undefined && isPlannedFor(data, open.at(-1)?.acceptedAt ?? 0, record);
}
