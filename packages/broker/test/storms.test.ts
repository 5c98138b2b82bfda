import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { BrokerAnswerError, type Client, createClient } from "@osbert/protocol/client";
import pg from "pg";
import { afterAll, expect, inject, test } from "vitest";
import { testBroker } from "../src/testing/index.js";
import { lab } from "./lab.js";

test("ROB-06: 200 identical provisions at once run the author's function once", async () => {
  const { service, done } = lab();
  const flow = await testBroker({ services: [service] });
  const answers = await Promise.all(Array.from({ length: 200 }, () => flow.provision("one")));
  await flow.advance();
  expect(done).toEqual(["provision one"]);
  expect(new Set(answers.map(({ body }) => body.operation)).size).toBe(1);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  await flow.stop();
});

test("ROB-07: of 200 different provisions for one id one wins, the others get 409 or 422", async () => {
  const { service, done } = lab();
  const flow = await testBroker({ services: [service] });
  const asks = Array.from({ length: 200 }, (_, size) => flow.provision("one", { parameters: { size: size + 1 } }));
  const statuses = (await Promise.all(asks)).map(({ status }) => status);
  await flow.advance();
  expect(done).toEqual(["provision one"]);
  expect(statuses.filter((status) => status === 202)).toHaveLength(1);
  expect(statuses.filter((status) => status === 409 || status === 422)).toHaveLength(199);
  await flow.stop();
});

const seconds = Number(process.env.OSBERT_STORM_SECONDS ?? 30);
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

test(
  `ROB-11: everything at once on 50 ids in two processes on PostgreSQL for ${seconds} s: no 5xx, and journal, effects and answers agree`,
  async () => {
    const url = inject("postgresUrl");
    expect(url, "PostgreSQL is never left out").not.toBeNull();
    const schema = `storm_${process.pid}_${Date.now()}`;
    const pool = new pg.Pool({ connectionString: url as string, max: 2 });
    await pool.query(
      `create schema ${schema}; create table ${schema}.thing (id text primary key); create table ${schema}.granted (id text primary key)`,
    );
    const clients: Client[] = [];
    // One after the other: the first one migrates.
    for (let index = 0; index < 2; index++)
      clients.push(createClient({ url: await startReplica(url as string, schema), timeoutMs: 30_000 }));
    const bad: string[] = [];
    const counts = new Map<number, number>();
    const until = Date.now() + seconds * 1_000;
    await Promise.all(Array.from({ length: 16 }, () => stormUntil(until, clients, counts, bad)));
    expect(bad).toEqual([]);
    // Enough happened for the test to mean something.
    for (const status of [200, 202, 409, 410, 422])
      expect(counts.get(status) ?? 0, `answers with ${status}`).toBeGreaterThan(0);

    const client = clients[0] as Client;
    await settle(client);
    const rows = async (table: string) =>
      new Set((await pool.query<{ id: string }>(`select id from ${schema}.${table}`)).rows.map(({ id }) => id));
    const [things, granted] = [await rows("thing"), await rows("granted")];
    for (const instance of instances) {
      expect(await exists(() => client.fetchInstance(instance)), instance).toBe(things.has(instance));
      for (const binding of bindings) {
        const id = `${instance}/${binding}`;
        expect(await exists(() => client.fetchBinding(instance, binding)), id).toBe(granted.has(id));
      }
    }
    await removeAll(client);
    expect([(await rows("thing")).size, (await rows("granted")).size]).toEqual([0, 0]);
    for (const child of children) child.kill("SIGTERM");
    await Promise.all(children.map(async (child) => child.exitCode ?? (await once(child, "exit"))));
    await pool.query(`drop schema ${schema} cascade`);
    await pool.end();
  },
  seconds * 1_000 + 180_000,
);

const instances = Array.from({ length: 50 }, (_, index) => `i${index}`);
const bindings = ["b1", "b2", "b3"];
const deleting = { serviceId: "storm", planId: "plan-a" };

async function startReplica(url: string, schema: string): Promise<string> {
  const program = fileURLToPath(new URL("./storm-broker.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@osbert/source", "--import", "tsx", program, url, schema], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }), "line")) as [
    string,
  ];
  return line;
}

async function stormUntil(
  until: number,
  clients: readonly Client[],
  counts: Map<number, number>,
  bad: string[],
): Promise<void> {
  while (Date.now() < until && bad.length === 0) {
    const client = pick(clients);
    const instance = pick(instances);
    const binding = pick(bindings);
    const acceptsIncomplete = Math.random() < 0.7;
    const plan = pick(["plan-a", "plan-a", "plan-a", "plan-b"]);
    const request = { service_id: "storm", plan_id: plan, organization_guid: "o", space_guid: "s" };
    const asks: readonly (() => Promise<unknown>)[] = [
      () => client.provision(instance, request, { acceptsIncomplete }),
      () => client.bind(instance, binding, { service_id: "storm", plan_id: plan }, { acceptsIncomplete }),
      () => client.unbind(instance, binding, { ...deleting, acceptsIncomplete }),
      () => client.deprovision(instance, { ...deleting, acceptsIncomplete }),
      () => client.update(instance, { service_id: "storm", parameters: { x: Math.random() } }, { acceptsIncomplete }),
      () => client.instanceLastOperation(instance),
      () => client.fetchInstance(instance),
    ];
    const status = await pick(asks)().then(
      (answer) => (answer as { status?: number }).status ?? 200,
      (error: unknown) => {
        const answered = error instanceof BrokerAnswerError ? error.status : null;
        if (answered === null || answered >= 500) bad.push(String(error));
        return answered ?? 0;
      },
    );
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
}

/** Until nothing is in progress any more. */
async function settle(client: Client): Promise<void> {
  // Side by side: a client waits a second before it polls for the first time.
  const settled = async (instance: string) => {
    await client.waitForInstance(instance, { maximumPollingDuration: 30 }).catch(() => undefined);
    for (const binding of bindings) {
      const known = await exists(() => client.bindingLastOperation(instance, binding));
      if (known) await client.waitForBinding(instance, binding, { maximumPollingDuration: 30 }).catch(() => undefined);
    }
  };
  await Promise.all(instances.map(settled));
}

async function removeAll(client: Client): Promise<void> {
  for (const instance of instances) {
    for (const binding of bindings) await client.unbind(instance, binding, { ...deleting, acceptsIncomplete: false });
    await client.deprovision(instance, { ...deleting, acceptsIncomplete: false });
  }
}

async function exists(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (error instanceof BrokerAnswerError && (error.status === 404 || error.status === 410)) return false;
    throw error;
  }
}

function pick<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T;
}
