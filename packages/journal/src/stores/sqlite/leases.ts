import type { Held, Release } from "../../store.js";
import type { Connection } from "./connection.js";

export const leaseSql = {
  held: "select id, seq, due_at, lease_until from resource where key = ? and lease_owner = ? and epoch = ?",
  /** The owners of leases, each once: the leases of one are skipped over. */
  owner:
    "select lease_owner from resource indexed by resource_lease where lease_owner >= ? order by lease_owner limit 1",
  free: `update resource indexed by resource_lease set epoch = epoch + 1, due_at = ?, lease_owner = null, lease_until = null
         where lease_owner = ?`,
} as const;

type HeldRow = readonly [id: number, seq: number, dueAt: number | null, until: number];

/** Renews, releases and frees leases, inside the writer's transaction. */
export class Leases {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Connection) {
    this.#statements = prepare(database);
  }

  renew(owner: string, held: readonly Held[], until: number): readonly string[] {
    const { prolong, prolongWithDue } = this.#statements;
    const kept: string[] = [];
    for (const { key, epoch } of held) {
      const row = this.#held(owner, key, epoch);
      if (row === undefined) continue;
      const [id, , dueAt, heldUntil] = row;
      if (dueAt === heldUntil) prolongWithDue.run(until, until, id);
      else prolong.run(until, id);
      kept.push(key);
    }
    return kept;
  }

  release(owner: string, held: readonly Release[], now: number): number {
    let released = 0;
    for (const { key, epoch, seq, dueAt } of held) {
      const row = this.#held(owner, key, epoch);
      if (row === undefined || row[1] !== seq) continue;
      this.#statements.release.run(dueAt === "now" ? now : dueAt, row[0]);
      released++;
    }
    return released;
  }

  /** Frees the leases of all owners but the living. Cost: one step an owner, and what there is to free. */
  reap(living: ReadonlySet<string>, now: number): number {
    const { owner, free } = this.#statements;
    let freed = 0;
    for (let from = ""; ; ) {
      const found = owner.get(from) as readonly [string] | undefined;
      if (found === undefined) return freed;
      if (!living.has(found[0])) freed += free.run(now, found[0]).changes;
      from = `${found[0]}\u0000`;
    }
  }

  #held(owner: string, key: string, epoch: number): HeldRow | undefined {
    return this.#statements.held.get(key, owner, epoch) as HeldRow | undefined;
  }
}

function prepare(database: Connection) {
  return {
    held: database.prepare(leaseSql.held).raw(),
    prolong: database.prepare("update resource set lease_until = ? where id = ?"),
    prolongWithDue: database.prepare("update resource set lease_until = ?, due_at = ? where id = ?"),
    release: database.prepare(
      "update resource set epoch = epoch + 1, due_at = ?, lease_owner = null, lease_until = null where id = ?",
    ),
    owner: database.prepare(leaseSql.owner).raw(),
    free: database.prepare(leaseSql.free),
  };
}
