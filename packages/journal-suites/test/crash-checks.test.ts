import { emptyState } from "@osbert/journal/testing";
import { describe, expect, test } from "vitest";
import { type Run, type violations, violationsOf } from "../src/crash/index.js";
import { type Script, scenarioOf } from "../src/crash/scenario.js";
import { takeOverOf } from "../src/crash/take-over.js";
import type { Witnessed } from "../src/crash/witness.js";

type Event = Witnessed extends infer One ? (One extends Witnessed ? Omit<One, "at" | "process"> : never) : never;
type Moment = readonly [at: number, process: number, event: Event];

/** Two plain operations of one resource: 0 is exclusive with two steps, 1 is shared with one. */
function script(n: number, changes: Partial<Script> = {}): Script {
  return {
    n,
    key: "r",
    kind: "work",
    mode: n === 0 ? "exclusive" : "shared",
    lane: "lane",
    steps: (n === 0 ? ["a", "b"] : ["a"]).map((name) => ({ name, effectMs: 10, sleepMs: null, describes: false })),
    troubles: [],
    ending: "returns",
    cancelAfterMs: null,
    deadlineMs: null,
    leaves: false,
    looks: 0,
    ledger: null,
    ...changes,
  };
}

const ids = ["1-x", "2-x"];

/** All that is seen of an operation that runs through in one process, from `at` on. */
function runs(n: number, at: number, process = 0): Moment[] {
  const attempt = `${process}.${n}`;
  const steps = script(n).steps.flatMap(({ name: step }, index): Moment[] => {
    const from = at + 2 + index * 20;
    return [
      [from, process, begins(n, attempt, step, from)],
      [from + 10, process, { kind: "effect ends", n, attempt, step, value: value(n, step) }],
      [from + 12, process, { kind: "step done", n, attempt, step, ran: true, value: value(n, step) }],
    ];
  });
  const end = at + 2 + script(n).steps.length * 20;
  return [
    [at, process, attempts(n, attempt, {}, at)],
    ...steps,
    [end, process, { kind: "settled", id: ids[n] ?? "", key: "r", outcome: "succeeded" }],
  ];
}

function begins(n: number, attempt: string, step: string, turnAt: number, idempotencyKey = `${n} ${step}`): Event {
  return { kind: "effect begins", n, attempt, step, idempotencyKey, turnAt };
}

function attempts(n: number, attempt: string, recorded: Record<string, string>, turnAt: number): Event {
  return { kind: "attempt begins", n, id: ids[n] ?? "", attempt, recorded, turnAt };
}

function value(n: number, step: string): string {
  return `${n}${step}`;
}

interface Made {
  readonly moments?: readonly Moment[];
  readonly scripts?: readonly Script[];
  /** Entries of the resource, as [operation, kind, changes of the body]. */
  readonly entries?: readonly (readonly [n: number, kind: string, body?: object])[];
  readonly parts?: readonly { readonly id: string; readonly body: string }[];
  readonly open?: boolean;
}

const good: Moment[] = [[0, 0, { kind: "accepted", request: 0, ids }], ...runs(0, 10), ...runs(1, 100)];
const goodEntries = [
  [0, "accepted"],
  [1, "accepted"],
  [0, "step", { payload: { step: "a" } }],
  [0, "step", { payload: { step: "b" } }],
  [0, "settled"],
  [1, "step", { payload: { step: "a" } }],
  [1, "settled"],
] as const;
const goodParts = [part(0, [succeeded(0)]), part(1, [succeeded(1)])];

function succeeded(n: number): object {
  return { id: ids[n], kind: "succeeded", result: script(n).steps.map(({ name }) => value(n, name)) };
}

function part(n: number, ends: readonly object[]): { id: string; body: string } {
  return { id: `operation/${n}`, body: JSON.stringify({ n, ends }) };
}

function made({ moments = good, scripts = [script(0), script(1)], entries = goodEntries, ...rest }: Made): Run {
  const { parts = goodParts, open = false } = rest;
  const stored = entries.map(([n, kind, changes], index) => {
    const body = {
      actor: { type: "user", subject: "caller-0" },
      cause: 1,
      requestId: "r-0",
      payload: { input: { n } },
      ...changes,
    };
    return { seq: index + 1, at: 1_000, token: "t", kind, operation: ids[n] ?? null, body: JSON.stringify(body) };
  });
  const state = { ...emptyState, open: open ? [{ id: "1-x", kind: "work", steps: [], waits: [] }] : [] };
  const record = {
    key: "r",
    seq: stored.length,
    epoch: 1,
    state: JSON.stringify(state),
    lane: "",
    dueAt: null,
    lease: null,
  };
  return {
    scenario: { scripts, requests: [{ number: 0, key: "r", scripts, opens: true, refused: false }] },
    witnessed: moments.map(([at, process, event]) => ({ at, process, ...event }) as Witnessed),
    dump: [{ record, entries: stored, parts }],
    leaseMs: 1_000,
    keepsAll: true,
  };
}

function without(kind: Event["kind"], n?: number): Moment[] {
  return good.filter(([, , event]) => event.kind !== kind || (n !== undefined && "n" in event && event.n !== n));
}

