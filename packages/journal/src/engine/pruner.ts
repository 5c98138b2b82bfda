import type { Draft } from "../decisions/draft.js";
import { type Kinds, partsToSettle, rulesOf } from "../decisions/kind.js";
import { endedBadly, isBare, pruning, type Retention } from "../decisions/retention.js";
import { isPast } from "../decisions/schedule.js";
import type { Json } from "../json.js";
import type { CrashPoint, Observe } from "../observe.js";
import type { Reader } from "../reader.js";
import type { Store, StoredEntry } from "../store.js";
import { toEntry } from "../to-entry.js";
import type { Cell } from "./cell.js";
import { hasNeededNotes } from "./effects.js";
import type { Leases } from "./leases.js";
import type { StoreTime } from "./time.js";
import type { Writer } from "./writer.js";

export interface PrunerPorts {
  readonly store: Store;
  readonly writer: Writer;
  readonly reader: Reader;
  readonly leases: Leases;
  readonly time: StoreTime;
  readonly kinds: Kinds;
  readonly retention: Retention;
  readonly observe: Observe;
  readonly reached: (point: CrashPoint) => void;
  readonly after: (ms: number, wake: () => void) => () => void;
  /** Changes a resource under the lease that this engine has on it. */
  readonly write: (cell: Cell, write: (draft: Draft) => void) => Promise<void>;
}

/** Entries that retention looks at in one go. */
const pruneBatch = 2_000;
const prunePages = 10;
/** How long it may take to keep entries elsewhere, and when it is tried again after it has failed. */
const archiveWithinMs = 30_000;
const archiveAgainMs = 600_000;
/** A resource that would be removed, were it not for the note of another's effect, is looked at again after so long. */
const notedAgainMs = 600_000;
/** Parts that are read in one go. */
const partsPage = 100;

/** Removes what retention does not keep of held resources: old entries, and in the end the resource itself. */
export class Pruner {
  readonly #ports: PrunerPorts;

  constructor(ports: PrunerPorts) {
    this.#ports = ports;
  }

  /** Within the cell's turn. */
  async pruneIfDue(cell: Cell): Promise<void> {
    if (cell.held === undefined || !cell.snapshot || !isPast(cell.snapshot.state.pruneAt, this.#now())) return;
    const { store, writer, leases, retention, reached, observe, write } = this.#ports;
    const { state, record } = cell.snapshot;
    const entries: StoredEntry[] = [];
    let complete = false;
    // Behind what is kept for ever there may be what goes, so it does not stop at the first page.
    for (let pages = 0; pages < prunePages && !complete; pages++) {
      const range = { kind: "after", after: entries.at(-1)?.seq ?? 0, limit: pruneBatch } as const;
      const page = await writer.persist("read", () => store.entries(cell.key, range));
      entries.push(...page);
      complete = page.length < pruneBatch;
    }
    const needed = await this.#neededEntries(cell, entries);
    const plan = pruning(entries, complete, retention, this.#now(), state.gone, needed);
    const isUnused = state.gone && state.open.length === 0 && state.queued === 0;
    const keptLongEnough = (retention.goneMs ?? 0) === 0 || isBare(entries);
    const nothingLeft = isUnused && keptLongEnough && complete && plan.delete.length === entries.length;
    const isNoted = nothingLeft && (await writer.persist("read", () => hasNeededNotes(this.#ports, cell.key)));
    const removes = nothingLeft && !isNoted;
    // The first word that it is bare stays, because its age counts.
    const deletes = isNoted && isBare(entries) ? plan.delete.slice(1) : plan.delete;
    const nextAt = isNoted ? this.#now() + notedAgainMs : plan.nextAt;
    const deleted = new Set(deletes);
    const going = removes ? entries : entries.filter(({ seq }) => deleted.has(seq));
    // First it is kept elsewhere, then it is removed: killed in between, it is kept twice and not lost.
    if (!(await this.#archived(cell, going))) {
      await write(cell, (draft) => draft.prune([], this.#now() + archiveAgainMs));
      return;
    }
    reached("before prune");
    if (!removes) {
      await write(cell, (draft) => draft.prune(deletes, draft.base.seq === record.seq ? nextAt : this.#now()));
      observe({ kind: "pruned", key: cell.key, entries: deletes.length, removed: false });
    } else {
      const expected = { seq: record.seq, epoch: record.epoch };
      const removed = await writer.persist("remove", () => store.remove(cell.key, expected));
      // Else others have changed it meanwhile, or a try whose answer was lost has removed it.
      if (removed) cell.snapshot = null;
      else await writer.refresh(cell);
      if (cell.snapshot === null) observe({ kind: "pruned", key: cell.key, entries: entries.length, removed: true });
      if (!leases.isOurs(cell, cell.snapshot?.record)) leases.drop(cell);
    }
    reached("after prune");
  }

  /** `false`: it could not be, and nothing may be removed. Whatever is wrong there, the resource's operations go on. */
  async #archived(cell: Cell, entries: readonly StoredEntry[]): Promise<boolean> {
    const { archive } = this.#ports.retention;
    if (archive === undefined || entries.length === 0) return true;
    let callOff = (): void => undefined;
    try {
      const late = new Promise<never>((_, reject) => {
        const error = new Error(`the archive has not answered within ${archiveWithinMs} ms`);
        callOff = this.#ports.after(archiveWithinMs, () => reject(error));
      });
      await Promise.race([archive(cell.key, entries.map(toEntry)), late]);
      return true;
    } catch (error) {
      this.#ports.observe({ kind: "archive failed", key: cell.key, entries: entries.length, error });
      return false;
    } finally {
      callOff();
    }
  }

  /** Those that the resource still refers to. */
  async #neededEntries(cell: Cell, entries: readonly StoredEntry[]): Promise<ReadonlySet<number>> {
    const { store, writer, kinds, retention } = this.#ports;
    const numbers = new Set<number>();
    if (retention.needed === undefined) return numbers;
    const ids = new Set(endedBadly(entries).flatMap((ended) => partsToSettle(rulesOf(kinds, ended.kind) ?? {}, ended)));
    const wanted = [...ids];
    for (let from = 0; from < wanted.length; from += partsPage) {
      const page = wanted.slice(from, from + partsPage);
      const found = await writer.persist("read", () => store.read(cell.key, page));
      const parts = new Map(Array.from(found?.parts ?? [], ([id, body]) => [id, JSON.parse(body) as Json]));
      for (const seq of retention.needed(parts)) numbers.add(seq);
    }
    return numbers;
  }

  #now(): number {
    return this.#ports.time.now();
  }
}
