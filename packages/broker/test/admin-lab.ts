import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished } from "vitest";
import { type Served, type ServeOptions, serve } from "../src/http/index.js";
import { type BrokerOptions, createBroker } from "../src/index.js";
import { ids, type Lab, provisionBody } from "./lab.js";

/** Where a test's broker keeps what it knows; asked again, it is the same place. */
export const places: Readonly<Record<string, () => Promise<() => Store>>> = {
  memory: async () => {
    const store = memoryStore();
    return () => store;
  },
  sqlite: async () => {
    const folder = await mkdtemp(join(tmpdir(), "osbert-admin-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return () => sqliteStore(join(folder, "broker.db"));
  },
};

export const platformCredential = { username: "platform", password: "platform-password" };
export const adminCredential = { username: "ops", password: "ops-password" };

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they like.
  readonly body: any;
}

/** A broker on a real socket, with a platform and an operator who speak to it. */
export interface AdminLab {
  readonly served: Served;
  readonly store: Store;
  /** As a platform. */
  readonly platform: (method: string, path: string, body?: object) => Promise<Reply>;
  /** As the operator; the path is behind /admin/v1. */
  readonly admin: (method: string, path: string, body?: object) => Promise<Reply>;
  /** Anything to anywhere. */
  readonly ask: (method: string, path: string, options?: Asking) => Promise<Reply>;
  /** Provisions and waits for that to end; answers the operation. */
  readonly provision: (instance: string, parameters?: object) => Promise<string>;
  readonly bind: (instance: string, binding: string) => Promise<void>;
  /** Waits for an operation to be so, and answers what the operator sees of it. */
  readonly until: (
    instance: string,
    operation: string,
    isSo: (operation: Reply["body"]) => boolean,
  ) => Promise<Reply["body"]>;
}

export interface Asking {
  readonly body?: object | string;
  readonly credential?: { readonly username: string; readonly password: string };
  readonly headers?: Readonly<Record<string, string>>;
}

export async function adminLab(
  { service }: Pick<Lab, "service">,
  store: Store,
  options: Partial<ServeOptions> & { readonly broker?: Partial<BrokerOptions> } = {},
): Promise<AdminLab> {
  const { broker: brokerOptions, ...serving } = options;
  const broker = createBroker({ stderr: "nothing", services: [service], ...brokerOptions, store });
  const served = await serve(broker, {
    port: 0,
    credentials: [platformCredential],
    admin: { credentials: [adminCredential] },
    ...serving,
  });
  onTestFinished(() => served.close({ drainMs: 0 }));

  const ask: AdminLab["ask"] = async (method, path, { body, credential, headers = {} } = {}) => {
    const answer = await fetch(`${served.url}${path}`, {
      method,
      headers: {
        "x-broker-api-version": "2.17",
        ...(credential && { authorization: basic(credential) }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  const platform: AdminLab["platform"] = (method, path, body) =>
    ask(method, path, { credential: platformCredential, ...(body && { body }) });
  const admin: AdminLab["admin"] = (method, path, body) =>
    ask(method, `/admin/v1${path}`, { credential: adminCredential, ...(body && { body }) });
  const until: AdminLab["until"] = async (instance, operation, isSo) => {
    for (;;) {
      const { status, body } = await admin("GET", `/instances/${instance}/operations/${operation}`);
      expect(status, JSON.stringify(body)).toBe(200);
      if (isSo(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  return {
    served,
    store,
    ask,
    platform,
    admin,
    until,
    async provision(instance, parameters = {}) {
      const path = `/v2/service_instances/${instance}?accepts_incomplete=true`;
      const { status, body } = await platform("PUT", path, { ...provisionBody, parameters });
      expect(status, JSON.stringify(body)).toBe(202);
      await until(instance, body.operation, hasEnded);
      return body.operation;
    },
    async bind(instance, binding) {
      const path = `/v2/service_instances/${instance}/service_bindings/${binding}`;
      const { status, body } = await platform("PUT", path, { service_id: ids.service, plan_id: ids.small });
      expect(status, JSON.stringify(body)).toBe(201);
    },
  };
}

export function hasEnded({ state }: Reply["body"]): boolean {
  return ["succeeded", "failed", "cancelled"].includes(state);
}

export function basic({ username, password }: { readonly username: string; readonly password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

export const deletion = `service_id=${ids.service}&plan_id=${ids.small}`;
