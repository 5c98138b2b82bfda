import { expect, onTestFinished, test } from "vitest";
import { encryptedStore } from "../src/encryption/index.js";
import { JournalError } from "../src/errors.js";
import type { Followed } from "../src/followed.js";
import type { Journal, JournalOptions } from "../src/journal.js";
import type { Json } from "../src/json.js";
import type { JournalEvent } from "../src/observe.js";
import { openJournal } from "../src/open-journal.js";
import type { Store, Woken } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type Interpose, interposedStore, manualClock } from "../src/testing/index.js";
import { ringOf } from "./encryption-fixture.js";
import { by, kindsOf, until } from "./faults-fixture.js";
import { databasePath, openStore } from "./sqlite-fixture.js";

test("word of a change that comes just as a look ends is not lost", async () => {
  // A look takes some microtasks to end after its last answer; word comes at each of them once.
  for (let microtasks = 0; microtasks < 30; microtasks++) {
    const store = memoryStore();
    const writer = await open(store);
    let wake: (what: Woken) => void = () => undefined;
    let isLate = false;
    const interpose: Interpose = async ({ method }, go) => {
      const answer = await go();
      if (method !== "read" || !isLate) return answer;
      isLate = false;
      await write(writer, "second");
      void after(microtasks, () => wake("value"));
      return answer;
    };
    const onWake: Store["onWake"] = (listener) => {
      wake = listener;
      return () => undefined;
    };
    const reader = await open({ ...interposedStore(store, interpose), onWake });
    const followed = await follow(reader);
    await write(writer, "first");
    isLate = true;
    wake("value");
    await until(`the second is seen, ${microtasks} microtasks after the answer`, () => followed.value === "second");
  }
});

test.each([
  ["memory", async () => memoryStore()],
  ["sqlite", async () => openStore(await databasePath())],
] as const)(
  "%s: a change by a journal that does not follow the value is seen, though nobody polls",
  async (_, make) => {
    const store = await make();
    // Both journals are on one store, which is open already.
    const shared = interposedStore(store, async ({ method }, go) =>
      method === "open" || method === "close" ? undefined : go(),
    );
    const [writer, reader] = [await open(shared), await open(shared)];
    const followed = await follow(reader);
    await write(writer, "changed");
    await until("it is seen", () => followed.value === "changed");
  },
);

test.each([
  ["memory", async () => memoryStore()],
  ["sqlite", async () => openStore(await databasePath())],
] as const)("%s: commits of other resources ask the store nothing about followed values", async (_, make) => {
  const store = await make();
  let asked = 0;
  const journal = await open(
    interposedStore(store, async ({ method }, go) => {
      if (method === "versions") asked++;
      return method === "open" || method === "close" ? undefined : go();
    }),
  );
  const followed = await follow(journal);
  for (let nth = 0; nth < 5; nth++) {
    const decide = () => ({ result: null, change: { data: nth } });
    await journal.transact(`other-${nth}`, decide, { by });
  }
  // Word comes in the order of commits: when it has come of this one, it has come of all before.
  const other = await journal.followed("another", (data) => data);
  await other.update(() => ({ value: "told" }), { by });
  await until("word of a followed value has come", () => asked > 0);
  expect(asked).toBe(1);
  expect(followed.staleSince).toBeNull();
});

test("a record that the store itself cannot read is told once, and not read with every look", async () => {
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  let [isDamaged, reads] = [false, 0];
  const interpose: Interpose = async ({ method }, go) => {
    if (method !== "read" || !isDamaged) return go();
    reads++;
    throw new JournalError("unreadable");
  };
  const polled = { ...interposedStore(store, interpose), pace: { ...store.pace, pollMs: 1_000 } };
  const events: JournalEvent[] = [];
  const reader = await open(polled, { clock, observe: (event) => events.push(event) });
  const followed = await follow(reader);
  isDamaged = true;
  await write(await open(store), "damaged");
  await clock.advance(10_000);
  expect(followed.staleSince).not.toBeNull();
  expect([reads, kindsOf(events, "set aside").length]).toEqual([1, 1]);
});

test("a value whose key is missing is stale alone, is told once, and is read after a rotation", async () => {
  const clock = manualClock();
  const store = memoryStore({ clock: clock.wallMs });
  const events: JournalEvent[] = [];
  const observe = (event: JournalEvent) => events.push(event);
  const reader = await open(encryptedStore(store, ringOf("k1")), { clock, observe });
  const writer = await open(encryptedStore(store, ringOf("k2", "k1")));
  const [locked, other] = [await follow(reader, "locked"), await follow(reader, "other")];
  await write(writer, "under the newer key", "locked");
  await clock.advance(5_000);
  expect(locked.staleSince).not.toBeNull();
  expect(other.staleSince).toBeNull();
  expect(kindsOf(events, "store failed")).toHaveLength(1);
  const rotating = encryptedStore(store, ringOf("k1", "k2"));
  await rotating.open();
  await rotating.rotate();
  await clock.advance(5_000);
  expect([locked.value, locked.staleSince]).toEqual(["under the newer key", null]);
});

async function open(store: Store, options: Partial<JournalOptions> = {}): Promise<Journal> {
  const journal = await openJournal({ store, kinds: {}, ...options });
  onTestFinished(() => journal.kill());
  return journal;
}

function follow(journal: Journal, key = "value"): Promise<Followed<Json>> {
  return journal.followed(key, (data) => data);
}

async function write(journal: Journal, data: Json, key = "value"): Promise<void> {
  await journal.transact(key, () => ({ result: null, change: { data } }), { by });
}

async function after(microtasks: number, act: () => void): Promise<void> {
  for (let passed = 0; passed < microtasks; passed++) await Promise.resolve();
  act();
}
