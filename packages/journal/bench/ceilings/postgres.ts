import { randomUUID } from "node:crypto";
import pg from "pg";
import type { Change } from "../operations.js";
import { makeTables, type PostgresPlace } from "../places.js";
import type { Ceiling } from "./ceiling.js";
import { type Stage, stagesOf } from "./stage.js";

/** Connections of the ways to group, and of the one without grouping. */
const connectionCounts = [1, 2, 4];
const mostConnections = 10;

/** One round trip a group: one statement with the columns of all its rows as arrays. */
export async function postgresCeiling(
  place: PostgresPlace,
  changes: readonly Change[],
  group: number,
): Promise<Ceiling> {
  await makeTables(place);
  const pool = new pg.Pool({ connectionString: place.url, max: mostConnections });
  const clients = await Promise.all(Array.from({ length: mostConnections }, () => pool.connect()));
  await Promise.all(clients.map((client) => client.query(settings)));
  const stages = stagesOf(changes);
  const statements = stages.map((stage) => ({ stage, name: nameOf(stage), text: textOf(stage, place.schema) }));
  let lastId = 0;

  const run = async (ms: number, connections: number, size: number) => {
    const started = performance.now();
    let done = 0;
    const go = async (client: pg.PoolClient) => {
      while (performance.now() - started < ms) {
        const keys = Array.from({ length: size }, () => randomUUID());
        const ids = keys.map(() => ++lastId);
        for (const { stage, name, text } of statements) {
          await client.query({ name, text, values: valuesOf(stage, keys, ids) });
        }
        done += size;
      }
    };
    await Promise.all(clients.slice(0, connections).map(go));
    return (done * 1000) / (performance.now() - started);
  };
  const ways = (counts: readonly number[], sizeOf: (count: number) => number) =>
    Object.fromEntries(
      counts.map((count) => [`${count} × batches of ${sizeOf(count)}`, (ms: number) => run(ms, count, sizeOf(count))]),
    );
  return {
    grouped: ways(connectionCounts, () => group),
    shared: ways(connectionCounts, (count) => Math.ceil(group / count)),
    ungrouped: (ms) => run(ms, mostConnections, 1),
    async close() {
      for (const client of clients) client.release();
      await pool.end();
    },
  };
}

/** Plans are made on empty tables; they must not stay as they would be for these. */
const settings = `set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off;
  set plan_cache_mode = force_generic_plan; set jit = off`;

function nameOf(stage: Stage): string {
  return stage.isNew ? "insert" : "update";
}

function textOf({ isNew }: Stage, schema: string): string {
  const given = `unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::text[])
    as c(id, key, seq, epoch, lane, due_at, lease_owner, lease_until, state)`;
  const record = isNew
    ? `insert into ${schema}.resource (id, key, seq, epoch, lane, due_at, lease_owner, lease_until, state)
       select c.* from ${given}`
    : `update ${schema}.resource as r set seq = c.seq, epoch = c.epoch, lane = c.lane, due_at = c.due_at, lease_owner = c.lease_owner,
       lease_until = c.lease_until, state = c.state from ${given} where r.key = c.key`;
  return `with record as (${record})
    insert into ${schema}.entry (resource_id, seq, at, kind, operation, token, body)
    select * from unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[])`;
}

function valuesOf(stage: Stage, keys: readonly string[], ids: readonly number[]): unknown[] {
  const entries = ids.flatMap((id) => stage.entries.map((entry) => ({ id, ...entry })));
  const all = <T>(value: T) => keys.map(() => value);
  return [
    ids,
    keys,
    all(stage.seq),
    all(stage.epoch),
    all(stage.lane),
    all(stage.dueAt),
    all(stage.owner),
    all(stage.until),
    all(stage.state),
    entries.map(({ id }) => id),
    entries.map(({ seq }) => seq),
    entries.map(() => stage.at),
    entries.map(({ kind }) => kind),
    entries.map(({ operation }) => operation),
    entries.map(() => stage.token),
    entries.map(({ body }) => body),
  ];
}
