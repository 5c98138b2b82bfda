import pg from "pg";
import type { PostgresPlace } from "../places.js";
import type { Settled } from "./settled.js";

export async function fillPostgres({ url, schema }: PostgresPlace, count: number, settled: Settled): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("set synchronous_commit = off");
    const { seq, epoch, lane, dueAt, state, token } = settled;
    await client.query(
      `insert into ${schema}.resource (id, key, seq, epoch, lane, due_at, state)
       select nextval('${schema}.resource_id'), gen_random_uuid()::text, $2, $3, $4, $5 + nth, $6 from generate_series(1, $1::bigint) as nth`,
      [count, seq, epoch, lane, dueAt, state],
    );
    for (const entry of settled.entries) {
      await client.query(
        `insert into ${schema}.entry (resource_id, seq, at, kind, operation, token, body)
         select id, $1, $2, $3, $4, $5, $6 from ${schema}.resource`,
        [entry.seq, Date.now(), entry.kind, entry.operation, token, entry.body],
      );
    }
    // What the first readers of new rows would have to do is done now.
    await client.query(`vacuum (analyze) ${schema}.resource, ${schema}.entry`);
  } finally {
    await client.end();
  }
}
