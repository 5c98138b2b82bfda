import { openJournal } from "@osbert/journal";
import { memoryStore } from "@osbert/journal/memory";
import { expect, onTestFinished, test } from "vitest";
import { SourceCopies, type SourceCopiesPorts } from "../src/catalog/source-copies.js";
import { sourceResource } from "../src/catalog/source-resource.js";
import { newSource, sourceKey } from "../src/reconcile/records.js";

const by = { actor: { type: "system", subject: "test" } } as const;
const key = sourceKey("hub");

/** A source in a journal, and what follows it. */
async function followed(
  changed: (key: string) => Promise<void>,
  notTakenIn: SourceCopiesPorts["notTakenIn"] = () => undefined,
) {
  const journal = await openJournal({ store: memoryStore(), kinds: {} });
  const write = async (generation: string) => {
    const data = newSource("hub", generation);
    await journal.transact(
      key,
      sourceResource.decide(() => ({ result: null, change: { data } })),
      { by },
    );
  };
  await write("g1");
  await journal.start();
  const copies = new SourceCopies({ journal: () => journal, changed, notTakenIn });
  onTestFinished(async () => {
    copies.close();
    await journal.stop();
  });
  return { copies, write };
}

test("a change that could not be taken in comes again", async () => {
  let times = 0;
  const { copies, write } = await followed(async () => {
    times += 1;
    if (times === 1) throw new Error("the store does not answer");
  });
  await copies.follow(key);
  expect([copies.stored(key)?.data.generation, copies.keyOf("hub"), times]).toEqual(["g1", key, 0]);
  await write("g2");
  await expect.poll(() => times, { timeout: 20_000 }).toBe(2);
  expect(copies.stored(key)?.data.generation).toBe("g2");
});

test("why a change could not be taken in was swallowed: it is told, each reason once", async () => {
  const reasons = ["the store does not answer", "the store does not answer", "its revision is gone", null];
  const told: (readonly [string, unknown])[] = [];
  let times = 0;
  const { copies, write } = await followed(
    async () => {
      const reason = reasons[times++] ?? null;
      if (reason !== null) throw new Error(reason);
    },
    (source, error) => void told.push([source, error]),
  );
  await copies.follow(key);
  await write("g2");
  await expect.poll(() => times, { timeout: 20_000 }).toBe(reasons.length);
  expect(told).toEqual([
    [key, new Error("the store does not answer")],
    [key, new Error("its revision is gone")],
  ]);
});

test("a source that is about to be followed when the broker stops is not followed", async () => {
  const { copies } = await followed(async () => undefined);
  const following = copies.follow(key);
  copies.close();
  await expect(following).rejects.toThrow("the broker has stopped");
  expect([copies.isFollowed(key), copies.all()]).toEqual([false, []]);
  await copies.follow(key);
  expect(copies.isFollowed(key)).toBe(true);
});
