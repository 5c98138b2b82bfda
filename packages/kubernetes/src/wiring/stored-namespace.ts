import type { Journal, TypedOperation, TypedResource } from "@osbert/journal";
import type { StoredNamespace } from "../flows/decide-pass.js";
import {
  flowPrefix,
  type followKind,
  type NamespaceShape,
  namespaceResource,
  wirePrefix,
} from "../flows/flow-record.js";

export type FollowOperation = TypedOperation<NamespaceShape, typeof followKind>;

/** All that is kept of the namespace that an operation follows. `undefined`: nothing is. */
export async function readNamespace(
  journal: Journal,
  operation: FollowOperation,
): Promise<StoredNamespace | undefined> {
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

/** The same of a resource with all its parts. */
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
