import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { adminCredential, basic, hasEnded, platformCredential, type Reply } from "./admin-lab.js";

interface Replica {
  readonly pid: number;
  platform(method: string, path: string, body?: object): Promise<Reply>;
  admin(method: string, path: string, body?: object): Promise<Reply>;
}

/** Two processes on one database, one after the other: the first one migrates. */
async function twoReplicas(): Promise<readonly [Replica, Replica]> {
  const url = inject("postgresUrl");
  expect(url, "PostgreSQL is never left out").not.toBeNull();
  const schema = `admin_${process.pid}_${Date.now()}`;
  const children: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const child of children) child.kill("SIGKILL");
    const pool = new pg.Pool({ connectionString: url as string, max: 1 });
    await pool.query(`drop schema if exists ${schema} cascade`);
    await pool.end();
  });
  const start = async (): Promise<Replica> => {
    const program = fileURLToPath(new URL("./admin-replica.ts", import.meta.url));
    const args = ["--conditions=@osbert/source", "--import", "tsx", program, url as string, schema];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const address = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      child.once("exit", () => reject(new Error("the replica ended before it answered")));
    });
    const ask = async (method: string, path: string, authorization: string, body?: object): Promise<Reply> => {
      const answer = await fetch(`${address}${path}`, {
        method,
        headers: { authorization, "x-broker-api-version": "2.17", "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json() };
    };
    return {
      pid: child.pid ?? 0,
      platform: (method, path, body) => ask(method, path, basic(platformCredential), body),
      admin: (method, path, body) => ask(method, `/admin/v1${path}`, basic(adminCredential), body),
    };
  };
  return [await start(), await start()];
}

async function eventually<T>(look: () => Promise<T>, isSo: (seen: T) => boolean): Promise<T> {
  for (;;) {
    const seen = await look();
    if (isSo(seen)) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const provision = { service_id: "work", plan_id: "only", organization_guid: "o", space_guid: "s" };
const later = "accepts_incomplete=true";
const reason = "the backend is being moved";

test("an operation that runs in one process is cancelled through the other", async () => {
  const [one, other] = await twoReplicas();
  const { operation } = (await one.platform("PUT", `/v2/service_instances/slow-1?${later}`, provision)).body;
  const seen = async () => (await other.admin("GET", `/instances/slow-1/operations/${operation}`)).body;
  const running = await eventually(seen, ({ open }) => open?.steps === 1 && open.description !== null);
  const runner = running.open.description.includes(String(one.pid)) ? one : other;
  const canceller = runner === one ? other : one;
  expect(running).toMatchObject({ state: "running", open: { description: `in process ${runner.pid}` } });
  const cancelled = await canceller.admin("POST", `/instances/slow-1/operations/${operation}/cancel`, { reason });
  expect(cancelled.status).toBe(200);
  expect(await eventually(seen, hasEnded)).toMatchObject({ state: "cancelled" });
  const { body } = await runner.admin("GET", "/instances/slow-1/journal");
  expect(body.items).toContainEqual(
    expect.objectContaining({ kind: "operator", actor: { type: "operator", subject: "ops" }, cause: reason }),
  );
});

test("a pause that is asked for in one process holds in the other, and so does its end", async () => {
  const [one, other] = await twoReplicas();
  expect((await one.admin("POST", "/services/work/pause", { reason })).status).toBe(200);
  const services = async () => (await other.admin("GET", "/services")).body.items;
  await eventually(services, ([service]) => service.paused !== null);
  const asked = await other.platform("PUT", `/v2/service_instances/i1?${later}`, provision);
  expect(asked.status).toBe(202);
  expect((await other.platform("PUT", "/v2/service_instances/i2", provision)).status).toBe(422);
  const told = async () => (await other.platform("GET", "/v2/service_instances/i1/last_operation")).body;
  expect(await told()).toMatchObject({ state: "in progress", description: expect.stringContaining("paused") });
  expect((await one.admin("GET", "/operations")).body.items).toMatchObject([{ instance: "i1", state: "paused" }]);
  expect((await other.admin("POST", "/services/work/resume", { reason })).status).toBe(200);
  expect(await eventually(told, ({ state }) => state !== "in progress")).toMatchObject({ state: "succeeded" });
  await eventually(
    async () => (await one.admin("GET", "/services")).body.items,
    ([service]) => service.paused === null,
  );
});
