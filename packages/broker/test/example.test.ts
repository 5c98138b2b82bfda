import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "@osbert/journal/sqlite";
import { createClient } from "@osbert/protocol/client";
import { expect, onTestFinished, test } from "vitest";
import { serve } from "../src/http/index.js";
import { createBroker, defineService } from "../src/index.js";

/** The example of the design ("What an author writes"), with a cluster that is as simple as can be. */
class Cluster {
  readonly databases = new Set<string>();
  readonly users = new Set<string>();
  readonly calls: string[] = [];

  async reserve(key: string, { diskGb = 1 }: { readonly diskGb?: number }): Promise<string> {
    this.calls.push(`reserve ${diskGb}`);
    return `host-${key.slice(0, 4)}`;
  }

  async create(host: string, instance: string): Promise<string> {
    const name = `db_${instance}`;
    this.databases.add(`${host}/${name}`);
    return name;
  }

  async drop(host: string, name: string): Promise<void> {
    this.databases.delete(`${host}/${name}`);
  }

  async grant(name: string, user: string): Promise<string> {
    this.users.add(`${name}/${user}`);
    return `password-of-${user}`;
  }

  async revoke(name: string, user: string): Promise<void> {
    this.users.delete(`${name}/${user}`);
  }
}

const diskSchema = {
  type: "object",
  properties: { diskGb: { type: "integer", minimum: 10 } },
  required: ["diskGb"],
  additionalProperties: false,
} as const;

const databaseState = {
  type: "object",
  properties: { host: { type: "string" }, name: { type: "string" } },
  required: ["host", "name"],
} as const;

const userState = { type: "object", properties: { user: { type: "string" } }, required: ["user"] } as const;

function databases(cluster: Cluster) {
  return defineService({
    id: "0a6a9f0e-6f7e-4f0c-9a43-0f7b7a0f5d11",
    name: "database",
    description: "One PostgreSQL database per instance",
    plans: {
      shared: { id: "b7c0c3b2-3f2f-4b57-8f0a-7d1b0b6f6a01", description: "On a shared host" },
      dedicated: {
        id: "b7c0c3b2-3f2f-4b57-8f0a-7d1b0b6f6a02",
        description: "A host of its own",
        provision: diskSchema,
      },
    },
    state: databaseState,
    bindingState: userState,
    planUpdateable: true,
    async provision(operation, { plan, parameters, instance }) {
      const wanted = plan === "dedicated" ? parameters : {};
      const host = await operation.step("reserve host", ({ idempotencyKey }) =>
        cluster.reserve(idempotencyKey, wanted),
      );
      const name = await operation.step("create database", () => cluster.create(host, instance.id));
      return { state: { host, name }, dashboardUrl: `https://db.example/${name}` };
    },
    async bind(operation, { state, binding }) {
      const password = await operation.step("grant", () => cluster.grant(state.name, binding.id));
      return { credentials: { ...state, user: binding.id, password }, state: { user: binding.id } };
    },
    async unbind(operation, { state, bindingState }) {
      const [name, user] = [state?.name, bindingState?.user];
      if (name !== undefined && user !== undefined) await operation.step("revoke", () => cluster.revoke(name, user));
    },
    async update(operation, { state, plan, previous }) {
      if (plan === previous.plan) return undefined;
      const host = await operation.step("move", ({ idempotencyKey }) => cluster.reserve(idempotencyKey, {}));
      return { state: { ...state, host } };
    },
    // The state may be partial: it also runs after a failed provision.
    async deprovision(operation, { state, steps }) {
      const host = state?.host ?? (steps.get("reserve host") as string | undefined);
      const name = state?.name;
      if (host !== undefined && name !== undefined) await operation.step("drop", () => cluster.drop(host, name));
    },
  });
}

test("the example of the design compiles, runs on SQLite, and survives a restart", async () => {
  const folder = await mkdtemp(join(tmpdir(), "osbert-example-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const cluster = new Cluster();
  const start = async () => {
    const broker = createBroker({
      stderr: "nothing",
      services: [databases(cluster)],
      store: sqliteStore(join(folder, "broker.db")),
    });
    const served = await serve(broker, { port: 0 });
    const { username = "", password = "" } = served.credential ?? {};
    const pace = { firstMs: 10, factor: 1, longestMs: 10 };
    return { served, client: createClient({ url: served.url, credentials: { username, password }, pace }) };
  };

  const first = await start();
  const { catalog } = await first.client.catalog();
  const offered = catalog === "unchanged" ? undefined : catalog.services[0];
  const [shared, dedicated] = offered?.plans ?? [];
  const ids = { service_id: offered?.id ?? "", plan_id: dedicated?.id ?? "" };
  const place = { organization_guid: "an-organization", space_guid: "a-space" };
  const tooSmall = first.client.provision("one", { ...ids, ...place, parameters: { diskGb: 5 } });
  await expect(tooSmall).rejects.toMatchObject({ status: 400, description: "parameters.diskGb must be >= 10" });
  const accepted = await first.client.provision("one", { ...ids, ...place, parameters: { diskGb: 20 } });
  expect(accepted.kind).toBe("accepted");
  if (accepted.kind === "accepted") await first.client.waitForInstance("one", { operation: accepted.operation });
  expect(cluster.calls).toEqual(["reserve 20"]);
  expect(cluster.databases.size).toBe(1);
  await first.served.close({ drainMs: 1_000 });

  const second = await start();
  const repeated = await second.client.provision("one", { ...ids, ...place, parameters: { diskGb: 20 } });
  expect(repeated).toMatchObject({ status: 200, body: { dashboard_url: "https://db.example/db_one" } });
  const bound = await second.client.bind("one", "app", ids, { acceptsIncomplete: false });
  expect(bound.body.credentials).toMatchObject({ name: "db_one", user: "app", password: "password-of-app" });
  const moved = { service_id: ids.service_id, plan_id: shared?.id ?? "" };
  expect((await second.client.update("one", moved, { acceptsIncomplete: false })).status).toBe(200);
  const options = { serviceId: ids.service_id, planId: moved.plan_id, acceptsIncomplete: false };
  await second.client.unbind("one", "app", options);
  expect(cluster.users.size).toBe(0);
  expect((await second.client.deprovision("one", options)).status).toBe(200);
  expect((await second.client.deprovision("one", options)).status).toBe(410);
  expect(cluster.calls).toEqual(["reserve 20", "reserve 1"]);
  await second.served.close({ drainMs: 1_000 });
});
