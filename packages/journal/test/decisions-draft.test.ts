import { describe, expect, test } from "vitest";
import { Draft, type DraftBase } from "../src/decisions/draft.js";
import { NeedsParts } from "../src/decisions/draft-parts.js";
import {
  exclusiveWindow,
  mostEnds,
  mostInRecord,
  queuedOperation,
  queuePartId,
  queuePrefix,
  windowSize,
} from "../src/decisions/queue.js";
import { defaultRetention } from "../src/decisions/retention.js";
import { JournalError, type JournalErrorCode } from "../src/errors.js";
import { type Attribution, acceptedSeq, type OpenOperation } from "../src/operation.js";
import type { Resource, ResourceChange } from "../src/resource.js";
import { emptyState } from "../src/state.js";
import { names, operation, stateOf } from "./operations.js";

const ann: Attribution = { actor: { type: "user", subject: "ann" }, requestId: "r1" };
const kinds = { job: {}, shared: { mode: "shared" as const, lane: "s", deadlineMs: null } };

function draftOf(base: Partial<DraftBase> = {}): Draft {
  return new Draft({
    key: "k",
    seq: 10,
    state: emptyState,
    parts: new Map(),
    hasQueue: false,
    leased: false,
    isPaused: () => false,
    now: 1_000,
    token: "tok",
    kinds,
    retention: defaultRetention,
    maxOpen: 1_000,
    ...base,
  });
}

function entryKinds(draft: Draft): readonly string[] {
  return draft.entries.map(({ kind }) => kind);
}

function cancelled(operation: string): ResourceChange {
  return { cancel: [{ operation, reason: "no" }] };
}

function refuses(code: JournalErrorCode, change: () => void): void {
  expect(change).toThrow(JournalError);
  expect(change).toThrow(expect.objectContaining({ code }));
}

describe("accept", () => {
  test("an operation is named by the number of its entry", () => {
    const draft = draftOf();
    draft.apply({ entries: [{ kind: "noted" }], accept: [{ kind: "job", input: 7 }, { kind: "shared" }] }, ann);
    expect(draft.accepted.map(({ id }) => id)).toEqual(["12-tok", "13-tok"]);
    expect(entryKinds(draft)).toEqual(["noted", "accepted", "accepted"]);
    expect(JSON.parse(draft.entries[1]?.body ?? "")).toEqual({
      ...ann,
      payload: { kind: "job", part: null, mode: "exclusive", input: 7 },
    });
  });

  test("what is not asked for is as the kind says", () => {
    const draft = draftOf();
    draft.apply(
      { accept: [{ kind: "shared" }, { kind: "shared", mode: "exclusive", lane: "own", deadlineMs: 5, delayMs: 7 }] },
      ann,
    );
    expect(draft.accepted).toEqual([
      operation("11-tok", {
        kind: "shared",
        mode: "shared",
        lane: "s",
        acceptedAt: 1_000,
        requestId: "r1",
        readyAt: 1_000,
      }),
      operation("12-tok", {
        kind: "shared",
        lane: "own",
        acceptedAt: 1_000,
        requestId: "r1",
        deadlineAt: 1_005,
        readyAt: 1_007,
      }),
    ]);
  });

  test.each([
    ["exclusive", exclusiveWindow],
    ["shared", windowSize],
  ] as const)("beyond the window %s operations wait in parts, in their order", (mode, window) => {
    const draft = draftOf();
    draft.apply({ accept: Array.from({ length: window + 3 }, () => ({ kind: "job", mode })) }, ann);
    expect([draft.state.open.length, draft.state.queued, draft.parts.put.size]).toEqual([window, 3, 3]);
    const ids = [...draft.parts.put.keys()];
    expect(ids).toEqual([...ids].sort());
    expect(ids[0]).toBe(queuePartId(draft.accepted[window] as OpenOperation));
    expect(ids.every((id) => id.startsWith(queuePrefix))).toBe(true);
  });

  test("nothing overtakes what waits in parts, also when the window has room again", () => {
    const draft = draftOf({ state: stateOf("x1", { queued: 2 }) });
    draft.apply({ accept: [{ kind: "job" }] }, ann);
    expect([names(draft.state.open), draft.state.queued]).toEqual(["x1", 3]);
  });

  test.each([
    ["x1 x2", false, "new x1 x2"],
    ["x1 x2", true, "x1 new x2"],
    ["s1 s2 x1", true, "s1 s2 new x1"],
    ["x1! x2 x3", true, "x1 x2 new x3"],
  ])("in front of %s (leased: %s) → %s", (open, leased, expected) => {
    const draft = draftOf({ state: stateOf(open), leased });
    draft.apply({ accept: [{ kind: "job", place: "front" }] }, ann);
    expect(names(draft.state.open).replace("11-tok", "new")).toBe(expected);
  });

  test("a resource that was gone is back", () => {
    const draft = draftOf({ state: stateOf("", { gone: true }) });
    draft.apply({ accept: [{ kind: "job" }] }, ann);
    expect(draft.state.gone).toBe(false);
  });
});

