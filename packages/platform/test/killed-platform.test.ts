import type { CrashPoint, Store } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { manualClock } from "@osbert/journal/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { openPlatform, type PlatformOptions } from "../src/index.js";
import { defaultPauses } from "../src/operations/pauses.js";
import type { OpenedPlatform } from "../src/queue/open-platform.js";
import { keys } from "../src/records/keys.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { anna, olga } from "./platform-in-time.js";

/** An update whose answer died with its platform is sent again soon. */
const pauses = { ...defaultPauses, lost: { firstMs: 50, longestMs: 100 } };
const waiting = { timeout: 20_000, interval: 10 };

/** A platform that is killed when it reaches a crash point for the n-th time after `arm`, or one of them, and then started anew on the same store. */
async function killedPlatform(store: Store, options: Partial<PlatformOptions> = {}) {
  let left = Number.POSITIVE_INFINITY;
  let dies: (() => void) | undefined;
  let counted: CrashPoint | undefined;
  const reached = (point: CrashPoint) => {
    if ((counted === undefined || counted === point) && --left === 0) dies?.();
  };
  const start = async (): Promise<OpenedPlatform> => {
    const platform = await openPlatform({ store, leaseMs: 300, pauses, reached, ...options });
    await platform.start();
    onTestFinished(() => platform.journal.kill());
    return platform;
  };
  let platform = await start();
  let kills = 0;
  let restarted: Promise<void> = Promise.resolve();
  return {
    get platform() {
      return platform;
    },
    get kills() {
      return kills;
    },
    /** Resolves when it was killed and runs again. */
    arm(points: number, of?: CrashPoint): Promise<void> {
      counted = of;
      left = points;
      restarted = new Promise((resolve, reject) => {
        dies = () => {
          dies = undefined;
          kills++;
          platform.journal
            .kill()
            .then(start)
            .then((next) => {
              platform = next;
              resolve();
            })
            .catch(reject);
        };
      });
      return restarted;
    },
  };
}

function maintained(version: string) {
  const catalog = catalogOf({ postgres: ["small"] });
  Object.assign((catalog.services[0] as { plans: object[] }).plans[0] ?? {}, { maintenance_info: { version } });
  return catalog;
}

test.each([1, 2, 4])(
  "a campaign whose platform is killed when its upgrade %i is accepted knows it again",
  async (kill) => {
    const server = await catalogServer({ catalog: maintained("1.0.0") });
    const lab = await killedPlatform(memoryStore());
    const { brokers, instances } = lab.platform;
    await brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
    const refs = ["a", "b", "c", "d"].map((name) => ({ space: "space", name }));
    for (const ref of refs) await instances.create(ref, { offering: "postgres", plan: "small" }, anna);
    const all = async (is: (ref: (typeof refs)[number]) => Promise<boolean>) =>
      expect(await Promise.all(refs.map(is))).toEqual(refs.map(() => true));
    const isReady = async (ref: (typeof refs)[number]) => (await lab.platform.instances.read(ref))?.phase === "ready";
    await vi.waitFor(() => all(isReady), waiting);
    server.catalog = maintained("2.0.0");
    await brokers.relist("acme", olga);
    const { id } = await lab.platform.campaigns.start({ broker: "acme", atOnce: 2 }, olga);
    await lab.arm(kill, "after accept is committed");
    await vi.waitFor(async () => expect((await lab.platform.campaigns.read(id))?.state).toBe("finished"), waiting);
    expect((await lab.platform.campaigns.read(id))?.counts).toMatchObject({ succeeded: 4, skipped: 0, failed: 0 });
    for (const ref of refs) {
      expect((await lab.platform.instances.read(ref))?.applied?.maintenance).toBe("2.0.0");
      const lines = await lab.platform.instances.journal(ref, { limit: 500 });
      expect(lines.filter(({ family, summary }) => family === "intent" && summary.includes("upgrade"))).toHaveLength(1);
    }
  },
);

