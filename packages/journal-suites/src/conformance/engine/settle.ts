import assert from "node:assert/strict";
import type { OpenOperation, Operation, Outcome, Resource, ResourceChange } from "@osbert/journal";
import { Permanent } from "@osbert/journal";
import { accept, bob, change, type EngineTests, entriesOf, read } from "../story.js";

/** What the end of an operation means for its resource. */
export const settleTests: EngineTests = {
  "settle: data, labels, parts and operations that follow are one commit with the end": async (story) => {
    const settle = (resource: Resource, operation: OpenOperation, outcome: Outcome): ResourceChange => ({
      data: { runs: Number((resource.data as { runs?: number } | null)?.runs ?? 0) + 1, last: outcome.kind },
      labels: { phase: "ready" },
      parts: {
        [operation.part ?? ""]: {
          was: resource.parts.get(operation.part ?? "") ?? null,
          read: resource.parts.get("config") ?? null,
        },
        gone: null,
      },
      entries: [{ kind: "bound", payload: 1 }],
      accept: [{ kind: "next", delayMs: 1_000 }],
    });
    const kinds = {
      bind: { run: async () => ({ credentials: "c" }), settle, reads: ["config"] },
      next: { run: async () => null },
    };
    const process = await story.engine({ kinds });
    await change(process, "k", { parts: { "binding/1": "asked", config: "c1", gone: 1 }, labels: { phase: "new" } });
    const id = await accept(process, "k", { kind: "bind", part: "binding/1" });
    assert.deepEqual(await story.ends(process, "k", id), { kind: "succeeded", result: { credentials: "c" } });
    const { data, labels, parts, open } = await read(process, "k", ["binding/1", "gone"]);
    assert.deepEqual(data, { runs: 1, last: "succeeded" });
    assert.deepEqual(labels, { phase: "ready" });
    assert.deepEqual([...parts], [["binding/1", { was: "asked", read: "c1" }]]);
    assert.deepEqual(
      open.map(({ kind }) => kind),
      ["next"],
    );
    assert.deepEqual((await process.journal.find({ label: { name: "phase", value: "ready" } })).items.length, 1);
    assert.deepEqual((await process.journal.find({ label: { name: "phase", value: "new" } })).items.length, 0);
    const stored = await process.store.store.entries("k", { kind: "after", after: 0, limit: 100 });
    const [settled, bound, accepted] = stored.slice(-3);
    assert.deepEqual([settled?.kind, bound?.kind, accepted?.kind], ["settled", "bound", "accepted"]);
    assert.deepEqual(new Set([settled?.token, bound?.token, accepted?.token]).size, 1, "one commit");
  },

  "settle: it is asked about failures and cancellations, too": async (story) => {
    const ends: string[] = [];
    const settle = (_: Resource, { kind }: OpenOperation, outcome: Outcome): ResourceChange => ({
      data: `${kind} ${outcome.kind}`,
    });
    const run = async () => {
      throw new Permanent("no");
    };
    const process = await story.engine({ kinds: { fails: { run, settle }, never: { run, settle } } });
    await story.ends(process, "k", await accept(process, "k", { kind: "fails" }));
    ends.push(String((await read(process, "k")).data));
    const id = await accept(process, "k", { kind: "never", delayMs: 60_000 });
    await process.journal.cancel("k", id, "no", bob);
    ends.push(String((await read(process, "k")).data));
    await accept(process, "k", { kind: "never", delayMs: 60_000, deadlineMs: 1_000 });
    await story.pass(2_000);
    await story.until("it has failed", async () => (await read(process, "k")).open.length === 0);
    ends.push(String((await read(process, "k")).data));
    assert.deepEqual(ends, ["fails failed", "never cancelled", "never failed"]);
  },

  "settle: one that throws, or asks for what cannot be, makes a success a failure; nothing of it is kept": async (
    story,
  ) => {
    const wrong: Readonly<Record<string, () => ResourceChange>> = {
      throws: () => {
        throw new Error("settle broke");
      },
      "asks for an unknown kind": () => ({ data: "half done", accept: [{ kind: "no such kind" }] }),
      "gives nothing": () => undefined as unknown as ResourceChange,
      "gives data that is no JSON": () => ({ data: 1n as unknown as number, parts: { half: "done" } }),
      "gives a part a wrong name": () => ({ parts: { half: "done", "osbert.queue/1": 1 } }),
    };
    const settle = (_: Resource, operation: OpenOperation, outcome: Outcome): ResourceChange => {
      if (outcome.kind !== "succeeded") return { labels: { failed: "yes" } };
      return wrong[operation.part ?? ""]?.() ?? (undefined as unknown as ResourceChange);
    };
    const process = await story.engine({ kinds: { job: { run: async () => 1, settle } } });
    for (const part of Object.keys(wrong)) {
      const outcome = await story.ends(process, part, await accept(process, part, { kind: "job", part }));
      assert.ok(
        outcome.kind === "failed" && outcome.error.class === "unkeepable",
        `${part}: ${JSON.stringify(outcome)}`,
      );
      const { data, labels, parts, open } = await read(process, part, ["half"]);
      assert.deepEqual([data, labels, parts.size, open], [null, { failed: "yes" }, 0, []], part);
      assert.deepEqual(
        (await entriesOf(process, part)).map(({ kind }) => kind),
        ["accepted", "settled"],
      );
    }
  },

  "settle: an operation ends even if nothing can be made of its end": async (story) => {
    const settle = (): ResourceChange => {
      throw new Error("always");
    };
    const run = async ({ input }: Operation) => {
      if (input === "fails") throw new Permanent("its own words");
      return 1;
    };
    const process = await story.engine({ kinds: { job: { run, settle } } });
    const succeeded = await story.ends(process, "k", await accept(process, "k", { kind: "job" }));
    assert.ok(succeeded.kind === "failed" && succeeded.error.class === "unkeepable");
    const failed = await story.ends(process, "k", await accept(process, "k", { kind: "job", input: "fails" }));
    assert.ok(failed.kind === "failed" && failed.error.message === "its own words", JSON.stringify(failed));
    const waiting = await accept(process, "k", { kind: "job", delayMs: 60_000 });
    assert.equal(await process.journal.cancel("k", waiting, "no", bob), true);
    assert.deepEqual((await process.journal.operation("k", waiting))?.outcome, { kind: "cancelled", reason: "no" });
    const told = process.events.flatMap((event) => (event.kind === "settled" ? [event.settleError] : []));
    assert.deepEqual(told.map(String), ["Error: always", "Error: always", "Error: always"]);
  },

  "settle: it sees what others changed while the operation ran": async (story) => {
    const settle = (resource: Resource): ResourceChange => ({ data: [resource.data, "settled"] });
    const run = async (operation: Operation) => operation.step("one", () => 1);
    const process = await story.engine({ kinds: { job: { run, settle } } });
    const other = await story.process({ kinds: {} });
    const looks = process.store.hold(["commit"]);
    const accepted = accept(process, "k", { kind: "job" });
    await story.quiet();
    looks.letGo();
    const id = await accepted;
    const ending = process.store.hold(["commit"]);
    await story.quiet();
    await change(other, "k", { data: "by another" });
    ending.letGo();
    await story.ends(process, "k", id);
    assert.deepEqual((await read(process, "k")).data, ["by another", "settled"]);
  },

  "settle: a chain of operations that each ask for the next runs to its end": async (story) => {
    const settle = (resource: Resource): ResourceChange => {
      const done = Number(resource.data ?? 0) + 1;
      return { data: done, accept: done < 10 ? [{ kind: "link" }] : [] };
    };
    const process = await story.engine({ kinds: { link: { run: async () => null, settle } } });
    await accept(process, "k", { kind: "link" });
    await story.until("the last link is done", async () => (await read(process, "k")).data === 10);
    assert.equal((await read(process, "k")).open.length, 0);
  },
};
