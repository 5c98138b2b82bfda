import type { Json } from "../json.js";
import { isReserved } from "../names.js";
import type { OpenOperation } from "../operation.js";
import type { Resource } from "../resource.js";
import type { ResourceState } from "../state.js";
import { type Moment, withStateInQueue, withStates } from "./operation-state.js";
import { inOrder } from "./queue.js";

/** The resource as decisions see it. `behind`: operations behind those in the record that are to be in sight. */
export function viewOf(
  key: string,
  seq: number,
  state: ResourceState,
  parts: ReadonlyMap<string, string | null>,
  moment: Moment,
  behind: readonly OpenOperation[] = [],
): Resource {
  const values = new Map<string, Json>();
  for (const [id, body] of parts) {
    if (body !== null && !isReserved(id)) values.set(id, JSON.parse(body) as Json);
  }
  const { data, labels, queued, last } = state;
  const queuedElsewhere = queued - behind.length;
  const running = moment.leased;
  if (state.open.length === 0 && behind.length === 0)
    return { key, seq, data, labels, parts: values, open: [], queued: queuedElsewhere, last, running };
  // Told when they are asked for: most decisions do not look at them.
  let open: Resource["open"] | undefined;
  return {
    key,
    seq,
    data,
    labels,
    parts: values,
    get open() {
      open ??= inOrder(
        withStates(state.open, moment),
        behind.map((waiting) => withStateInQueue(waiting, moment)),
      );
      return open;
    },
    queued: queuedElsewhere,
    last,
    running,
  };
}