test.each([2, 4])("a catalog whose reader is killed at crash point %i is whole, old or new", async (kill) => {
  const server = await catalogServer();
  const lab = await killedPlatform(memoryStore());
  await lab.platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  const plans = Array.from({ length: 4_000 }, (_, at) => `plan-${at}-${"x".repeat(300)}`);
  server.catalog = catalogOf({ postgres: plans });
  const restarted = lab.arm(kill);
  const asked = lab.platform.brokers.relist("acme", olga).catch(() => undefined);
  await Promise.race([restarted, asked]);
  await vi.waitFor(async () => {
    const offered = lab.platform.brokers.offerings("acme")[0]?.offering.plans.length;
    expect([2, 4_002]).toContain(offered);
    expect(offered).toBe(4_002);
  }, waiting);
  expect(lab.kills).toBe(1);
  const pages = await lab.platform.journal.parts(keys.broker("acme"), "page/", { limit: 1_000 });
  const revision = (await lab.platform.brokers.read("acme"))?.catalog.revision;
  expect(pages.items.every((page) => page.id.startsWith(`page/${revision}/`))).toBe(true);
});

/** A platform in the test's time, with a binding whose successor can be bound. Without a time it is for ever. */
async function rotatable(renewInMs: number | null) {
  const catalog = catalogOf({ postgres: ["small"] });
  Object.assign((catalog.services[0] as { plans: object[] }).plans[0] ?? {}, { binding_rotatable: true });
  const server = await catalogServer({ catalog });
  const clock = manualClock();
  const lab = await killedPlatform(memoryStore({ clock: clock.wallMs }), { clock, overlapMs: 10_000 });
  const pass = async (is: () => Promise<boolean>) => {
    for (let step = 0; step < 2_000; step++) {
      if (await is().catch(() => false)) return;
      await clock.advance(500);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    throw new Error("it has not come to be");
  };
  const ref = { space: "space", name: "orders" };
  const read = async () => lab.platform.instances.read(ref);
  const phase = async (name: string) => (await read())?.bindings.find((binding) => binding.name === name)?.phase;
  const metadata = renewInMs === null ? {} : { renew_before: new Date(clock.wallMs() + renewInMs).toISOString() };
  server.reply = ({ path }) =>
    path.includes("service_bindings") && !server.seen.some(({ method }) => method === "DELETE")
      ? { status: 201, body: { credentials: {}, metadata } }
      : undefined;
  await lab.platform.brokers.register("acme", { url: server.url, authentication: { kind: "none" } }, olga);
  await lab.platform.instances.create(ref, { offering: "postgres", plan: "small" }, anna);
  await pass(async () => (await read())?.phase === "ready");
  await lab.platform.instances.bind(ref, { name: "app" }, anna);
  await pass(async () => (await phase("app")) === "bound");
  server.reply = undefined;
  /** The successor is there, the old one is not, and each was asked for once. */
  const rotated = async () => {
    await pass(async () => (await phase("app.2")) === "bound" && (await phase("app")) === undefined);
    const lines = await lab.platform.instances.journal(ref, { limit: 500 });
    const intents = lines.filter(({ family }) => family === "intent").map(({ summary }) => summary);
    expect(intents.filter((summary) => summary.includes("rotate"))).toHaveLength(1);
    expect(intents.filter((summary) => summary.includes("unbind"))).toHaveLength(1);
    expect((await read())?.bindings).toMatchObject([{ name: "app.2", phase: "bound" }]);
  };
  return { lab, clock, ref, pass, rotated };
}

test.each([1, 2])(
  "E10-47: a rotation whose platform is killed when its intent %i is accepted asks for nothing twice",
  async (kill) => {
    const { lab, clock, rotated } = await rotatable(120_000);
    await clock.advance(100_000);
    void lab.arm(kill, "after accept is committed");
    await rotated();
  },
);

test.each([1, 4, 8, 12, 16, 22, 28])(
  "E10-47: a rotation by hand whose platform is killed at crash point %i ends, the old binding with it",
  async (kill) => {
    const { lab, ref, pass, rotated } = await rotatable(null);
    void lab.arm(kill);
    const asking = { ...anna, idempotencyKey: "by hand" };
    await pass(async () => (await lab.platform.instances.rotate(ref, "app", "app.2", asking)) !== undefined);
    await rotated();
    expect(lab.kills).toBe(1);
  },
);
