import { postgresStore } from "@osbert/journal/postgres";
import pg from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { createBroker, followedServices, type Service } from "../src/index.js";

const by = { actor: { type: "user", subject: "publisher" } } as const;
const serviceId = "5e7f0a7e-7d0a-4c5e-9f2e-3f7a51c0de01";

function serviceAt(revision: string): Service {
  const plans = { small: { id: "5e7f0a7e-7d0a-4c5e-9f2e-3f7a51c0de02", description: "A small one" } };
  return { id: serviceId, name: "database", description: "A database", revision, plans };
}

/** A broker of its own on the database that both share. */
async function startReplica(url: string, schema: string) {
  const services = followedServices({
    key: "catalog",
    services: (snapshot) => (snapshot as readonly string[]).map(serviceAt),
  });
  const pool = new pg.Pool({ connectionString: url });
  const broker = createBroker({ stderr: "nothing", services, store: postgresStore(pool, { schema }) });
  onTestFinished(async () => {
    await broker.stop({ drainMs: 0 });
    await pool.end();
  });
  await broker.start();
  return { services, offers: () => broker.catalog.services.get(serviceId)?.service.revision };
}

test("what one process publishes is offered by all that share the store", async () => {
  const url = inject("postgresUrl");
  expect(url, "PostgreSQL is never left out").not.toBeNull();
  const schema = `source_${process.pid}_${Date.now()}`;
  const one = await startReplica(url as string, schema);
  const other = await startReplica(url as string, schema);
  await one.services.publish(["1"], by);
  expect(one.offers()).toBe("1");
  await vi.waitFor(() => expect(other.offers()).toBe("1"), 20_000);
  await other.services.publish(["2"], by);
  await vi.waitFor(() => expect(one.offers()).toBe("2"), 20_000);
});
