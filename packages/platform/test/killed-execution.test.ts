import { describe, expect, test } from "vitest";
import type { InstancePolicy } from "../src/records/instance-record.js";
import type { Rule } from "../src/testing/index.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/**
 * The platform is killed at each moment of each operation: at every crash point that it comes by, and before and after every call. Whoever follows
 * it brings the operation to an end; then nothing is at the broker that nobody knows, and nothing is there twice.
 */
interface Story {
  readonly offering?: "unfetchable";
  readonly rules?: readonly Rule[];
  readonly policy?: Partial<InstancePolicy>;
  /** What is there before anybody dies. */
  readonly before?: (lab: ExecutionLab) => Promise<unknown>;
  readonly asks: (lab: ExecutionLab) => Promise<string>;
  /** How it may end. */
  readonly ends: readonly string[];
  /** What is at the broker in the end: instances and bindings. */
  readonly there: readonly (readonly [number, number])[];
}

const isReady = async (lab: ExecutionLab) => lab.ended("db", await lab.create("db"));
const isBound = async (lab: ExecutionLab) => {
  await isReady(lab);
  await lab.ended("db", await lab.bind("db", "app"));
};
const create = (lab: ExecutionLab) => lab.create("db", { parameters: '{"size":1}' });
const update = (lab: ExecutionLab) => lab.update("db", { parameters: '{"size":2}' });
const remove = (lab: ExecutionLab) => lab.delete("db");
const bind = (lab: ExecutionLab) => lab.bind("db", "app");
const unbind = (lab: ExecutionLab) => lab.unbind("db", "app");
const rotate = (lab: ExecutionLab) => lab.bind("db", "app-2", { predecessor: "app" });

/** However often it is asked. */
const lostThenRefused = (call: "provision" | "bind"): readonly Rule[] => [
  { call, do: ["done-reset"] },
  { call, do: "400" },
];
const one = [[1, 0]] as const;
const none = [[0, 0]] as const;
const bound = [[1, 1]] as const;

const stories: Readonly<Record<string, Story>> = {
  "a create": { asks: create, ends: ["succeeded"], there: one },
  "a create that takes a while": {
    rules: [{ call: "provision", do: ["async"] }],
    asks: create,
    ends: ["succeeded"],
    there: one,
  },
  "a create whose answer is lost": {
    offering: "unfetchable",
    rules: [{ call: "provision", do: ["done-reset"] }],
    asks: create,
    ends: ["succeeded"],
    there: one,
  },
  "a create whose answer is lost, and which is then refused": {
    offering: "unfetchable",
    rules: lostThenRefused("provision"),
    asks: create,
    ends: ["rejected"],
    there: none,
  },
  "a create that is done anew, after what the first one left is deleted": {
    offering: "unfetchable",
    rules: [
      { call: "provision", instance: "osb-db", do: "done-500" },
      { call: "deprovision", do: ["500", "async"] },
    ],
    asks: create,
    ends: ["succeeded"],
    there: one,
  },
  "a create that fails, and is mitigated": {
    rules: [
      { call: "provision", do: "async-fails" },
      { call: "deprovision", do: ["done-reset"] },
    ],
    asks: create,
    ends: ["operation failed"],
    there: none,
  },
  "a create that is answered 409": {
    rules: [
      { call: "provision", do: ["done-409"] },
      { call: "provision", do: "409" },
    ],
    asks: create,
    // Whoever died before it heard that finds it, where instances can be fetched.
    ends: ["conflict", "succeeded"],
    there: one,
  },
  "an update": { before: isReady, asks: update, ends: ["succeeded"], there: one },
  "an update whose answers are lost": {
    before: isReady,
    rules: [{ call: "update", do: ["reset", "done-reset", "async"] }],
    asks: update,
    ends: ["succeeded"],
    there: one,
  },
  "a delete": { before: isReady, asks: remove, ends: ["succeeded"], there: none },
  "a delete whose answers are lost": {
    before: isReady,
    rules: [{ call: "deprovision", do: ["reset", "async-fails", "done-reset"] }],
    asks: remove,
    ends: ["succeeded"],
    there: none,
  },
  "a bind": { before: isReady, asks: bind, ends: ["succeeded"], there: bound },
  "a bind that takes a while": {
    offering: "unfetchable",
    before: isReady,
    rules: [{ call: "bind", do: ["async"] }],
    asks: bind,
    ends: ["succeeded"],
    there: bound,
  },
  "a bind whose answer is lost, and which is then refused": {
    offering: "unfetchable",
    before: isReady,
    rules: lostThenRefused("bind"),
    asks: bind,
    ends: ["rejected"],
    there: one,
  },
  "an unbind whose answers are lost": {
    before: isBound,
    rules: [{ call: "unbind", do: ["reset", "async"] }],
    asks: unbind,
    ends: ["succeeded"],
    there: one,
  },
  "a rotation whose answer is lost": {
    before: isBound,
    rules: [{ call: "bind", do: ["done-reset"] }],
    asks: rotate,
    ends: ["succeeded"],
    there: [[1, 2]],
  },
  "an adoption": {
    before: async (lab) => {
      await lab.ended("old", await lab.create("old"));
      await lab.ended("old", await lab.delete("old", { mode: "abandon" }));
    },
    asks: (lab) => lab.adopt("db", "osb-old"),
    ends: ["succeeded"],
    there: one,
  },
};

/** So many at a time: each has a broker and a journal of its own. */
describe.each(Object.entries(stories))("E10-18, E10-19, E10-20: of %s", (_name, story) => {
  test("killed at each moment, nothing is lost and nothing is there twice", async () => {
    const { moments, fault } = await killed(story, Number.POSITIVE_INFINITY);
    expect(fault).toBeUndefined();
    const ends: Ended[] = [];
    for (let at = 1; at <= moments; at += 32) {
      const group = Array.from({ length: Math.min(32, moments - at + 1) }, (_, more) => killed(story, at + more));
      ends.push(...(await Promise.all(group)));
    }
    expect(ends.flatMap(({ fault }) => fault ?? [])).toEqual([]);
  });
});

interface Ended {
  /** How many there were, if nobody was killed. */
  readonly moments: number;
  readonly fault?: string;
}

async function killed(story: Story, dieAt: number): Promise<Ended> {
  const { offering, rules = [], policy } = story;
  // Nothing hangs on how long an answer takes.
  const lab = await executionLab({
    dieAt,
    timeoutMs: 60_000,
    ...(offering && { offering }),
    ...(policy && { policy }),
  });
  try {
    await story.before?.(lab);
    lab.broker.setRules(rules);
    lab.arm();
    const outcome = await lab.ended("db", await story.asks(lab));
    await lab.quiet();
    const kind = outcome.kind === "failed" ? (outcome.failure?.class ?? outcome.error.message) : outcome.kind;
    expect(story.ends).toContain(kind);
    await lab.checkNothingUnknown();
    const { instances } = lab.broker.state();
    expect(story.there).toContainEqual([instances.length, instances.flatMap(({ bindings }) => bindings).length]);
    return { moments: lab.moments() };
  } catch (error) {
    return {
      moments: lab.moments(),
      fault: `killed at ${dieAt}: ${String(error)} after ${lab.sent().slice(0, 20).join(", ")}`,
    };
  }
}