describe("change", () => {
  test.each([
    ["data", { data: 1 }],
    ["null as data", { data: null }],
    ["labels", { labels: {} }],
    ["parts", { parts: {} }],
    ["gone", { gone: true }],
    ["not gone", { gone: false }],
  ])("a change of nothing but %s brings an entry, because the seq is the version", (_, change) => {
    const draft = draftOf({ state: { ...emptyState, data: "before" } });
    draft.apply(change, ann);
    expect(entryKinds(draft)).toEqual(["changed"]);
  });

  test("a change of nothing is none", () => {
    const draft = draftOf();
    draft.apply({}, ann);
    expect(draft.isEmpty).toBe(true);
  });

  test("the last word on a part counts, and no part is both written and removed", () => {
    const draft = draftOf();
    draft.apply({ parts: { a: 1, b: null } }, ann);
    draft.apply({ parts: { a: null, b: 2 } }, ann);
    expect([[...draft.parts.put], [...draft.parts.deleted]]).toEqual([[["b", "2"]], ["a"]]);
  });
});

describe("order", () => {
  const order = (open: string, wanted: readonly string[], leased = false) => {
    const draft = draftOf({ state: stateOf(open), leased });
    draft.apply({ order: wanted }, ann);
    return names(draft.state.open);
  };

  test.each([
    ["x1 x2 x3", ["x3", "x1"], "x3 x1 x2"],
    ["x1 x2 x3", ["x2", "x2"], "x2 x1 x3"],
    ["x1 x2 x3", [], "x1 x2 x3"],
  ])("%s by %s → %s", (open, wanted, expected) => {
    expect(order(open, wanted)).toBe(expected);
  });

  test("what has started keeps its place", () => {
    expect(order("x1 x2 x3", ["x3"], true)).toBe("x1 x3 x2");
    refuses("invalid-change", () => order("x1 x2", ["x1"], true));
  });
});

describe("hold and release", () => {
  test("each is an entry, once", () => {
    const draft = draftOf({ state: stateOf("x1 x2!") });
    draft.apply({ hold: ["x1", "x2"], release: ["x1"] }, ann);
    expect(entryKinds(draft)).toEqual(["held", "released"]);
  });

  test("what may have started is not held", () => {
    refuses("invalid-change", () => draftOf({ state: stateOf("x1"), leased: true }).apply({ hold: ["x1"] }, ann));
    const begun = { ...emptyState, open: [operation("x1", { attempts: 1 })] };
    refuses("invalid-change", () => draftOf({ state: begun }).apply({ hold: ["x1"] }, ann));
  });
});

