import { expect, test, vi } from "vitest";
import { newCampaign, reasonToStop, untilOpenMs } from "../src/decisions/campaign.js";
import type { CampaignView } from "../src/platform.js";
import { keys } from "../src/records/keys.js";
import { catalogOf, catalogServer } from "./catalog-server.js";
import { olga, platformInTime } from "./platform-in-time.js";

function maintained(version: string) {
  const catalog = catalogOf({ postgres: ["small", "large"] });
  for (const plan of (catalog.services[0] as { plans: object[] }).plans)
    Object.assign(plan, { maintenance_info: { version } });
  return catalog;
}

/** A platform with so many instances that lag behind, and some that do not. */
async function lagging(count: number) {
  const server = await catalogServer({ catalog: maintained("1.0.0") });
  const lab = await platformInTime(server);
  const { campaigns, brokers } = lab.platform;
  for (let at = 0; at < count; at++) await lab.create(`db-${String(at).padStart(3, "0")}`, "small");
  await lab.create("other", "large");
  server.catalog = maintained("2.0.0");
  await brokers.relist("acme", olga);
  await lab.create("current", "small");
  const upgraded = () => server.seen.filter(({ method }) => method === "PATCH").map(({ path }) => path);
  const reach = async (id: string, is: (view: CampaignView) => boolean): Promise<CampaignView> => {
    let view: CampaignView | undefined;
    await lab.passUntil(200, async () => {
      view = await campaigns.read(id);
      return view !== undefined && is(view);
    });
    return view as CampaignView;
  };
  return { server, lab, campaigns, upgraded, reach, store: lab.store };
}

test("E10-53: a campaign upgrades every instance of a plan that lags behind, and no other, once", async () => {
  const { campaigns, upgraded, reach, lab } = await lagging(12);
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id", atOnce: 4 }, olga);
  const view = await reach(id, ({ state }) => state === "finished");
  expect(view).toMatchObject({ by: "olga", counts: { pending: 0, running: 0, succeeded: 12, failed: 0, skipped: 0 } });
  expect(new Set(upgraded()).size).toBe(12);
  expect(upgraded()).toHaveLength(12);
  expect((await lab.read({ space: "space", name: "db-007" })).applied?.maintenance).toBe("2.0.0");
  expect((await campaigns.list()).items).toHaveLength(1);
  const page = await campaigns.targets(id, { state: "succeeded", limit: 2 });
  expect(page.items).toMatchObject([{ space: "space", instance: "db-000" }, { instance: "db-001" }]);
});

test("E10-53: no more than its bound are under way at a time", async () => {
  const { campaigns, server, reach, upgraded } = await lagging(8);
  server.changes = "hangs";
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id", atOnce: 3 }, olga);
  const view = await reach(id, ({ counts }) => counts.running === 3);
  expect(view.counts).toMatchObject({ pending: 5, running: 3 });
  await reach(id, () => upgraded().length >= 3);
  expect(new Set(upgraded()).size).toBe(3);
});

test("E10-53: a campaign stops when too many fail, and those are tried again on request", async () => {
  const { campaigns, server, reach, upgraded } = await lagging(15);
  server.reply = () => ({ status: 400, body: { description: "out of disk" } });
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id", atOnce: 2 }, olga);
  const stopped = await reach(id, ({ state, counts }) => state === "stopped" && counts.running === 0);
  expect(stopped.message).toMatch(/upgrades failed$/);
  expect(stopped.counts.failed).toBeLessThan(10);
  expect(stopped.counts.pending).toBe(15 - stopped.counts.failed);
  const failed = await campaigns.targets(id, { state: "failed" });
  expect(failed.items[0]).toMatchObject({ message: expect.stringContaining("out of disk"), tries: 1 });
  server.reply = undefined;
  await campaigns.retry(id, olga);
  const view = await reach(id, ({ state }) => state === "finished");
  expect(view.counts).toMatchObject({ succeeded: 15, failed: 0, pending: 0 });
  expect(upgraded()).toHaveLength(15 + stopped.counts.failed);
});

test("E10-53: of a campaign that is cancelled, what has not begun never does", async () => {
  const { campaigns, server, reach, upgraded } = await lagging(8);
  server.changes = "hangs";
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id", atOnce: 2 }, olga);
  await reach(id, ({ counts }) => counts.running === 2);
  await campaigns.cancel(id, olga);
  server.changes = "answers";
  await server.goDown();
  await server.comeUp();
  const view = await reach(id, ({ endedAt }) => endedAt !== null);
  expect(view).toMatchObject({ state: "cancelled", counts: { pending: 0, running: 0 } });
  expect(view.counts.dropped).toBeGreaterThanOrEqual(6);
  expect(new Set(upgraded()).size).toBeLessThanOrEqual(2);
  await expect(campaigns.retry(id, olga)).rejects.toMatchObject({ code: "too-late" });
});

test("E10-53: a cancel that comes while instances are looked for is not lost", async () => {
  const { campaigns, reach, upgraded, store } = await lagging(3);
  const find = store.find.bind(store);
  const started = campaigns.start({ broker: "acme" }, olga);
  store.find = async (query) => {
    const found = await find(query);
    store.find = find;
    await campaigns.cancel((await started).id, olga);
    return found;
  };
  const view = await reach((await started).id, ({ endedAt }) => endedAt !== null);
  expect(view).toMatchObject({ state: "cancelled", counts: { pending: 0, running: 0, succeeded: 0 } });
  expect(upgraded()).toEqual([]);
});