const bad: Readonly<Record<keyof typeof violations, Made>> = {
  "accepted, then missing": { parts: [part(0, [succeeded(0)])] },
  "accepted twice": { moments: [...good, [90, 1, { ...attempts(0, "1.1", {}, 90), id: "9-y" } as Event]] },
  "never answered": { moments: without("accepted") },
  "never ended": { open: true },
  "ended twice": { parts: [part(0, [succeeded(0), succeeded(0)]), part(1, [succeeded(1)])] },
  "ended otherwise": {
    parts: [
      part(0, [{ id: "1-x", kind: "failed", error: { message: "m", class: "deadline" } }]),
      part(1, [succeeded(1)]),
    ],
  },
  "told another end": {
    moments: [...without("settled"), [80, 0, { kind: "settled", id: "1-x", key: "r", outcome: "failed" }]],
  },
  "two runners": { moments: [...good, [13, 1, attempts(0, "1.1", {}, 13)]] },
  "ran at the same time": {
    moments: [...good, [11, 1, attempts(0, "1.1", {}, 11)], [15, 1, begins(0, "1.1", "a", 15)]],
  },
  "recorded step ran again": { moments: [...good, [50, 1, begins(0, "0.0", "a", 50)]] },
  "recorded step forgotten": { moments: [...good, [50, 1, attempts(0, "1.1", {}, 50)]] },
  "two results of a step": {
    moments: [...good, [50, 0, { kind: "step done", n: 0, attempt: "0.0", step: "a", ran: true, value: "other" }]],
  },
  "result from nowhere": { moments: without("effect ends", 0) },
  "several idempotency keys": { moments: [...good, [13, 0, begins(0, "0.0", "a", 13, "another")]] },
  "idempotency key shared": { moments: [...good, [104, 0, begins(1, "0.1", "a", 104, "0 a")]] },
  "woke too early": {
    moments: [
      ...good,
      [11, 0, { kind: "wait begins", n: 0, wait: "w", ms: 500 }],
      [90, 0, { kind: "wait over", n: 0, wait: "w" }],
    ],
  },
  "look forgotten": {
    moments: [...good, ...[0, 1, 1, 0].map((before, n): Moment => [12 + n, 0, { kind: "looks", n: 0, before }])],
  },
  "effect made twice": { parts: [...goodParts, { id: "taken/r/1-x", body: "2" }] },
  "effect missing": { scripts: [script(0, { ledger: "ledger" }), script(1)] },
  "order broken": { moments: [[0, 0, { kind: "accepted", request: 0, ids }], ...runs(0, 10), ...runs(1, 20)] },
  "ran after the end": { moments: [...good, [90, 1, begins(0, "0.0", "b", 90)]] },
  "cancel ignored": { moments: [...good, [11, 0, { kind: "cancel answered", n: 0, answer: true }]] },
  "entry missing": { entries: goodEntries.filter(([n, kind]) => n !== 1 || kind !== "settled") },
  "entry not attributed": { entries: [...goodEntries.slice(0, -1), [1, "settled", { cause: undefined }]] },
  "ended by itself": { moments: [...good, [50, 0, { kind: "ended by itself", why: "code 1" }]] },
  "refused, then happened": { moments: [...good, [5, 0, { kind: "refused", request: 0 }]] },
  slept: {
    moments: [
      [-21_000, 0, { kind: "accepted", request: 0, ids }],
      [-20_000, -1, { kind: "calm" }],
      ...runs(0, 10),
      ...runs(1, 100),
    ],
  },
  "hot loop": {
    moments: [...good, ...Array.from({ length: 10 }, (_, n): Moment => [12 + n / 10, 0, begins(0, "0.0", "a", 12)])],
  },
  "two owners": { moments: [...good, [50, 0, { kind: "two owners", by: "a hard link" }]] },
};

