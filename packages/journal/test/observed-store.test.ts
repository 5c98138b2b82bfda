import { expect, test } from "vitest";
import { JournalError } from "../src/errors.js";
import { observedStore, type StoreAnswered } from "../src/observed-store.js";
import { memoryStore } from "../src/stores/memory.js";
import { faultyStore } from "../src/testing/index.js";

test("each answer of the store is told, with how it went and nothing of what was asked", async () => {
  const told: StoreAnswered[] = [];
  const faulty = faultyStore(memoryStore());
  const store = observedStore(faulty, (event) => told.push(event));
  await store.open();
  expect(await store.read("a secret", [])).toBeUndefined();
  faulty.next("read", "refused");
  await expect(store.read("a secret", [])).rejects.toBeInstanceOf(JournalError);
  expect(told.map(({ call, failed }) => [call, failed])).toEqual([
    ["open", false],
    ["read", false],
    ["read", true],
  ]);
  expect(told.every(({ tookMs }) => tookMs >= 0)).toBe(true);
  expect(JSON.stringify(told)).not.toContain("secret");
  expect([store.name, store.pace]).toEqual([faulty.name, faulty.pace]);
});

test("whoever watches cannot harm a call, and wake-ups come through", async () => {
  const inner = memoryStore();
  const store = observedStore(inner, () => {
    throw new Error("broken");
  });
  let woken = 0;
  const callOff = store.onWake(() => woken++);
  expect(await store.now()).toBeGreaterThan(0);
  await store.release("nobody", []);
  expect(woken).toBe(1);
  callOff();
});