test("E10-53: a retry that comes in the moment in which a campaign ends is carried out", async () => {
  const { campaigns, server, reach, store } = await lagging(3);
  server.reply = () => ({ status: 400, body: { description: "out of disk" } });
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id" }, olga);
  const commit = store.commit.bind(store);
  let retried: Promise<unknown> | undefined;
  store.commit = (change) => {
    // Comes next, before the operation that has just found nothing more to do can end.
    if (retried === undefined && change.state.includes('"state":"stopped"')) {
      server.reply = undefined;
      retried = campaigns.retry(id, olga);
    }
    return commit(change);
  };
  const view = await reach(id, ({ state, counts }) => state === "finished" && counts.failed === 0);
  expect(view.counts).toMatchObject({ succeeded: 3, pending: 0, running: 0 });
  await retried;
});

test("E10-53: outside of its window a campaign waits, and goes on when it opens", async () => {
  const { campaigns, lab, reach, upgraded } = await lagging(3);
  const minute = Math.floor((lab.clock.wallMs() % (24 * 60 * 60_000)) / 60_000);
  const window = { fromMinute: minute + 4, untilMinute: minute + 8 };
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id", window }, olga);
  await reach(id, ({ state }) => state === "running");
  await lab.clock.advance(2 * 60_000);
  expect(upgraded()).toEqual([]);
  await lab.clock.advance(2 * 60_000);
  await reach(id, ({ state }) => state === "finished");
  expect(upgraded()).toHaveLength(3);
});

test("a campaign that waits for an instance writes nothing, looks less and less often, and goes on when that is free", async () => {
  const { campaigns, lab, reach, upgraded } = await lagging(1);
  const ref = { space: "space", name: "db-000" };
  await lab.platform.instances.lock(ref, { reason: "audit" }, olga);
  const { id } = await campaigns.start({ broker: "acme", plan: "postgres-small-id" }, olga);
  await reach(id, ({ counts }) => counts.running === 1);
  const seq = async () => (await lab.platform.journal.read(keys.campaign(id)))?.seq;
  const before = await seq();
  const looked = vi.spyOn(lab.platform.journal, "operation");
  for (let second = 0; second < 600; second++) await lab.clock.advance(1_000);
  expect(await seq()).toBe(before);
  expect(looked.mock.calls.length).toBeGreaterThan(5);
  expect(looked.mock.calls.length).toBeLessThan(60);
  await lab.platform.instances.unlock(ref, olga);
  await reach(id, ({ state }) => state === "finished");
  expect(upgraded()).toHaveLength(1);
});

test("a campaign that makes no sense is refused", async () => {
  const { campaigns } = await lagging(0);
  const wrong = [
    { atOnce: 0 },
    { atOnce: 1_000 },
    { stopAtErrorRate: 2 },
    { window: { fromMinute: 5, untilMinute: 5 } },
    { window: { fromMinute: -1, untilMinute: 5 } },
    { plan: 7 },
  ];
  for (const part of wrong)
    await expect(campaigns.start({ broker: "acme", ...part } as never, olga)).rejects.toMatchObject({
      code: "invalid",
    });
  await expect(campaigns.start({ broker: "nobody" }, olga)).rejects.toMatchObject({ code: "not-found" });
  for (const id of ["nobody", "a/b", "00000000-0000-0000-0000-000000000000"]) {
    expect(await campaigns.read(id)).toBeUndefined();
    await expect(campaigns.cancel(id, olga)).rejects.toMatchObject({ code: "not-found" });
    await expect(campaigns.retry(id, olga)).rejects.toMatchObject({ code: "not-found" });
    await expect(campaigns.targets(id, { state: "failed" })).rejects.toMatchObject({ code: "not-found" });
  }
});

const minuteMs = 60_000;

test.each([
  ["no window", null, 5, 0],
  ["in it", { fromMinute: 60, untilMinute: 120 }, 60 * minuteMs, 0],
  ["before it", { fromMinute: 60, untilMinute: 120 }, 50 * minuteMs, 10 * minuteMs],
  ["after it", { fromMinute: 60, untilMinute: 120 }, 120 * minuteMs, 23 * 60 * minuteMs],
  ["in one over midnight", { fromMinute: 1_380, untilMinute: 60 }, 30 * minuteMs, 0],
  ["out of one over midnight", { fromMinute: 1_380, untilMinute: 60 }, 60 * minuteMs, 22 * 60 * minuteMs],
])("until a window opens: %s", (_title, window, now, ms) => {
  expect(untilOpenMs(window, now)).toBe(ms);
});

test.each([
  [0, 2, 2, null],
  [0, 3, 3, "3 of 3 upgrades failed"],
  [8, 2, 1, null],
  [7, 3, 1, "3 of 10 upgrades failed"],
  [97, 3, 3, null],
])("after %i successes and %i failures, %i of them in a row", (succeeded, failed, failedInARow, reason) => {
  const data = newCampaign("c", { broker: "acme" }, "olga", null, 0);
  expect(reasonToStop({ ...data, failedInARow, counts: { ...data.counts, succeeded, failed } })).toBe(reason);
});
