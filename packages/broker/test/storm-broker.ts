import { postgresStore } from "@osbert/journal/postgres";
import pg from "pg";
import { serve } from "../src/http/index.js";
import { createBroker, defineService } from "../src/index.js";

// One replica of a broker on PostgreSQL, as a process of its own: `storm-broker.ts <url> <schema>`. Its service keeps what it makes in
// two tables, so that what was done can be compared with what was said.

const [url = "", schema = ""] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 12 });
const things = new pg.Pool({ connectionString: url, max: 4 });

const service = defineService({
  id: "storm",
  name: "storm",
  description: "Rows in a table",
  planUpdateable: true,
  plans: { a: { id: "plan-a", description: "a" }, b: { id: "plan-b", description: "b" } },
  async provision(operation, { instance }) {
    await operation.step("insert", () =>
      things.query(`insert into ${schema}.thing values ($1) on conflict do nothing`, [instance.id]).then(() => null),
    );
    if (Math.random() < 0.3) await operation.sleep("a moment", 20);
  },
  async update(operation) {
    await operation.step("nothing", () => null);
  },
  async deprovision(operation, { instance }) {
    await operation.step("delete", () =>
      things.query(`delete from ${schema}.thing where id = $1`, [instance.id]).then(() => null),
    );
  },
  async bind(operation, { instance, binding }) {
    const id = `${instance.id}/${binding.id}`;
    await operation.step("grant", () =>
      things.query(`insert into ${schema}.granted values ($1) on conflict do nothing`, [id]).then(() => null),
    );
    return { credentials: { id } };
  },
  async unbind(operation, { instance, binding }) {
    const id = `${instance.id}/${binding.id}`;
    await operation.step("revoke", () =>
      things.query(`delete from ${schema}.granted where id = $1`, [id]).then(() => null),
    );
  },
});

const broker = createBroker({ stderr: "nothing", services: [service], store: postgresStore(pool, { schema }) });
const served = await serve(broker, {
  port: 0,
  credentials: "none",
  onError: (error) =>
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`),
});
process.stdout.write(`${served.url}\n`);
process.once("SIGTERM", () => {
  served.close({ drainMs: 1_000 }).then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
