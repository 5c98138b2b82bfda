import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { Entry } from "../src/resource.js";
import { accept, kindsOf, outcomeWithin, startInMemory } from "./faults-fixture.js";
import { databasePath, endOf, startProgram } from "./sqlite-fixture.js";

const minuteMs = 60_000;
const kinds = { work: { run: async () => "done" } };

test("entries are handed over before they are removed, each as the journal tells it", async () => {
  const archived: Entry[] = [];
  const left: number[] = [];
  const bench = await startInMemory({
    kinds,
    retention: {
      succeededMs: minuteMs,
      archive: async (key, entries) => {
        left.push((await bench.journal.entries(key)).length);
        archived.push(...entries);
      },
    },
  });
  const id = await accept(bench.journal, "k", { kind: "work" });
  await outcomeWithin(bench, "k", id, minuteMs);
  const before = await bench.journal.entries("k");
  await bench.clock.advance(2 * minuteMs);
  expect(archived).toEqual(before);
  expect(left).toEqual([before.length]);
  expect((await bench.journal.entries("k")).map(({ kind }) => kind)).toEqual(["pruned"]);
});

test("while they cannot be kept elsewhere, or that hangs, none is removed, and operations go on; later it is tried again", async () => {
  let trouble: "fails" | "hangs" | "none" = "fails";
  const archived: Entry[] = [];
  const bench = await startInMemory({
    kinds,
    retention: {
      succeededMs: minuteMs,
      archive: async (_key, entries) => {
        if (trouble === "fails") throw new Error("no room");
        if (trouble === "hangs") await new Promise(() => undefined);
        archived.push(...entries);
      },
    },
  });
  const first = await accept(bench.journal, "k", { kind: "work" });
  await outcomeWithin(bench, "k", first, minuteMs);
  for (const next of ["hangs", "none"] as const) {
    await bench.clock.advance(10 * minuteMs);
    expect((await bench.journal.operation("k", first))?.outcome).toMatchObject({ kind: "succeeded" });
    const other = await accept(bench.journal, "k", { kind: "work" });
    await outcomeWithin(bench, "k", other, minuteMs);
    trouble = next;
  }
  expect(kindsOf(bench.events, "archive failed").length).toBeGreaterThanOrEqual(2);
  expect(archived).toEqual([]);
  await bench.clock.advance(21 * minuteMs);
  expect(archived.filter(({ operation }) => operation === first).map(({ kind }) => kind)).toEqual([
    "accepted",
    "settled",
  ]);
  expect(await bench.journal.operation("k", first)).toBeUndefined();
});

test("a process that is killed after it has kept them and before it has removed them keeps them twice, and loses none", async () => {
  const path = await databasePath();
  const file = join(dirname(path), "archive");
  const killed = startProgram("archive-child.ts", [path, file, "die"]);
  expect(await endOf(killed.process)).toBe("SIGKILL");
  const kept = readFileSync(file, "utf8");
  expect(kept).toMatch(/^k 1 accepted\nk \d+ settled\n$/);
  const next = startProgram("archive-child.ts", [path, file]);
  expect((await next.lines.next()).value).toBe("pruned");
  expect(readFileSync(file, "utf8")).toBe(kept + kept);
});
