import { expect, test } from "vitest";
import type { Operation } from "../src/engine/operation-kind.js";
import { Permanent } from "../src/errors.js";
import { accept, by, startInMemory } from "./faults-fixture.js";

const hourMs = 3_600_000;

/** Works until it is told to stop. */
function untilAborted({ signal }: Operation, aborted: () => void = () => undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      aborted();
      reject(signal.reason as Error);
    });
  });
}

const poll = (operation: Operation) => operation.poll("look", () => undefined, { everyMs: hourMs });

test("J8: what runs is told when the end of a sleeping sibling cancels it, and what sleeps has ended", async () => {
  let aborted = false;
  const shared = { mode: "shared", deadlineMs: null } as const;
  const { journal, clock } = await startInMemory({
    kinds: {
      long: { ...shared, run: (operation) => untilAborted(operation, () => (aborted = true)) },
      asleep: {
        ...shared,
        run: poll,
        settle: ({ open }) => ({
          cancel: open.filter(({ kind }) => kind !== "asleep").map(({ id }) => ({ operation: id, reason: "sibling" })),
        }),
      },
      other: { ...shared, run: poll },
    },
  });
  const kinds = ["long", "asleep", "other"];
  const change = { accept: kinds.map((kind) => ({ kind })) };
  const { accepted } = await journal.transact("k", () => ({ result: null, change }), { by });
  await clock.advance(5_000);
  await journal.cancel("k", accepted[1]?.id ?? "", "stop", by);
  await clock.advance(60_000);
  expect(aborted).toBe(true);
  expect((await journal.read("k"))?.open).toEqual([]);
});

test("J8: what a change drops ends at once, also if the change puts something in front of a lane without room", async () => {
  const { journal, clock } = await startInMemory({
    laneConcurrency: 1,
    kinds: { job: { lane: "lane", deadlineMs: null, run: (operation) => untilAborted(operation) } },
  });
  await accept(journal, "busy", { kind: "job" });
  await clock.advance(100);
  const many = { accept: Array.from({ length: 1_200 }, () => ({ kind: "job" })) };
  await journal.transact("k", () => ({ result: null, change: many }), { by });
  const drop = { cancel: { others: true, reason: "deleted" }, accept: [{ kind: "job", place: "front" }] } as const;
  await journal.transact("k", () => ({ result: null, change: drop }), { by });
  await clock.advance(60_000);
  expect((await journal.operations("k", { limit: 10 })).items.map(({ state }) => state)).toEqual(["queued"]);
});

test("J5: what comes after a step, or a poll, does not wait for the poll beside it", async () => {
  const done: [string, number][] = [];
  const { journal, clock } = await startInMemory({
    kinds: {
      job: {
        deadlineMs: null,
        async run(operation) {
          const steps = async () => {
            for (const name of ["one", "two", "three"])
              await operation.step(name, async () => {
                await new Promise<void>((resolve) => clock.after(50, resolve));
                done.push([name, clock.wallMs() - began]);
                return name;
              });
          };
          await Promise.all([poll(operation), steps()]);
        },
      },
    },
  });
  const began = clock.wallMs();
  await accept(journal, "k", { kind: "job" });
  await clock.advance(60_000);
  expect(done.map(([name]) => name)).toEqual(["one", "two", "three"]);
});

test("a failure beside a poll that the function hears of and throws ends the operation", async () => {
  let runs = 0;
  const { journal, clock } = await startInMemory({
    kinds: {
      job: {
        async run(operation) {
          const broken = operation.step("broken", () => {
            runs++;
            throw new Permanent("no such place");
          });
          const [, failed] = await Promise.allSettled([poll(operation), broken]);
          if (failed.status === "rejected") throw failed.reason;
        },
      },
    },
  });
  const id = await accept(journal, "k", { kind: "job" });
  await clock.advance(10 * hourMs);
  expect((await journal.operation("k", id))?.outcome).toMatchObject({ kind: "failed" });
  expect(runs).toBe(1);
});

test("a decision of an operation that is async is refused", async () => {
  const decide = (async () => ({ data: 1 })) as unknown as () => { readonly data: number };
  const { journal, clock } = await startInMemory({
    kinds: { job: { maxAttempts: 1, run: (operation) => operation.change(decide) } },
  });
  const id = await accept(journal, "k", { kind: "job" });
  await clock.advance(60_000);
  const { outcome } = (await journal.operation("k", id)) ?? {};
  expect(outcome).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("must not be async") } });
});
