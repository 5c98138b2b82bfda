import { createBroker, defineService, Failed, RetryLater } from "@osbert/broker";
import { serve } from "@osbert/broker/http";
import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { type Client, createClient } from "@osbert/protocol/client";
import { onTestFinished } from "vitest";

/** A broker on a real socket whose service does as it is told, and who speaks to it. */
export interface OperatedBroker {
  readonly url: string;
  readonly store: Store;
  readonly client: Client;
  /** For the admin commands. */
  readonly env: Readonly<Record<string, string>>;
  /** What the next function does instead of ending well. */
  trouble: "none" | "waits" | "fails" | "hangs";
  provision(instance: string): Promise<string>;
}

const platform = { username: "platform", password: "platform-password" };

export async function operatedBroker(): Promise<OperatedBroker> {
  const told: { trouble: OperatedBroker["trouble"] } = { trouble: "none" };
  const act = (signal: AbortSignal): Promise<void> | void => {
    if (told.trouble === "waits") throw new RetryLater("the host boots", { afterMs: 3_600_000 });
    if (told.trouble === "fails") throw new Failed("there are no disks left");
    if (told.trouble === "hangs")
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
  };
  const database = defineService({
    id: "database-id",
    name: "database",
    description: "A database",
    plans: { small: { id: "small-id", description: "A small one" } },
    async provision(operation) {
      await operation.step("reserve a host", () => ({ host: "SECRET-host" }));
      await act(operation.signal);
      return { state: { password: "SECRET-state" } };
    },
    async deprovision(operation) {
      await act(operation.signal);
    },
    async bind() {
      return { credentials: { password: "SECRET-credentials" } };
    },
  });
  const store = memoryStore();
  const served = await serve(createBroker({ stderr: "nothing", services: [database], store }), {
    port: 0,
    credentials: [platform],
    admin: { credentials: [{ username: "ops", password: "ops-password" }] },
  });
  onTestFinished(() => served.close({ drainMs: 0 }));
  const client = createClient({ url: served.url, credentials: platform });
  return {
    url: served.url,
    store,
    client,
    env: { OSBERT_ADMIN_URL: served.url, OSBERT_ADMIN_LOGIN: "ops:ops-password" },
    get trouble() {
      return told.trouble;
    },
    set trouble(trouble) {
      told.trouble = trouble;
    },
    async provision(instance) {
      const request = {
        service_id: "database-id",
        plan_id: "small-id",
        organization_guid: "o",
        space_guid: "s",
        parameters: { color: "SECRET-parameter" },
      };
      const changed = await client.provision(instance, request);
      return changed.kind === "accepted" ? (changed.operation ?? "") : "";
    },
  };
}
