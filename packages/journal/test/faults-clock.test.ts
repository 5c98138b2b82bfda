import { afterEach, describe, expect, test, vi } from "vitest";
import { steadyWallClock } from "../src/clock.js";
import { openJournal } from "../src/open-journal.js";
import { memoryStore } from "../src/stores/memory.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { manualClock } from "../src/testing/index.js";
import { accept, Latch, outcomeOf, settle, startJournal } from "./faults-fixture.js";
import { databasePath } from "./sqlite-fixture.js";

const hourMs = 3_600_000;
const kinds = { work: { run: async () => "done" } };

afterEach(() => {
  vi.restoreAllMocks();
});

/** The machine's wall clock shows another time from now on, and goes on from there. */
function jump(ms: number): void {
  const shown = Date.now() + ms;
  const at = performance.now();
  vi.spyOn(Date, "now").mockImplementation(() => Math.floor(shown + performance.now() - at));
}

describe("a wall clock that jumps while the journal runs", () => {
  test.each([5, -5])("by %d hours: timers of SQLite come at their time, not hours sooner or later", async (hours) => {
    const { journal } = await startJournal({ store: sqliteStore(await databasePath()), kinds });
    const soon = await accept(journal, "soon", { kind: "work", delayMs: 300 });
    const later = await accept(journal, "later", { kind: "work", delayMs: hourMs });
    jump(hours * hourMs);
    expect(await outcomeOf(journal, "soon", soon)).toMatchObject({ kind: "succeeded" });
    const after = await accept(journal, "after", { kind: "work", delayMs: 100 });
    expect(await outcomeOf(journal, "after", after)).toMatchObject({ kind: "succeeded" });
    expect((await journal.operation("later", later))?.status).toBe("open");
  });
});

describe("a wall clock that was set while the process was down", () => {
  test("back by 5 hours: what was due soon is due soon, not in hours", async () => {
    const path = await databasePath();
    const first = await openJournal({ store: sqliteStore(path), kinds });
    await first.start();
    const ids = new Map<string, string>();
    for (let n = 0; n < 5; n++)
      ids.set(`r${n}`, await accept(first, `r${n}`, { kind: "work", delayMs: 500 + 100 * n }));
    await first.stop();
    jump(-5 * hourMs);
    const { journal } = await startJournal({ store: sqliteStore(path), kinds });
    for (const [key, id] of ids) expect(await outcomeOf(journal, key, id)).toMatchObject({ kind: "succeeded" });
    const next = await accept(journal, "r0", { kind: "work" });
    expect(await outcomeOf(journal, "r0", next)).toMatchObject({ kind: "succeeded" });
    const entries = await journal.entries("r0");
    expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).toSorted((a, b) => a - b));
  });

  test("forward by 5 hours: what is due runs, and what a killed process left is taken over", async () => {
    const path = await databasePath();
    const latch = new Latch();
    const first = await openJournal({
      store: sqliteStore(path),
      kinds: { ...kinds, hang: { run: (operation) => operation.step("s", () => latch.opened) } },
    });
    await first.start();
    const later = await accept(first, "later", { kind: "work", delayMs: hourMs });
    const hanging = await accept(first, "hanging", { kind: "hang" });
    await first.kill();
    jump(5 * hourMs);
    const { journal } = await startJournal({
      store: sqliteStore(path),
      kinds: { ...kinds, hang: { run: async () => "over" } },
    });
    expect(await outcomeOf(journal, "later", later)).toMatchObject({ kind: "succeeded" });
    expect(await outcomeOf(journal, "hanging", hanging)).toEqual({ kind: "succeeded", result: "over" });
  });
});

describe("a store's clock that jumps", () => {
  test.each([5, -5])(
    "by %d hours while a step runs: the step is recorded once, and the operation ends",
    async (hours) => {
      const clock = manualClock();
      let shift = 0;
      const latch = new Latch();
      let ran = 0;
      const { journal } = await startJournal({
        store: memoryStore({ clock: () => clock.wallMs() + shift }),
        clock,
        kinds: {
          ...kinds,
          step: {
            run: (operation) =>
              operation.step("s", async () => {
                ran++;
                await latch.opened;
                return "made";
              }),
            deadlineMs: null,
          },
        },
      });
      const id = await accept(journal, "r1", { kind: "step" });
      await settle();
      shift = hours * hourMs;
      await clock.advance(60_000);
      latch.open();
      await clock.advance(60_000);
      expect((await journal.operation("r1", id))?.outcome).toEqual({ kind: "succeeded", result: "made" });
      expect(ran).toBe(1);
      const next = await accept(journal, "r2", { kind: "work" });
      await clock.advance(60_000);
      expect((await journal.operation("r2", next))?.status).toBe("succeeded");
    },
  );
});

describe("a steady wall clock", () => {
  test("is read once: it cannot jump, and is never before the newest time that is known", () => {
    let wall = 1_000_000;
    const clock = steadyWallClock(0, () => wall);
    wall += 5 * hourMs;
    expect(clock() - 1_000_000).toBeLessThan(60_000);
    wall -= 10 * hourMs;
    expect(clock()).toBeGreaterThanOrEqual(1_000_000);
    const behind = steadyWallClock(2_000_000, () => 1_000_000);
    expect(behind()).toBeGreaterThanOrEqual(2_000_000);
  });
});
