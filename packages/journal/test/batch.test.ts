import { expect, test } from "vitest";
import { batcher } from "../src/stores/batch.js";

/** Batches that a test ends by hand. */
function manualRun() {
  const batches: {
    items: readonly string[];
    end: (results?: readonly string[]) => void;
    fail: (reason: Error) => void;
  }[] = [];
  const run = (items: readonly string[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      batches.push({ items, end: (results) => resolve(results ?? items.map((item) => `${item}!`)), fail: reject });
    });
  return { batches, run, items: () => batches.map(({ items }) => items.join(" ")) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const keyOf = (item: string) => item[0] as string;

test("what is added in one turn goes together, what is added meanwhile goes with the next", async () => {
  const { batches, run, items } = manualRun();
  const group = batcher({ run, maxItems: 10 });
  const answers = [group.add("a"), group.add("b")];
  await turn();
  answers.push(group.add("c"), group.add("d"));
  await turn();
  expect(items()).toEqual(["a b"]);
  expect(group.waiting).toBe(2);
  batches[0]?.end();
  await turn();
  await turn();
  expect(items()).toEqual(["a b", "c d"]);
  batches[1]?.end();
  expect(await Promise.all(answers)).toEqual(["a!", "b!", "c!", "d!"]);
});

test("callers that were just answered come along with those that waited", async () => {
  const { batches, run, items } = manualRun();
  const group = batcher({ run, maxItems: 10 });
  const again = group.add("a").then(() => group.add("e"));
  await turn();
  const waited = group.add("b");
  batches[0]?.end();
  await turn();
  await turn();
  expect(items()).toEqual(["a", "b e"]);
  batches[1]?.end();
  await Promise.all([again, waited]);
});

test("a batch holds no more than the most items, and no more than the most weight", async () => {
  const { run, items } = manualRun();
  const group = batcher({ run, maxItems: 3, inFlight: 9, weightOf: (item: string) => item.length, maxWeight: 6 });
  for (const item of ["a", "b", "c", "d", "eeeee", "ff", "ggggggggg", "h"]) void group.add(item);
  await turn();
  expect(items()).toEqual(["a b c", "d eeeee", "ff", "ggggggggg", "h"]);
});

test("no more batches are under way than allowed", async () => {
  const { batches, run, items } = manualRun();
  const group = batcher({ run, maxItems: 1, inFlight: 2 });
  for (const item of ["a", "b", "c"]) void group.add(item);
  await turn();
  expect(items()).toEqual(["a", "b"]);
  batches[1]?.end();
  await turn();
  await turn();
  expect(items()).toEqual(["a", "b", "c"]);
});

test("items of one key run one after the other in their order, even with room for more batches", async () => {
  const { batches, run, items } = manualRun();
  const group = batcher({ run, maxItems: 10, inFlight: 3, keyOf });
  for (const item of ["a1", "a2", "b1", "a3", "c1"]) void group.add(item);
  await turn();
  expect(items()).toEqual(["a1 b1 c1"]);
  batches[0]?.end();
  await turn();
  await turn();
  expect(items()).toEqual(["a1 b1 c1", "a2"]);
  batches[1]?.end();
  await turn();
  await turn();
  expect(items()).toEqual(["a1 b1 c1", "a2", "a3"]);
});

test("a batch that fails fails its own items only, and its keys go on", async () => {
  const { batches, run } = manualRun();
  const group = batcher({ run, maxItems: 10, keyOf });
  const first = group.add("a1");
  const second = group.add("a2");
  await turn();
  batches[0]?.fail(new Error("disk full"));
  await expect(first).rejects.toThrow("disk full");
  await turn();
  batches[1]?.end();
  expect(await second).toBe("a2!");
});

test("a batch that answers too few results fails instead of leaving callers waiting", async () => {
  const { batches, run } = manualRun();
  const group = batcher({ run, maxItems: 10 });
  const both = [group.add("a"), group.add("b")];
  await turn();
  batches[0]?.end(["a!"]);
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

test("idle waits for what waits and what is under way", async () => {
  const { batches, run } = manualRun();
  const group = batcher({ run, maxItems: 1 });
  await group.idle();
  void group.add("a");
  void group.add("b");
  let idle = false;
  const waited = group.idle().then(() => {
    idle = true;
  });
  await turn();
  batches[0]?.end();
  await turn();
  await turn();
  expect(idle).toBe(false);
  batches[1]?.end();
  await waited;
});

test("a hot key with very many items waiting does not slow the others down", async () => {
  const group = batcher({ run: async (items: readonly string[]) => items, maxItems: 100, keyOf });
  const hot = Array.from({ length: 20_000 }, (_, index) => group.add(`a${index}`));
  const order: string[] = [];
  for (const answer of hot) void answer.then((item) => order.push(item));
  const started = performance.now();
  await group.add("b");
  expect(performance.now() - started).toBeLessThan(1_000);
  await Promise.all(hot);
  expect(order).toEqual(Array.from({ length: 20_000 }, (_, index) => `a${index}`));
});

test("many that are ready alternate where that is worth it: one batch for each free place", async () => {
  const { batches, run, items } = manualRun();
  const group = batcher({ run, maxItems: 10, inFlight: 2, alternates: (ready) => ready >= 4 });
  for (const item of ["a", "b", "c", "d", "e"]) void group.add(item);
  await turn();
  expect(items()).toEqual(["a b c", "d e"]);
  for (const item of ["f", "g", "h", "i"]) void group.add(item);
  batches[0]?.end();
  await turn();
  await turn();
  // One place is free: all that are ready go, the other half is still under way.
  expect(items()).toEqual(["a b c", "d e", "f g h i"]);
  batches[1]?.end();
  batches[2]?.end();
  await group.idle();
  for (const item of ["j", "k"]) void group.add(item);
  await turn();
  expect(items().at(-1)).toBe("j k");
});

test("a result that is an error rejects its item and no other", async () => {
  const run = async (items: readonly string[]) => items.map((item) => (item === "b" ? new Error("not b") : `${item}!`));
  const group = batcher<string, string>({ run, maxItems: 10 });
  const answers = await Promise.allSettled(["a", "b", "c"].map((item) => group.add(item)));
  expect(answers.map((answer) => (answer.status === "fulfilled" ? answer.value : String(answer.reason)))).toEqual([
    "a!",
    "Error: not b",
    "c!",
  ]);
});

test("of many that alternate, each free place gets its share", async () => {
  const { run, items } = manualRun();
  const group = batcher({ run, maxItems: 10, inFlight: 3, alternates: (ready) => ready >= 4 });
  for (const item of ["a", "b", "c", "d"]) void group.add(item);
  await turn();
  expect(items()).toEqual(["a b", "c", "d"]);
});
