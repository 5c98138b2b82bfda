import type { Held, HeldPage, Release } from "../../store.js";
import { clock } from "./clock.js";
import { packNumbers, packTexts, text, texts } from "./columns.js";
import { lookup } from "./lookup.js";
import type { Schema } from "./schema.js";
import type { Statement, Value } from "./session.js";

/**
 * Answers the keys that are still held. A due time that is not the lease's end was pulled in by new work, and stays.
 */
export function renewStatement({ resource }: Schema): Statement {
  return {
    name: "osbert renew",
    text: `
      with clock as materialized (${clock(2)})
      update ${resource} as r
      set
        lease_until = clock.at + $4::bigint,
        due_at = case when r.due_at = r.lease_until then clock.at + $4::bigint else r.due_at end
      from unnest(${texts(5)}, $6::bigint[]) as h(key, epoch), clock
      where ${lookup("r.key", text("h.key"))} and r.epoch = h.epoch and ${heldBy("$3")}
      returning r.key`,
  };
}

/** `held` in lock order. */
export function renewValues(owner: string, held: readonly Held[], leaseMs: number, now: number | null): Value[] {
  const { separator, packed } = packTexts([held.map(({ key }) => key)]);
  return [separator, now, owner, leaseMs, packed[0] ?? "", packNumbers(held.map(({ epoch }) => epoch))];
}

/**
 * All that the owner holds are put in order: as many as a process can run. Behind the offset, so that the planner does
 * not walk along all keys instead.
 */
export function heldByStatement({ resource }: Schema): Statement {
  return {
    name: "osbert held by",
    text: `
      select r.key from (select key from ${resource} where lease_owner = $1 offset 0) as r
      where r.key > $2 order by r.key limit $3`,
  };
}

export function heldByValues(owner: string, { after, limit }: HeldPage): Value[] {
  return [owner, after ?? "", limit];
}

/** Tells the others if something is due at once: whoever gives a lease back in the middle of work is about to stop. */
export function releaseStatement({ resource, channel }: Schema): Statement {
  return {
    name: "osbert release",
    text: `
      with clock as materialized (${clock(2)}),
      released as (
        update ${resource} as r
        set
          lease_owner = null, lease_until = null, epoch = r.epoch + 1,
          due_at = case when h.due_now > 0 then clock.at else h.due_at end
        from unnest(${texts(4)}, $5::bigint[], $6::bigint[], $7::bigint[], $8::integer[]) as h(key, epoch, seq, due_at, due_now),
          clock
        where ${lookup("r.key", text("h.key"))} and r.epoch = h.epoch and r.seq = h.seq and ${heldBy("$3")}
        returning h.due_now
      )
      select case when max(due_now) > 0 then pg_notify('${channel}', '') end from released`,
  };
}

/** `held` in lock order. */
export function releaseValues(owner: string, held: readonly Release[], now: number | null): Value[] {
  const { separator, packed } = packTexts([held.map(({ key }) => key)]);
  return [
    separator,
    now,
    owner,
    packed[0] ?? "",
    packNumbers(held.map(({ epoch }) => epoch)),
    packNumbers(held.map(({ seq }) => seq)),
    packNumbers(held.map(({ dueAt }) => (dueAt === "now" ? null : dueAt))),
    packNumbers(held.map(({ dueAt }) => (dueAt === "now" ? 1 : 0))),
  ];
}

/**
 * Frees the leases of owners whose advisory lock can be taken: the session that held it is gone, or let go of it. Of
 * processes that reap at the same time one gets the lock; the lock lasts until its work is committed. An owner that
 * came back meanwhile, with a new lock, is not forgotten.
 *
 * leaser, unknown: goes from owner to owner over the index of leases, not from lease to lease. An owner comes into its
 * table before its first lease, so one that has a lease and is not there was reaped, or has left, while a commit of it
 * was under way.
 */
export function reapStatement({ resource, owner, channel }: Schema): Statement {
  return {
    name: "osbert reap",
    text: `
      with recursive clock as materialized (${clock(1)}),
      dead as materialized (select id, lock_key from ${owner} where id <> $2 and pg_try_advisory_xact_lock(lock_key)),
      leaser(id) as (
        (select lease_owner from ${resource} where lease_owner is not null order by lease_owner limit 1)
        union all
        select next.lease_owner
        from leaser cross join lateral (
          select lease_owner from ${resource} where lease_owner > leaser.id order by lease_owner limit 1
        ) as next
      ),
      unknown as materialized (
        select id from leaser
        where id <> $2 and not exists (select from ${owner} as o where ${lookup("o.id", "leaser.id")})
      ),
      leased as materialized (
        select r.key, gone.id as owner
        from (select id from dead union all select id from unknown) as gone
        cross join lateral (select key from ${resource} where lease_owner = gone.id offset 0) as r
      ),
      freed as (
        update ${resource} as r
        set lease_owner = null, lease_until = null, epoch = r.epoch + 1, due_at = clock.at
        from (select key, owner from leased order by key) as l, clock
        where ${lookup("r.key", "l.key")} and ${heldBy("l.owner")}
        returning r.key
      ),
      forgotten as (delete from ${owner} as o using dead where ${lookup("o.id", "dead.id")} and o.lock_key = dead.lock_key)
      select count(*), case when count(*) > 0 then pg_notify('${channel}', '') end from freed`,
  };
}

/** As `reap` tells it, and nothing is done about it. Whoever asks or reaps at the same time may find a lock taken, and the owner alive: for once. */
export function goneStatement({ owner }: Schema): Statement {
  return {
    name: "osbert gone",
    text: `
      select ${text("g.id")}
      from unnest(${texts(2)}) as g(id)
      left join lateral (select lock_key from ${owner} where id = ${text("g.id")} limit 1) as o on true
      where o.lock_key is null or pg_try_advisory_xact_lock(o.lock_key)`,
  };
}

export function goneValues(owners: readonly string[]): Value[] {
  const { separator, packed } = packTexts([owners]);
  return [separator, packed[0] ?? ""];
}

/** Not a plain equality: rows are to be found by their keys, never among all that the owner holds. */
function heldBy(owner: string): string {
  return `coalesce(r.lease_owner, '') = ${owner}`;
}
