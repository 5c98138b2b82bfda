import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { postgresStore } from "../src/stores/postgres/index.js";
import { change } from "./postgres-change.js";

// Run as a process of its own, which must live through an outage: it commits, and shares its pool with others who only ask. The pool has
// connected before the store had a say.
const pool = new pg.Pool({ connectionString: process.env.URL, max: 6 });
pool.on("error", () => {});
await pool.query("select");
const store = postgresStore(pool, { schema: process.env.SCHEMA ?? "", connections: 3 });
await store.open();
await Promise.all(Array.from({ length: 6 }, (_, caller) => commitForEver(caller)));

async function commitForEver(caller: number): Promise<void> {
  for (let n = 0; ; n++) {
    const committed = store.commit(change(`caller ${caller}, ${n}`, null)).then(
      () => process.stdout.write("committed\n"),
      () => sleep(10),
    );
    await Promise.all([committed, pool.query("select").catch(() => sleep(10))]);
  }
}
