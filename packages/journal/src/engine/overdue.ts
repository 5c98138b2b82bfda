import type { Draft } from "../decisions/draft.js";
import { mostEnds, queuedOperation, queuePrefix } from "../decisions/queue.js";
import { isPast, overdue } from "../decisions/schedule.js";
import { Interrupted } from "../errors.js";
import { becauseOf, type OpenOperation, type Outcome } from "../operation.js";
import type { Store, StoredPart } from "../store.js";
import type { Cell } from "./cell.js";
import type { StoreTime } from "./time.js";
import type { Writer } from "./writer.js";

export interface OverduePorts {
  readonly store: Store;
  readonly writer: Writer;
  readonly time: StoreTime;
  /** A change of a held resource, within its cell's turn. */
  readonly write: (cell: Cell, write: (draft: Draft) => void) => Promise<void>;
}

/** Queued operations that are looked at in one go. */
const queuePage = 500;

/** Ends operations of held resources that were told to stop, or whose time is up, and that nobody runs. */
export class Overdue {
  readonly #ports: OverduePorts;

  constructor(ports: OverduePorts) {
    this.#ports = ports;
  }

  /** Ends what was cancelled or whose time is up. What runs here is told to stop and ends when it has. */
  async end(cell: Cell): Promise<void> {
    const state = cell.snapshot?.state;
    if (state === undefined) return;
    const late = overdue(state, this.#now());
    for (const { id, cancel } of late) {
      if (cancel !== null) cell.attempts.get(id)?.interrupt(new Interrupted("cancelled", cancel.reason));
    }
    const idle = late.filter(({ id }) => !cell.attempts.has(id));
    if (idle.length === 0) return;
    await this.#ports.write(cell, (draft) => {
      for (const { id } of idle) {
        const open = draft.state.open.find((operation) => operation.id === id);
        if (open === undefined) continue;
        if (open.cancel === null) draft.settle(open, pastDeadline(open), becauseOf(open));
        else draft.settle(open, { kind: "cancelled", reason: open.cancel.reason }, open.cancel.attribution);
      }
    });
    // An end may have cancelled others, by its kind's `settle`: those that nobody runs end as well, and those that run are told.
    if (cell.held !== undefined) await this.end(cell);
  }

  /** The same for those that wait in parts. */
  async endQueued(cell: Cell): Promise<void> {
    const now = this.#now();
    if (cell.held === undefined || !cell.snapshot || !isPast(cell.snapshot.state.queuedDeadlineAt, now)) return;
    const { store, writer } = this.#ports;
    const { record, state } = cell.snapshot;
    const { seq } = record;
    const late: string[] = [];
    let rest: number | null = null;
    for (let after: string | null = null; ; ) {
      const range = { prefix: queuePrefix, after, limit: queuePage };
      const page: readonly StoredPart[] = await writer.persist("read", () => store.parts(cell.key, range));
      for (const { body } of page) {
        const { id, deadlineAt, cancel } = queuedOperation(body, state);
        if (cancel !== null || isPast(deadlineAt, now)) late.push(id);
        else if (deadlineAt !== null) rest = Math.min(rest ?? deadlineAt, deadlineAt);
      }
      after = page.at(-1)?.id ?? null;
      if (page.length < queuePage) break;
    }
    const failed = pastDeadline({ lastError: null });
    // In bites, so that no commit is too large. Also where none is late, that it was looked at is noted.
    for (let from = 0; from === 0 || from < late.length; from += mostEnds) {
      if (cell.held === undefined) return;
      await this.#ports.write(cell, (draft) => {
        // What others have queued since it was read, or the ends before, may have an earlier deadline: then it is looked at again.
        const certain = late.length <= mostEnds && draft.base.seq === seq;
        draft.settleQueued(late.slice(from, from + mostEnds), failed, certain ? rest : now, certain);
      });
    }
    if (late.length > mostEnds) await this.endQueued(cell);
  }

  #now(): number {
    return this.#ports.time.now();
  }
}

export function pastDeadline({ lastError }: Pick<OpenOperation, "lastError">): Outcome {
  const message = `the deadline has passed${lastError === null ? "" : `; the last attempt failed with: ${lastError}`}`;
  return { kind: "failed", error: { message, class: "deadline" } };
}
