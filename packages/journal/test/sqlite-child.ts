import { writeSync } from "node:fs";
import type { Change } from "../src/store.js";
import { sqliteStore } from "../src/stores/sqlite/index.js";

/**
 * A process that owns a journal, for the tests of what happens to it when the process ends. Writes what it did line
 * by line.
 */
const [task = "", path = ""] = process.argv.slice(2);
const store = sqliteStore(path);

try {
  await store.open();
  say("open");
} catch (error) {
  say(`${(error as { code?: string }).code}: ${(error as Error).message}`);
  process.exit(3);
}

switch (task) {
  case "hold":
    setInterval(() => {}, 60_000);
    break;
  case "commit for ever":
    for (let caller = 0; caller < 64; caller++) void commitForEver(caller);
    break;
  case "commit and leave":
    for (let n = 0; n < 200; n++) void store.commit(newRecord(`left ${n}`));
    break;
  case "idle":
    await store.commit(newRecord("one"));
    break;
}

async function commitForEver(caller: number): Promise<void> {
  for (let n = 0; ; n++) {
    const key = `caller ${caller}, ${n}`;
    await store.commit(newRecord(key));
    // At once and not by way of a stream: what was acknowledged must be told before anything else happens.
    say(key);
  }
}

function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      // Whoever reads is slow, and the pipe is full. A line of less than 4 KiB is written whole, or not at all.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function newRecord(key: string): Change {
  return {
    key,
    expected: null,
    token: key,
    state: JSON.stringify({ key }),
    lane: "work",
    epoch: 0,
    lease: null,
    dueAt: null,
    entries: [{ kind: "noted", operation: null, body: JSON.stringify({ key }) }],
    putParts: [{ id: "part", body: "{}" }],
    deleteParts: [],
    addLabels: [{ name: "made-by", value: "child" }],
    removeLabels: [],
    deleteEntries: [],
    wake: false,
  };
}