describe("cancel", () => {
  test("what nobody can be running ends at once", () => {
    const draft = draftOf({ state: stateOf("x1 x2") });
    draft.apply({ cancel: [{ operation: "x1", reason: "not wanted" }] }, ann);
    expect([names(draft.state.open), entryKinds(draft), draft.finished.length]).toEqual([
      "x2",
      ["cancel requested", "settled"],
      1,
    ]);
  });

  test("what may run is told to stop; what is behind it ends at once", () => {
    const draft = draftOf({ state: stateOf("x1 x2"), leased: true });
    draft.apply({ cancel: [{ operation: "x1", reason: "not wanted" }] }, ann);
    draft.apply({ cancel: [{ operation: "x2", reason: "nor this" }] }, ann);
    expect(draft.state.open).toEqual([operation("x1", { cancel: { reason: "not wanted", attribution: ann } })]);
    expect(entryKinds(draft)).toEqual(["cancel requested", "cancel requested", "settled"]);
  });

  test("what waits in a part is read first, and taken out", () => {
    const waiting = operation("99-abc");
    const part = queuePartId(waiting);
    const heldPart = queuePartId({ ...waiting, held: true });
    const state = stateOf("x1", { queued: 1 });
    expect(() => draftOf({ state }).apply(cancelled("99-abc"), ann)).toThrow(NeedsParts);
    const draft = draftOf({
      state,
      parts: new Map([
        [part, JSON.stringify(waiting)],
        [heldPart, null],
      ]),
    });
    draft.apply({ cancel: [{ operation: "99-abc", reason: "no" }] }, ann);
    expect([draft.state.queued, [...draft.parts.deleted], draft.finished.length]).toEqual([0, [part], 1]);
  });

  test("what ends because of another's end does so after it: of a chain of thousands nothing is lost, and each commit has some hundreds", () => {
    const count = 2_000;
    const id = (index: number) => `${index + 1}-q`;
    const settle = ({ data }: Resource, { id: ended }: OpenOperation): ResourceChange => ({
      data: Number(data) + 1,
      entries: [{ kind: "noted" }],
      cancel: acceptedSeq(ended) === count ? [] : [{ operation: id(acceptedSeq(ended) ?? 0), reason: "with it" }],
    });
    const all = Array.from({ length: count }, (_, index) => operation(id(index), { kind: "chained" }));
    let state = { ...emptyState, open: all.slice(0, windowSize), queued: count - windowSize, queuedAfter: windowSize };
    const waiting = new Map(all.slice(windowSize).map((one) => [queuePartId(one), JSON.stringify(one)]));
    let commits = 0;
    for (let next: ResourceChange | null = cancelled(id(0)); commits < 10 && next !== null; commits++) {
      const kinds = { chained: { settle } };
      const draft = draftOf({ state, seq: 10_000 * (commits + 1), parts: new Map(waiting), hasQueue: true, kinds });
      const late: readonly string[] = Array.from(waiting.values(), (body) => queuedOperation(body, state))
        .filter(({ cancel }) => cancel !== null)
        .map((one) => one.id);
      if (commits === 0) draft.apply(next, ann);
      else draft.settleQueued(late, { kind: "succeeded", result: null }, null, true);
      expect(draft.finished.length).toBeLessThanOrEqual(mostEnds);
      const kindsOfLast = draft.entries.slice(-3).map(({ kind }) => kind);
      if (draft.state.queued === 0) expect(kindsOfLast).toEqual(["cancel requested", "settled", "noted"]);
      for (const part of draft.parts.deleted) waiting.delete(part);
      for (const [part, body] of draft.parts.put) waiting.set(part, body);
      state = draft.state as typeof state;
      if (state.queued === 0) next = null;
      else expect(state.queuedDeadlineAt).toBe(1_000);
    }
    expect([state.data, state.open.length, state.queued, commits]).toEqual([count, 0, 0, 4]);
  });

  test("what is not open is an error", () => {
    refuses("invalid-change", () => draftOf({ state: stateOf("x1") }).apply(cancelled("x2"), ann));
  });
});

describe("settle", () => {
  test("the end names what it ended, and the resource remembers it", () => {
    const open = operation("4-abc", { description: "nearly" });
    const draft = draftOf({ state: { ...emptyState, open: [open] } });
    draft.settle(open, { kind: "succeeded", result: { large: true } }, ann);
    expect(draft.state.last).toEqual({
      id: "4-abc",
      kind: "job",
      part: null,
      acceptedAt: 0,
      endedAt: 1_000,
      outcome: "succeeded",
      message: null,
      description: "nearly",
      seq: 11,
    });
    expect(JSON.parse(draft.entries[0]?.body ?? "")).toMatchObject({ ...ann, cause: 4 });
    expect(JSON.stringify(draft.state)).not.toContain("large");
    expect(draft.state.pruneAt).toBe(1_000 + (defaultRetention.succeededMs ?? 0));
  });

  test("parts that settling wants to see are asked for", () => {
    const wants = { job: { reads: ["config"], settle: () => ({}) } };
    const open = operation("4-abc", { part: "binding/1" });
    const draft = () => draftOf({ state: { ...emptyState, open: [open] }, kinds: wants });
    expect(() => draft().settle(open, { kind: "succeeded", result: null }, ann)).toThrow(NeedsParts);
  });
});

