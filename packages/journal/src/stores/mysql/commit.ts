import type { Change, CommitOutcome } from "../../store.js";
import { decideCommit } from "./decide-commit.js";
import { isDuplicate, TryAgain } from "./failure.js";
import { IdBlock } from "./id-block.js";
import { LaneTable } from "./lane-table.js";
import { ResourceTable } from "./resource-table.js";
import type { Server } from "./server.js";
import type { Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import type { Tables } from "./tables.js";
import { TablesBeside } from "./tables-beside.js";

/** J12: many changes, each of another resource, share one transaction. */
export class Commits {
  readonly #sessions: Sessions;
  readonly #clock: (() => number) | undefined;
  readonly #ids: IdBlock;
  readonly #lanes: LaneTable;
  readonly #resources: ResourceTable;
  readonly #beside: TablesBeside;

  constructor(sessions: Sessions, tables: Tables, clock: (() => number) | undefined, server: Server) {
    this.#sessions = sessions;
    this.#clock = clock;
    this.#ids = new IdBlock(sessions, tables);
    this.#lanes = new LaneTable(sessions, tables);
    this.#resources = new ResourceTable(tables, server);
    this.#beside = new TablesBeside(tables, server);
  }

  /** Before the first run. */
  open(): Promise<void> {
    return this.#ids.catchUp();
  }

  /** Carries out changes, no two of one key. A conflict of one does not touch the others. */
  async run(changes: readonly Change[]): Promise<readonly CommitOutcome[]> {
    await this.#lanes.register(changes.map(({ lane }) => lane));
    const ids = await this.#idsFor(changes.filter(({ expected }) => expected === null));
    const inOrder = inKeyOrder(changes);
    // A new key is taken to be new without looking. If one is not after all, the next attempt looks them all up.
    let trusting = true;
    const attempt = async (session: Session) => {
      try {
        return await this.#write(session, inOrder, ids, trusting);
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        trusting = false;
        throw new TryAgain("a key that was to be new is there already", { cause: error });
      }
    };
    // Where several came at once, more are on their way.
    const outcomes = await this.#sessions.transaction(attempt, changes.length > 1);
    return changes.map((change) => outcomes.get(change) ?? { kind: "conflict" });
  }

  async #idsFor(creating: readonly Change[]): Promise<ReadonlyMap<Change, number>> {
    if (creating.length === 0) return new Map();
    const first = await this.#ids.take(creating.length);
    return new Map(creating.map((change, index) => [change, first + index]));
  }

  async #write(
    session: Session,
    changes: readonly Change[],
    ids: ReadonlyMap<Change, number>,
    trusting: boolean,
  ): Promise<ReadonlyMap<Change, CommitOutcome>> {
    const sought = trusting ? changes.filter(({ expected }) => expected !== null) : changes;
    const locked = await this.#resources.lock(session, sought);
    const writes = changes
      .map((change) => decideCommit(change, locked.get(change.key), ids.get(change) ?? 0))
      .filter((decision) => decision.kind === "write");
    await this.#resources.insert(
      session,
      writes.filter(({ isNew }) => isNew),
    );
    await this.#resources.update(
      session,
      writes.filter(({ isNew }) => !isNew),
    );
    const at = await this.#beside.write(session, writes, this.#clock?.());
    return new Map(writes.map(({ change }) => [change, { kind: "committed", at }]));
  }
}

/** All processes lock in one order, so that they wait for each other instead of running into deadlocks. */
function inKeyOrder(changes: readonly Change[]): readonly Change[] {
  return changes
    .map((change) => ({ change, key: Buffer.from(change.key) }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ change }) => change);
}
