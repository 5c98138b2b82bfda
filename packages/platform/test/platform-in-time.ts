import type { Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { type ManualClock, manualClock } from "@osbert/journal/testing";
import { onTestFinished } from "vitest";
import { openPlatform, type PlatformOptions } from "../src/index.js";
import type { InstanceView } from "../src/platform.js";
import type { OpenedPlatform } from "../src/queue/open-platform.js";
import type { InstanceRef } from "../src/records/keys.js";
import type { CatalogServer } from "./catalog-server.js";

export const anna = { by: { actor: { type: "user", subject: "anna" } } } as const;
export const olga = { by: { actor: { type: "operator", subject: "olga" } }, identity: { user: "olga" } } as const;

export interface PlatformInTime {
  readonly platform: OpenedPlatform;
  readonly clock: ManualClock;
  /** What it all is kept in. */
  readonly store: Store;
  /** Lets time pass, step by step, until it is so. What goes over sockets takes its own time. */
  readonly passUntil: (stepMs: number, is: () => Promise<boolean> | boolean) => Promise<void>;
  /** An instance that its broker has made. */
  readonly create: (name: string, plan: string) => Promise<InstanceRef>;
  readonly read: (ref: InstanceRef) => Promise<InstanceView>;
  readonly phases: (ref: InstanceRef) => Promise<Readonly<Record<string, string>>>;
}

/** A whole platform with one broker, `acme`, whose time is the test's. */
export async function platformInTime(
  server: CatalogServer,
  options: Partial<PlatformOptions> = {},
): Promise<PlatformInTime> {
  const clock = manualClock();
  const store: Store = memoryStore({ clock: clock.wallMs });
  const platform = await openPlatform({ store, clock, ...options });
  await platform.start();
  onTestFinished(() => platform.journal.kill());
  await platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  const passUntil: PlatformInTime["passUntil"] = async (stepMs, is) => {
    for (let step = 0; step < 3_000; step++) {
      if (await is()) return;
      await clock.advance(stepMs);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    throw new Error("it has not come to be");
  };
  const read = async (ref: InstanceRef) => {
    const view = await platform.instances.read(ref);
    if (view === undefined) throw new Error("there is no such instance");
    return view;
  };
  return {
    platform,
    clock,
    store,
    passUntil,
    read,
    create: async (name, plan) => {
      const ref = { space: "space", name };
      await platform.instances.create(ref, { offering: "postgres", plan }, anna);
      await passUntil(10, async () => (await read(ref)).phase === "ready");
      return ref;
    },
    phases: async (ref) => Object.fromEntries((await read(ref)).bindings.map(({ name, phase }) => [name, phase])),
  };
}
