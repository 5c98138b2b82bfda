import { overdue, passedOverLabel, runnable } from "../decisions/schedule.js";
import { type ResourceState, stateOf } from "../state.js";
import type { Store, StoredRecord } from "../store.js";
import type { Lanes } from "./lanes.js";
import type { StoreTime } from "./time.js";

export interface PassedOverPorts {
  readonly store: Store;
  readonly lanes: Lanes;
  readonly time: StoreTime;
  readonly token: () => string;
}

/** Resources that are read in one go, and how often in one look. */
const pageSize = 100;
const mostPages = 20;
/** From one look to the next, where there are such resources and where there are none. */
const busyPauseMs = 1_000;
const idlePauseMs = 5_000;

/**
 * A resource is found in one lane, that of what is due first on it. If that lane has no room here, claims pass the resource over, although an
 * operation beside it may be in a lane that has some, or one was told to stop. Such resources have a label, and while a lane has no room
 * they are looked at now and then: one for which something could be done here is put into a lane in which the next claim finds it. Whoever
 * changes it next puts it back. All others cost nothing, however many wait in a lane (J10).
 */
export class PassedOver {
  readonly #ports: PassedOverPorts;
  /** The last one that was looked at; the next look goes on behind it. */
  #after: string | null = null;
  #nextAt = 0;

  constructor(ports: PassedOverPorts) {
    this.#ports = ports;
  }

  /** When to look next. */
  get nextAt(): number {
    return this.#nextAt;
  }

  /** Looks, if it is time to, until there is something to claim: with thousands of such resources, the one that matters may be the last. */
  async look(): Promise<void> {
    const { store, time, lanes } = this.#ports;
    const now = time.now();
    if (now < this.#nextAt) return;
    // Also if it fails.
    this.#nextAt = now + busyPauseMs;
    for (let page = 0; page < mostPages && lanes.free > 0; page++) {
      const found = await store.find({
        label: passedOverLabel,
        after: this.#after,
        limit: pageSize,
        mayBeLocked: true,
      });
      if (found.length === 0 && this.#after === null) this.#nextAt = now + idlePauseMs;
      const hasMoved = await this.#moveSome(found);
      const isEnd = found.length < pageSize && (found.length === 0 || this.#after === found.at(-1)?.key);
      if (isEnd) this.#after = null;
      if (isEnd || hasMoved) return;
    }
  }

  /** No more than could be begun; whether there was any. */
  async #moveSome(found: readonly StoredRecord[]): Promise<boolean> {
    const { free } = this.#ports.lanes;
    let moved = 0;
    for (const record of found) {
      if (moved >= free) break;
      this.#after = record.key;
      const lane = this.#laneFor(record);
      if (lane === undefined) continue;
      moved++;
      await this.#move(record, lane);
    }
    return moved > 0;
  }

  /** The lane in which a claim would find it, if it is passed over and something could be done for it; "" has room in any case. */
  #laneFor(record: StoredRecord): string | undefined {
    const { lanes, time } = this.#ports;
    const { lane, dueAt, lease } = record;
    const now = time.now();
    // What someone holds is that one's business, also if the lease has run out: only a claim can tell who was first.
    if (dueAt === null || dueAt > now || lease !== null || lane === "" || lanes.hasRoom(lane)) return undefined;
    const state = readable(record);
    if (state === undefined) return undefined;
    const first = runnable(state, now).find((operation) => lanes.hasRoom(operation.lane));
    return first?.lane ?? (overdue(state, now).length > 0 ? "" : undefined);
  }

  /**
   * Below the journal: nothing has happened to the resource. If someone was faster, or the answer is lost, it is looked at again. No runner
   * came and went with this epoch, so the one that tells of that rises along.
   */
  async #move(record: StoredRecord, lane: string): Promise<void> {
    const { key, seq, epoch } = record;
    const state = stateOf(record);
    await this.#ports.store.commit({
      key,
      expected: { seq, epoch },
      token: this.#ports.token(),
      state: JSON.stringify({ ...state, heldEpoch: state.heldEpoch + 1 }),
      lane,
      epoch: epoch + 1,
      lease: "keep",
      // It is due, and in this lane perhaps longer than anything else: a store must not take it for one that keeps its place.
      dueAt: record.dueAt,
      entries: [],
      putParts: [],
      deleteParts: [],
      addLabels: [],
      removeLabels: [],
      deleteEntries: [],
      wake: false,
    });
  }
}

/** One that cannot be read is set aside by whoever claims it. */
function readable(record: StoredRecord): ResourceState | undefined {
  try {
    return stateOf(record);
  } catch {
    return undefined;
  }
}
