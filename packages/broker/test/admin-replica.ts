import { postgresStore } from "@osbert/journal/postgres";
import pg from "pg";
import { serve } from "../src/http/index.js";
import { createBroker, defineService } from "../src/index.js";
import { adminCredential, platformCredential } from "./admin-lab.js";

// One replica of a broker on PostgreSQL, as a process of its own: `admin-replica.ts <url> <schema>`. An instance called "slow-…" takes
// for ever, and says in which process.

const [url = "", schema = ""] = process.argv.slice(2);

const service = defineService({
  id: "work",
  name: "work",
  description: "Says where it works",
  plans: { only: { id: "only", description: "The only one" } },
  async provision(operation, { instance }) {
    operation.describe(`in process ${process.pid}`);
    await operation.step("begin", () => process.pid);
    if (!instance.id.startsWith("slow-")) return;
    await new Promise((_, reject) =>
      operation.signal.addEventListener("abort", () => reject(operation.signal.reason as Error), { once: true }),
    );
  },
});

const pool = new pg.Pool({ connectionString: url, max: 8 });
const broker = createBroker({ stderr: "nothing", services: [service], store: postgresStore(pool, { schema }) });
const served = await serve(broker, {
  port: 0,
  credentials: [platformCredential],
  admin: { credentials: [adminCredential] },
});
process.stdout.write(`${served.url}\n`);
process.once("SIGTERM", () => {
  served.close({ drainMs: 1_000 }).then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