describe("the checks of the crash suite", () => {
  test("a run in which all went well has no violations", () => {
    expect(violationsOf(made({}))).toEqual([]);
  });

  for (const [kind, run] of Object.entries(bad)) {
    test(`"${kind}" is noticed`, () => {
      expect(violationsOf(made(run)).map((violation) => violation.kind)).toContain(kind);
    });
  }

  test("an effect that was cut off by a kill may run again", () => {
    const cut: Moment[] = [
      [5, 1, attempts(0, "1.1", {}, 5)],
      [6, 1, begins(0, "1.1", "a", 6)],
      [8, 1, { kind: "killed", how: "at random" }],
    ];
    expect(violationsOf(made({ moments: [...good, ...cut] }))).toEqual([]);
  });

  test("an effect that began just before its process was frozen may end after another one took over", () => {
    const frozen: Moment[] = [
      [-3_000, 1, attempts(0, "1.1", {}, -3_000)],
      [-2_999, 1, begins(0, "1.1", "a", -2_999)],
      [200, 1, { kind: "effect ends", n: 0, attempt: "1.1", step: "a", value: "late" }],
    ];
    expect(violationsOf(made({ moments: [...good, ...frozen] }))).toEqual([]);
  });

  test("a process that stood still between its look at the lease and the effect could not know", () => {
    const late = (turnAt: number): Moment[] => [
      ...good,
      [-3_000, 1, attempts(0, "1.1", {}, -3_000)],
      [70, 1, begins(0, "1.1", "b", turnAt)],
    ];
    expect(violationsOf(made({ moments: late(-2_000) }))).toEqual([]);
    expect(violationsOf(made({ moments: late(69) })).map(({ kind }) => kind)).toContain("two runners");
  });

  test("what begins in vain, in a process that lost its sessions and cannot know it yet, makes no other attempt a late one", () => {
    const silent: Moment = [5, -1, { kind: "disturbed", what: { kind: "silence" }, hit: 1 }];
    const vain: Moment[] = [
      [10.2, 1, attempts(0, "1.1", {}, 10.2)],
      [10.3, 1, begins(0, "1.1", "a", 10.3)],
    ];
    const kinds = (moments: readonly Moment[]) =>
      violationsOf(made({ moments: [...good, ...moments] })).map(({ kind }) => kind);
    expect(kinds(vain)).toContain("two runners");
    expect(kinds([...vain, silent])).toEqual([]);
    const done: Moment = [
      10.4,
      1,
      { kind: "step done", n: 0, attempt: "1.1", step: "a", ran: true, value: value(0, "a") },
    ];
    expect(kinds([...vain, silent, done])).toContain("two runners");
  });

  test("an engine with a slow clock takes its lease to run longer than it does", () => {
    const late: Moment[] = [...good, [-3_000, 1, attempts(0, "1.1", {}, -3_000)], [70, 1, begins(0, "1.1", "b", -70)]];
    expect(violationsOf(made({ moments: late })).map(({ kind }) => kind)).toContain("two runners");
    expect(violationsOf({ ...made({ moments: late }), slowestClock: 0.9 })).toEqual([]);
  });

  test("what is done in calm, one thing after the other, has not slept", () => {
    expect(violationsOf(made({ moments: [[-1, -1, { kind: "calm" }], ...good] }))).toEqual([]);
  });

  test("a succeeded operation whose last effect nobody saw is noticed", () => {
    const moments = without("effect ends", 1);
    expect(violationsOf(made({ moments })).map(({ kind }) => kind)).toContain("result from nowhere");
  });

  test("a resource that has gone is not missing if all that it was to do was seen", () => {
    const scripts = [script(0, { leaves: true }), script(1, { leaves: true })];
    const run = made({ scripts });
    expect(violationsOf({ ...run, dump: [] })).toEqual([]);
    const unseen = made({ scripts, moments: without("effect ends", 1) });
    expect(violationsOf({ ...unseen, dump: [] }).map(({ kind }) => kind)).toContain("accepted, then missing");
  });
});

test("a take-over is measured from the kill to the next attempt at what was under way", () => {
  const moments: readonly Moment[] = [
    [0, 0, { kind: "spawned" }],
    [10, 0, attempts(0, "0.1", {}, 10)],
    [15, 0, attempts(1, "0.2", {}, 15)],
    [18, 0, { kind: "attempt ends", n: 1, attempt: "0.2", how: "returned" }],
    [20, 0, { kind: "killed", how: "at random" }],
    [30, 1, { kind: "spawned" }],
    [40, 1, attempts(1, "1.1", {}, 40)],
    [70, 1, attempts(0, "1.2", {}, 70)],
    [80, 1, { kind: "killed", how: "at random" }],
    [90, 2, { kind: "spawned" }],
    [95, 2, { kind: "killed", how: "at random" }],
    [96, 3, { kind: "spawned" }],
    [500, 3, attempts(0, "3.1", {}, 500)],
  ];
  const witnessed = moments.map(([at, process, event]) => ({ at, process, ...event }) as Witnessed);
  expect(takeOverOf(witnessed)).toEqual({ samples: 1, medianMs: 50, p95Ms: 50, maxMs: 50 });
});

describe("the scenario of the crash suite", () => {
  test("the same seed gives the same scenario in every process", () => {
    const options = { seed: 7, operations: 500, workload: "wild" } as const;
    expect(scenarioOf(options)).toEqual(scenarioOf(options));
    expect(scenarioOf(options)).not.toEqual(scenarioOf({ ...options, seed: 8 }));
  });

  test("it holds all that the crash points need", () => {
    const { scripts, requests } = scenarioOf({ seed: 7, operations: 800, workload: "wild" });
    expect(scripts.map(({ n }) => n)).toEqual(scripts.map((_, index) => index));
    expect(new Set(scripts.map(({ ending }) => ending)).size).toBe(6);
    expect(requests.some((request) => request.scripts.length > 64)).toBe(true);
    expect(scripts.some(({ cancelAfterMs }) => cancelAfterMs !== null)).toBe(true);
    expect(scripts.some(({ leaves }) => leaves)).toBe(true);
    expect(scripts.some(({ looks }) => looks > 1)).toBe(true);
    expect(scripts.some(({ ledger }) => ledger !== null)).toBe(true);
  });
});
