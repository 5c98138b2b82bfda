import { createBroker, defineService, Failed, type Service } from "@osbert/broker";
import { type ServeOptions, serve } from "@osbert/broker/http";
import { memoryStore } from "@osbert/journal/memory";
import { onTestFinished } from "vitest";

/** What is told to a service while it works. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const size = {
  type: "object",
  properties: {
    language: { type: "string", description: "of its messages" },
    size: { type: "integer", minimum: 1, default: 1 },
    backup: { type: "object", properties: { hour: { type: "integer" } }, required: ["hour"] },
  },
  required: ["language"],
} as const;

/** A service with two plans whose provision waits at the gate, if there is one. */
export function database(waits?: Gate): Service {
  return defineService({
    id: "database-id",
    name: "database",
    description: "A database",
    tags: ["sql"],
    planUpdateable: true,
    plans: {
      small: { id: "small-id", description: "A small one", provision: size, update: {}, maximumPollingDuration: 3_600 },
      large: { id: "large-id", description: "A large one", free: false, bindable: false },
    },
    prepare: ({ instance }) => ({ dashboardUrl: `https://dashboard.example/${instance.id}` }),
    async provision(operation) {
      operation.describe("copying the data");
      await waits?.opened;
    },
    async update() {},
    async deprovision() {},
    async bind(_operation, { parameters, binding }) {
      return { credentials: { uri: `db://${binding.id}`, given: parameters, hosts: ["a", "b"] } };
    },
    async unbind() {},
  });
}

/** One plan, always answered when done, and nothing of it can be fetched. */
export const syncOnly: Service = defineService({
  id: "cache-id",
  name: "cache",
  description: "A cache",
  instancesRetrievable: false,
  bindingsRetrievable: false,
  async: { provision: "never", update: "never", deprovision: "never", bind: "never", unbind: "never" },
  plans: { only: { id: "only-id", description: "The only one" } },
  async provision() {},
  async bind() {
    return { credentials: { password: "it's secret" } };
  },
});

export const failing: Service = defineService({
  id: "failing-id",
  name: "failing",
  description: "Never works",
  plans: { broken: { id: "broken-id", description: "Fails" } },
  async provision() {
    throw new Failed("there are no disks left \u001b[31min red\u001b[0m");
  },
});

/** A real broker on a real socket. */
export async function realBroker(
  services: readonly Service[],
  options: Omit<ServeOptions, "port"> & { readonly port?: number } = {},
): Promise<{ url: string; env: Readonly<Record<string, string>> }> {
  const served = await serve(createBroker({ stderr: "nothing", services, store: memoryStore() }), {
    port: 0,
    ...options,
  });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const { credential } = served;
  return {
    url: served.url,
    env: {
      OSBERT_URL: served.url,
      ...(credential !== null && { OSBERT_LOGIN: `${credential.username}:${credential.password}` }),
    },
  };
}
