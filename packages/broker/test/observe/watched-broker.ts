import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "@osbert/journal/sqlite";
import { expect, onTestFinished } from "vitest";
import { type Served, type ServeOptions, serve } from "../../src/http/index.js";
import { type BrokerOptions, createBroker } from "../../src/index.js";

export const platform = { username: "platform", password: "pa55-of-the-platform" };
export const watcher = { username: "prometheus", password: "pa55-of-the-watcher" };

export interface Asking {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: { readonly username: string; readonly password: string } | null;
}

/** A broker on a SQLite file, behind a real socket. */
export interface WatchedBroker {
  readonly served: Served;
  readonly ask: (method: string, path: string, asking?: Asking) => Promise<Response>;
  /** Waits until the last operation of an instance or binding has ended, and answers how. */
  readonly settles: (path: string) => Promise<string>;
}

export async function watchedBroker(
  options: Omit<BrokerOptions, "store"> & { readonly store?: BrokerOptions["store"] },
  serving: Omit<ServeOptions, "credentials" | "port"> = {},
): Promise<WatchedBroker> {
  const folder = mkdtempSync(join(tmpdir(), "osbert-watched-"));
  const broker = createBroker({ stderr: "nothing", store: sqliteStore(join(folder, "broker.db")), ...options });
  const served = await serve(broker, { port: 0, credentials: [platform], watchers: [watcher], ...serving });
  onTestFinished(async () => {
    await served.close({ drainMs: 0 });
    rmSync(folder, { recursive: true });
  });
  const ask: WatchedBroker["ask"] = (method, path, { body, headers = {}, as = platform } = {}) =>
    fetch(served.url + path, {
      method,
      headers: {
        "x-broker-api-version": "2.17",
        "content-type": "application/json",
        ...(as && { authorization: `Basic ${Buffer.from(`${as.username}:${as.password}`).toString("base64")}` }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const settles = async (path: string): Promise<string> => {
    let state = "in progress";
    await expect
      .poll(
        async () => {
          state = ((await (await ask("GET", `${path}/last_operation`)).json()) as { state: string }).state;
          return state;
        },
        { timeout: 20_000 },
      )
      .not.toBe("in progress");
    return state;
  };
  return { served, ask, settles };
}
