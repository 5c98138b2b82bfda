import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { sqliteStore } from "../src/stores/sqlite/index.js";
import { accept, by, kindsOf, Latch, outcomeOf, startJournal, until } from "./faults-fixture.js";
import { databasePath } from "./sqlite-fixture.js";

const large = "x".repeat(20_000);

describe("SQLite that may not grow any more", () => {
  test("accepts are refused with a clear error, what was accepted is there, and all goes on when there is room", async () => {
    const path = await databasePath();
    const store = sqliteStore(path, { maxPages: 300 });
    const { journal } = await startJournal({ store, kinds: { work: { run: async () => "done" } } });
    const accepted = new Map<string, string>();
    let refused: unknown;
    for (let n = 0; refused === undefined && n < 500; n++) {
      const asked = accept(journal, `r${n}`, { kind: "work", input: large, held: true }, { timeoutMs: 300 });
      await asked.then(
        (id) => accepted.set(`r${n}`, id),
        (error: unknown) => {
          refused = error;
        },
      );
    }
    expect(accepted.size).toBeGreaterThan(10);
    expect(refused).toMatchObject({ name: "JournalError", code: "store-unavailable" });
    // Whoever has to help must hear what is the matter, not only that there was no answer.
    const { message, cause } = refused as Error;
    expect(`${message} ${String(cause)}`).toContain("no room");
    for (const [key, id] of accepted) expect((await journal.operation(key, id))?.status).toBe("open");

    makeRoom(path, [...accepted.keys()].slice(0, 5));
    for (const [key, id] of [...accepted].slice(5)) {
      await journal.transact(key, () => ({ result: null, change: { release: [id] } }), { by });
      expect(await outcomeOf(journal, key, id)).toMatchObject({ kind: "succeeded" });
    }
  });

  test("a step that finished meanwhile is recorded when there is room, and does not run again", async () => {
    const path = await databasePath();
    const store = sqliteStore(path, { maxPages: 300 });
    const latch = new Latch();
    let ran = 0;
    const { journal, events } = await startJournal({
      store,
      kinds: {
        work: { run: async () => "done" },
        large: {
          run: (operation) =>
            operation.step("make", async () => {
              ran++;
              await latch.opened;
              return large.repeat(5);
            }),
        },
      },
    });
    const id = await accept(journal, "large", { kind: "large" });
    await until("the step runs", () => ran === 1);
    const filled = await fill(journal, store);
    latch.open();
    await until("it is told that there is no room", () => kindsOf(events, "store failed").length > 0);
    expect((await journal.operation("large", id))?.status).toBe("open");
    makeRoom(path, filled.slice(0, 20));
    expect(await outcomeOf(journal, "large", id)).toMatchObject({ kind: "succeeded" });
    expect(ran).toBe(1);
  });
});

describe.skipIf(!canMount())("SQLite on a disk that is full", () => {
  test("nothing that was accepted is lost, steps are recorded when there is room, and none runs twice", async () => {
    const folder = mkdtempSync(join(tmpdir(), "osbert-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m", "tmpfs", folder]);
    onTestFinished(() => {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    });
    const ballast = join(folder, "ballast");
    const store = sqliteStore(join(folder, "journal.db"));
    const latch = new Latch();
    const ran = new Map<string, number>();
    const { journal, events } = await startJournal({
      store,
      kinds: {
        work: {
          run: (operation) =>
            operation.step("s", async () => {
              ran.set(operation.key, (ran.get(operation.key) ?? 0) + 1);
              await latch.opened;
              return large;
            }),
        },
      },
    });
    onTestFinished(() => journal.kill());
    const accepted = new Map<string, string>();
    for (let n = 0; n < 10; n++) accepted.set(`r${n}`, await accept(journal, `r${n}`, { kind: "work" }));
    await until("all steps run", () => ran.size === 10);
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 8_192), 1));
    const refused = await accept(
      journal,
      "refused",
      { kind: "work", input: large.repeat(10) },
      { timeoutMs: 500 },
    ).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: "JournalError", code: "store-unavailable" });
    latch.open();
    await until("it is told", () => kindsOf(events, "store failed").length > 0);
    for (const [key, id] of accepted) expect((await journal.operation(key, id))?.id).toBe(id);
    unlinkSync(ballast);
    for (const [key, id] of accepted) expect(await outcomeOf(journal, key, id)).toMatchObject({ kind: "succeeded" });
    expect([...ran.entries()].filter(([key, times]) => key !== "refused" && times !== 1)).toEqual([]);
    await journal.stop();
  });
});

async function fill(journal: Parameters<typeof accept>[0], store: ReturnType<typeof sqliteStore>): Promise<string[]> {
  const keys: string[] = [];
  for (let n = 0; n < 500; n++) {
    const key = `fill ${n}`;
    try {
      await accept(journal, key, { kind: "work", input: large, held: true }, { timeoutMs: 300 });
      keys.push(key);
    } catch {
      break;
    }
  }
  expect((await store.find({ after: null, limit: 1_000 })).length).toBeGreaterThan(keys.length - 1);
  return keys;
}

/** As an operator would who deletes something, or the disk of whom grew: past the store, which may not grow for that either. */
function makeRoom(path: string, keys: readonly string[]): void {
  const database = new Database(path, { timeout: 5_000 });
  for (const key of keys) {
    database.prepare("delete from entry where resource = (select id from resource where key = ?)").run(key);
    database.prepare("delete from resource where key = ?").run(key);
  }
  database.close();
}

/** Only root may, and only where the container lets it. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "osbert-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" });
    execFileSync("umount", [folder], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
