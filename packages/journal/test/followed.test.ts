import { onTestFinished, test } from "vitest";
import type { Followed } from "../src/followed.js";
import { type Journal, openJournal } from "../src/journal.js";
import type { Json } from "../src/json.js";
import type { Store, Woken } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type Interpose, interposedStore } from "../src/testing/index.js";
import { by, until } from "./faults-fixture.js";
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

async function open(store: Store): Promise<Journal> {
  const journal = await openJournal({ store, kinds: {} });
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