describe("settle with all that is open", () => {
  test("a kind that wants to sees what waits behind the record, too, in its order, and asks for it", () => {
    const seen: (readonly string[])[] = [];
    const settle = ({ open, queued }: Resource) => {
      seen.push([...open.map(({ id }) => id), `${queued} more`]);
      return {};
    };
    const open = operation("4-abc");
    const waiting = operation("80-abc");
    const state = { ...emptyState, open: [open, operation("5-abc")], queued: 1 };
    const parts = new Map([[queuePartId(waiting), JSON.stringify(waiting)]]);
    const end = (kinds: DraftBase["kinds"], hasQueue: boolean) =>
      draftOf({ state, kinds, parts, hasQueue }).settle(open, { kind: "succeeded", result: null }, ann);
    end({ job: { settle } }, false);
    expect(() => end({ job: { settle, open: "all" } }, false)).toThrow(NeedsParts);
    end({ job: { settle, open: "all" } }, true);
    expect(seen).toEqual([
      ["5-abc", "1 more"],
      ["5-abc", "80-abc", "0 more"],
    ]);
  });
});

describe("poll", () => {
  test("however often it looks, no entry tells of it, what is kept does not grow, and no limit is met", () => {
    let open = operation("4-abc");
    let draft = draftOf();
    for (let looks = 1; looks <= 2_000; looks++) {
      draft = draftOf({ state: { ...emptyState, open: [open] } });
      draft.sleep(open, [{ kind: "poll", name: "answer", until: 1_000 + looks, looks, since: 1_000 }], ann);
      open = draft.state.open[0] as OpenOperation;
    }
    expect([draft.entries.length, draft.isEmpty]).toEqual([0, false]);
    expect(open).toEqual(
      operation("4-abc", { attempts: 2_000, readyAt: 3_000, polls: [["answer", 3_000, 2_000, 1_000]] }),
    );
    draft.recordStep(open, "answer", "seen", ann);
    expect(draft.state.open[0]).not.toHaveProperty("polls");
  });
});

describe("those that wait in parts", () => {
  const parts = (...operations: readonly OpenOperation[]) =>
    new Map<string, string | null>(
      operations.flatMap((one) => [
        [queuePartId({ ...one, held: !one.held }), null],
        [queuePartId(one), JSON.stringify(one)],
      ]),
    );

  test("a record that is full gives its last ones back, as long as the order allows it", () => {
    const open = Array.from({ length: mostInRecord }, (_, index) => operation(`${100 + index}-q`));
    const waiting = operation("900-q");
    const state = { ...emptyState, open, queued: 1, queuedAfter: 899 };
    const draft = draftOf({ state, parts: parts(waiting) });
    draft.apply({ order: ["900-q"] }, ann);
    expect(names(draft.state.open.slice(0, 2))).toBe("900-q 100-q");
    expect([draft.state.open.length, draft.state.queued, draft.state.queuedAfter]).toEqual([mostInRecord, 1, 354]);
    expect([...draft.parts.put.keys()]).toEqual([queuePartId(operation("355-q"))]);
    const unsure = draftOf({ state: { ...state, queuedAfter: 200 }, parts: parts(waiting) });
    refuses("queue-full", () => unsure.apply({ accept: [{ kind: "job", place: "front" }] }, ann));
  });

  test("one that is released does not overtake older ones there, also where younger ones were put into the record", () => {
    const [ordered, released, older] = [operation("140-q"), operation("100-q", { held: true }), operation("64-q")];
    const state = { ...emptyState, open: [operation("5-q"), ordered], queued: 2, queuedHeld: 1, queuedAfter: 63 };
    const draft = draftOf({ state, parts: parts(released, older) });
    draft.apply({ release: ["100-q"] }, ann);
    expect([names(draft.state.open), draft.state.queued, draft.state.queuedHeld]).toEqual(["5-q 140-q", 2, undefined]);
    const before = draftOf({ state: { ...state, queuedAfter: 120 }, parts: parts(released) });
    before.apply({ release: ["100-q"] }, ann);
    expect(names(before.state.open)).toBe("5-q 100-q 140-q");
  });

  test("what an earlier version kept as held among the others is found, and gets its own place", () => {
    const old = operation("900-q", { held: true });
    const state = { ...emptyState, queued: 1 };
    const id = queuePartId({ ...old, held: false });
    const draft = draftOf({ state });
    draft.operations.refill([{ id, body: JSON.stringify(old) }]);
    expect([draft.state.queued, draft.state.queuedHeld, [...draft.parts.deleted]]).toEqual([1, 1, [id]]);
    expect([...draft.parts.put.keys()]).toEqual([queuePartId(old)]);
  });

  test("a record without a queue says nothing more than before", () => {
    const draft = draftOf();
    draft.apply({ accept: [{ kind: "job" }] }, ann);
    expect(Object.keys(draft.state).sort()).toEqual(Object.keys(emptyState).sort());
    expect(Object.keys(draft.accepted[0] ?? {}).sort()).toEqual(Object.keys(operation("1-a")).sort());
  });
});

