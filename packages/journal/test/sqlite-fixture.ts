import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import type { Change } from "../src/store.js";
import { type SqliteStore, type SqliteStoreOptions, sqliteStore } from "../src/stores/sqlite/index.js";

/** A place for the database of one test; removed when the test ends. */
export async function databasePath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "osbert-sqlite-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "journal.db");
}

/** An open store; closed when the test ends. */
export async function openStore(path: string, options?: SqliteStoreOptions): Promise<SqliteStore> {
  const store = sqliteStore(path, options);
  await store.open();
  onTestFinished(() => store.close());
  return store;
}

/** A change that makes a record with one entry. */
export function newRecord(key: string, details: Partial<Change> = {}): Change {
  return {
    key,
    expected: null,
    token: key.slice(0, 32),
    state: "{}",
    lane: "work",
    epoch: 0,
    lease: null,
    dueAt: null,
    entries: [{ kind: "noted", operation: null, body: "{}" }],
    putParts: [],
    deleteParts: [],
    addLabels: [],
    removeLabels: [],
    deleteEntries: [],
    wake: false,
    ...details,
  };
}

/** What `sqlite-child.ts` can do. */
export type ChildTask = "hold" | "commit for ever" | "commit and leave" | "idle";

/** Runs `sqlite-child.ts` in a process of its own, and answers it with the lines that it writes. */
export function startChild(task: ChildTask, path: string): { process: ChildProcess; lines: AsyncIterator<string> } {
  return startProgram("sqlite-child.ts", [task, path]);
}

/** The same for another program beside this file. */
export function startProgram(
  name: string,
  args: readonly string[],
): { process: ChildProcess; lines: AsyncIterator<string> } {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const file = fileURLToPath(new URL(name, import.meta.url));
  const process_ = spawn(process.execPath, ["--import", tsx, file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    process_.kill("SIGKILL");
  });
  return { process: process_, lines: createInterface({ input: process_.stdout })[Symbol.asyncIterator]() };
}

/** Waits for the end of a child and answers how it ended. */
export async function endOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? child.signalCode;
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? signal;
}
