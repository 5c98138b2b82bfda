import { type Change, changesOfLifecycle } from "../operations.js";

/** What every resource is filled in as: one whose only operation has ended, waiting for retention in some weeks. */
export interface Settled {
  readonly seq: number;
  readonly epoch: number;
  readonly lane: string;
  readonly dueAt: number;
  readonly state: string;
  readonly token: string;
  readonly entries: readonly (Change["entries"][number] & { readonly seq: number })[];
}

/** As the journal leaves it: taken from one that it has just settled. */
export async function settledResource(): Promise<Settled> {
  const changes = await changesOfLifecycle("no step");
  const last = changes.at(-1);
  if (last === undefined || typeof last.dueAt !== "number") throw new Error("a settled operation waits for retention");
  const entries = changes.flatMap((change) => change.entries).map((entry, index) => ({ ...entry, seq: index + 1 }));
  const { epoch, lane, state, token, dueAt } = last;
  return { seq: entries.length, epoch, lane, dueAt, state, token, entries };
}
