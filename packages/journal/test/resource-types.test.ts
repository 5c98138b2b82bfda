import { expect, expectTypeOf, test } from "vitest";
import { defineResource, type Json, openJournal } from "../src/index.js";
import { memoryStore } from "../src/stores/memory.js";

// `tsc -b` checks the expectations about types; a `@ts-expect-error` that is not needed is an error itself.

interface Snapshot {
  readonly takenAt: number;
}

interface Shape {
  readonly data: { readonly phase: "creating" | "ready"; readonly snapshots: number };
  readonly parts: { readonly disk: { readonly device: string }; readonly [id: `snapshot/${string}`]: Snapshot };
  readonly operations: {
    readonly create: { readonly input: { readonly gigabytes: number }; readonly result: { readonly device: string } };
    readonly snapshot: { readonly input: null; readonly result: null };
  };
}

const volumes = defineResource<Shape>();
const by = { actor: { type: "user", subject: "anna" } } as const;

const kinds = volumes.kinds({
  create: {
    lane: ({ gigabytes }) => (gigabytes > 100 ? "large" : "small"),
    run: async (operation) => {
      expectTypeOf(operation.data.phase).toEqualTypeOf<"creating" | "ready">();
      await operation.change({ parts: { disk: { device: "none yet" } } });
      // @ts-expect-error a disk has a device
      void (() => operation.change({ parts: { disk: { size: 1 } } }));
      return { device: `disk of ${operation.input.gigabytes} GB` };
    },
    settle: (volume, _operation, outcome) => {
      if (outcome.kind !== "succeeded") return {};
      expectTypeOf(outcome.result.device).toEqualTypeOf<string>();
      return { data: { ...volume.data, phase: "ready" }, parts: { disk: outcome.result } };
    },
  },
  snapshot: {
    mode: "shared",
    run: async (operation) => {
      const disk = (await operation.parts(["disk"])).get("disk");
      expectTypeOf(disk).toEqualTypeOf<{ readonly device: string } | undefined>();
      const { items } = await operation.partsUnder("snapshot/");
      expectTypeOf(items[0]?.value).toEqualTypeOf<Snapshot | undefined>();
      expectTypeOf(items[0]?.id).toEqualTypeOf<`snapshot/${string}` | undefined>();
      await operation.change({ parts: volumes.part(`snapshot/${items.length}`, { takenAt: items.length }) });
      return null;
    },
  },
});

test("what is typed once is typed in decisions, operations and ends", async () => {
  const journal = await openJournal({ store: memoryStore(), kinds });
  await journal.start();
  const create = volumes.decide((volume) => {
    expectTypeOf(volume?.data.snapshots).toEqualTypeOf<number | undefined>();
    return {
      result: volume === undefined ? "new" : "known",
      change: { data: { phase: "creating", snapshots: 0 }, accept: [{ kind: "create", input: { gigabytes: 20 } }] },
    };
  });
  const { result, accepted } = await journal.transact("v", create, { by });
  expectTypeOf(result).toEqualTypeOf<string>();
  const outcome = await journal.ended("v", accepted[0]?.id ?? "", { withinMs: 10_000 });
  expect(outcome && volumes.outcome("create", outcome)).toEqual({
    kind: "succeeded",
    result: { device: "disk of 20 GB" },
  });
  const snapshot = volumes.decide(() => ({ result: null, change: { accept: [{ kind: "snapshot" }] } }));
  const asked = await journal.transact("v", snapshot, { by });
  await journal.ended("v", asked.accepted[0]?.id ?? "", { withinMs: 10_000 });
  const read = volumes.resource(await journal.read("v", ["disk", "snapshot/0"]));
  expect(read?.data).toEqual({ phase: "ready", snapshots: 0 });
  expect([read?.parts.get("disk"), read?.parts.get("snapshot/0")]).toEqual([
    { device: "disk of 20 GB" },
    { takenAt: 0 },
  ]);
  const page = volumes.partsUnder("snapshot/", await journal.parts("v", "snapshot/"));
  expectTypeOf(page.items[0]?.id).toEqualTypeOf<`snapshot/${string}` | undefined>();
  expect(page.items).toEqual([{ id: "snapshot/0", value: { takenAt: 0 } }]);
  const [entry] = await journal.entries("v", { after: 0, limit: 1 });
  const payload = entry?.payload as { readonly input?: Json } | undefined;
  expect(volumes.input("create", payload?.input ?? null).gigabytes).toBe(20);
  await journal.stop();
});

test("what does not fit the shape does not compile", () => {
  void (() => {
    // @ts-expect-error there is no such phase
    volumes.change({ data: { phase: "gone", snapshots: 0 } });
    // @ts-expect-error there is no such part
    volumes.change({ parts: { engine: { device: "x" } } });
    // @ts-expect-error there is no such kind
    volumes.change({ accept: [{ kind: "explode" }] });
    // @ts-expect-error a create has an input
    volumes.change({ accept: [{ kind: "create" }] });
    // @ts-expect-error of another type
    volumes.change({ accept: [{ kind: "create", input: { gigabytes: "20" } }] });
    // @ts-expect-error a snapshot is no disk
    volumes.part("snapshot/1", { device: "x" });
    // @ts-expect-error kinds are complete
    volumes.kinds({ snapshot: { run: async () => null } });
    volumes.change({ parts: { disk: null, "snapshot/1": { takenAt: 1 } }, accept: [{ kind: "snapshot" }] });
  });
});
