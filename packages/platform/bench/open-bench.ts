import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { JournalEvent, Store } from "@osbert/journal";
import { type OpenedPlatform, openPlatform, type PlatformOptions } from "@osbert/platform";

/** A broker in a process of its own; see instant-broker.ts. */
export interface InstantBroker {
  readonly url: string;
  end(): void;
}

export async function startBroker(...args: readonly string[]): Promise<InstantBroker> {
  const program = fileURLToPath(new URL("./instant-broker.js", import.meta.url));
  const child = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url: `http://127.0.0.1:${port}`, end: () => void child.stdin.end() };
}

export const brokerName = "bench";
export const laneOfBroker = `broker/${brokerName}`;
export const space = "space-of-the-bench";
export const wanted = { broker: brokerName, offering: "service-3", plan: "small" } as const;

/** Who asks, as a front end tells it. */
export const asking = { by: { actor: { type: "user", subject: "c0ffee-user" }, requestId: "bench-request" } } as const;

/** What a platform is asked for with a database: about 100 bytes. */
export const parameters = JSON.stringify({
  diskGb: 20,
  version: "16",
  extensions: ["pg_trgm", "postgis"],
  backup: { keepDays: 14 },
});

export interface Bench {
  readonly platform: OpenedPlatform;
  /** Resolves when so many more operations have ended, or wait. */
  readonly until: (many: number) => Promise<void>;
}

/** A platform that has the broker registered, with 64 requests to it at a time. It plays nothing unless it is to. */
export async function openBench(
  store: Store,
  { url }: Pick<InstantBroker, "url">,
  options: Partial<PlatformOptions> = {},
): Promise<Bench> {
  let left = 0;
  let reached = (): void => undefined;
  const observe = (event: JournalEvent) => {
    if (event.kind !== "settled" && event.kind !== "waiting") return;
    if (event.key.startsWith("instance/") && --left === 0) reached();
  };
  const platform = await openPlatform({ store, observe, concurrency: 256, ...options });
  await platform.start();
  if ((await platform.brokers.read(brokerName)) === undefined)
    await platform.brokers.register(
      brokerName,
      { url, authentication: { kind: "basic", username: "bench", password: "bench" }, limits: { inFlight: 64 } },
      asking,
    );
  return {
    platform,
    until: (many) =>
      new Promise((resolve) => {
        left = many;
        reached = resolve;
      }),
  };
}