describe("refill", () => {
  const refilled = (first: readonly OpenOperation[], waiting: readonly OpenOperation[]) => {
    const draft = draftOf({ state: { ...emptyState, open: first, queued: waiting.length } });
    const { wantsRefill, mostToRefill } = draft.operations;
    draft.operations.refill(waiting.map((one) => ({ id: queuePartId(one), body: JSON.stringify(one) })));
    return { wantsRefill, mostToRefill, open: draft.state.open, queued: draft.state.queued, parts: draft.parts };
  };
  const many = (length: number, mode: OpenOperation["mode"]) =>
    Array.from({ length }, (_, index) => operation(`${100 + index}-q`, { mode }));

  test("the window takes as many as it has room for, from the front", () => {
    const { wantsRefill, mostToRefill, open, queued, parts } = refilled(
      [operation("1-x"), operation("2-x")],
      many(windowSize, "exclusive"),
    );
    expect([wantsRefill, mostToRefill]).toEqual([true, exclusiveWindow - 2]);
    expect([open.length, queued]).toEqual([exclusiveWindow, windowSize - exclusiveWindow + 2]);
    expect(names(open.slice(0, 4))).toBe("1-x 2-x 100-q 101-q");
    expect(parts.deleted.size).toBe(exclusiveWindow - 2);
  });

  test("shared ones come in until the record is full, or up to the first exclusive one", () => {
    const shared = refilled([operation("1-x", { mode: "shared" })], many(windowSize, "shared"));
    expect([shared.mostToRefill, shared.open.length, shared.queued]).toEqual([windowSize - 1, windowSize, 1]);
    const waiting = [...many(10, "shared"), operation("200-q"), operation("201-q", { mode: "shared" })];
    const mixed = refilled([operation("1-x", { mode: "shared" })], waiting);
    expect([mixed.open.at(-1)?.id, mixed.open.length, mixed.queued]).toEqual(["200-q", 12, 1]);
    // What waits behind an exclusive one is not asked for again and again while the shared ones before it end.
    expect(refilled(mixed.open, many(5, "shared")).wantsRefill).toBe(false);
  });

  test("a record from which the last exclusive one goes takes shared ones in, also if it is not half empty", () => {
    const open = [...many(40, "shared"), operation("300-q")];
    const draft = draftOf({ state: { ...emptyState, open, queued: 3, queuedAfter: 300 } });
    expect(draft.operations.wantsRefill).toBe(false);
    draft.apply(cancelled("300-q"), ann);
    expect([draft.operations.wantsRefill, draft.operations.mostToRefill]).toEqual([true, 24]);
  });

  test("held ones that an earlier version kept among the others take no room, and more is read for that", () => {
    const { operations } = draftOf({ state: stateOf("x1", { queued: 2 }) });
    const part = (one: OpenOperation, id = queuePartId(one)) => ({ id, body: JSON.stringify(one) });
    const held = operation("900-q", { held: true });
    expect(operations.needsMoreThan([part(held, queuePartId({ ...held, held: false }))])).toBe(true);
    expect(operations.needsMoreThan([part(operation("901-q")), part(held)])).toBe(false);
  });
});
