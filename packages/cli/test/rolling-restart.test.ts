import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import pg from "pg";
import { describe, expect, inject, test } from "vitest";
import { type Asked, answersAt, ask, folderWith, type Started, start } from "./program.js";

const postgresUrl = inject("postgresUrl");
const stepwise = fileURLToPath(new URL("fixtures/stepwise-services.ts", import.meta.url));
const callers = 8;
const ids = { service_id: "stepwise-id", plan_id: "only-id" };
const provisionBody = { ...ids, organization_guid: "o", space_guid: "s" };

interface Replica {
  broker: Started;
  url: string;
}

/** A client behind a load balancer: any replica, and once more on another one if that did not answer, or not now. */
class Client {
  readonly replicas: readonly Replica[];
  readonly serverErrors: string[] = [];
  retries = 0;
  lastError: unknown;
  #turn = 0;

  constructor(replicas: readonly Replica[]) {
    this.replicas = replicas;
  }

  async ask(method: string, path: string, body?: unknown): Promise<Asked> {
    const turn = this.#turn++;
    const first = await this.#try(turn, method, path, body);
    if (first !== undefined && first.status < 500) return first;
    this.retries++;
    const second = await this.#try(turn + 1, method, path, body);
    if (second === undefined || second.status >= 500) {
      const what = `${method} ${path}: ${second === undefined ? `no answer: ${inspect(this.lastError)}` : JSON.stringify(second)}`;
      this.serverErrors.push(what);
      throw new Error(what);
    }
    return second;
  }

  async #try(turn: number, method: string, path: string, body: unknown): Promise<Asked | undefined> {
    const { url } = this.replicas[turn % this.replicas.length] as Replica;
    return ask(url, method, path, { body }).catch((error: unknown) => {
      this.lastError = error;
      return undefined;
    });
  }

  async until(path: string, state: string): Promise<void> {
    for (;;) {
      const { body } = await this.ask("GET", `${path}/last_operation`);
      if (body.state === state) return;
      if (body.state === "failed") throw new Error(`${path} failed: ${JSON.stringify(body)}`);
    }
  }
}

describe.skipIf(postgresUrl === null)("a rolling restart of two replicas on PostgreSQL, under load", () => {
  test("loses no answered request, and gives no 5xx to a client that retries once", async () => {
    const schema = `rolling_${process.pid}_${Date.now().toString(36)}`;
    const cwd = folderWith({
      "osbert.yaml": `module: ${stepwise}\nlisten: { port: 0 }\ncredentials: [{ username: a, password: b }]
store: { env: URL_OF_STORE }\ndatabase: { schema: ${schema} }\nasync: { provision: require }\n`,
    });
    const startReplica = async (): Promise<Replica> => {
      const broker = start(["serve"], { cwd, env: { URL_OF_STORE: postgresUrl as string } });
      return { broker, url: await answersAt(broker) };
    };
    // The first one makes the tables.
    const replicas = [await startReplica(), await startReplica()];
    const client = new Client(replicas);
    const answered: string[] = [];
    let loading = true;
    const load = async () => {
      while (loading) {
        const path = `/v2/service_instances/${randomUUID()}`;
        const { status } = await client.ask("PUT", `${path}?accepts_incomplete=true`, provisionBody);
        expect(status).toBe(202);
        answered.push(path);
        await client.until(path, "succeeded");
        const bound = await client.ask("PUT", `${path}/service_bindings/b`, ids);
        expect([200, 201]).toContain(bound.status);
        expect(bound.body.credentials).toEqual({ password: "secret" });
      }
    };
    const loads = Array.from({ length: callers }, load);
    for (let round = 0; round < 2; round++) {
      for (const replica of replicas) {
        replica.broker.signal("SIGTERM");
        expect(await replica.broker.ended, "drained and gone").toBe(0);
        Object.assign(replica, await startReplica());
        // The next one is stopped when no request is left that has met this one's absence.
        const before = answered.length;
        await expect.poll(() => answered.length, { timeout: 30_000 }).toBeGreaterThan(before + 2 * callers);
      }
    }
    loading = false;
    await Promise.all(loads);
    expect(client.serverErrors).toEqual([]);
    expect(client.retries, "the restarts were felt").toBeGreaterThan(0);
    expect(answered.length).toBeGreaterThan(40);
    for (const path of answered) {
      expect((await client.ask("GET", path)).status, path).toBe(200);
    }
    for (const { broker } of replicas) {
      broker.signal("SIGTERM");
      expect(await broker.ended).toBe(0);
    }
    const pool = new pg.Pool({ connectionString: postgresUrl as string });
    await pool.query(`drop schema ${schema} cascade`);
    await pool.end();
  });
});
