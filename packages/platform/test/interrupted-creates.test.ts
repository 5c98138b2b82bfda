import { describe, expect, test } from "vitest";
import type { Rule } from "../src/testing/index.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/**
 * A create is stopped at each of its moments, by a platform that dies and a user who has it deleted before another one goes on: in the end there is
 * nothing at the broker, or it is known to be there.
 */
const ways: Readonly<Record<string, { readonly offering?: string; readonly rules: readonly Rule[] }>> = {
  "done at once": { rules: [] },
  "done after a while": { rules: [{ call: "provision", do: ["async"] }] },
  "done, and the answer is lost": { offering: "unfetchable", rules: [{ call: "provision", do: ["done-reset"] }] },
  "done late": {
    offering: "unfetchable",
    rules: [{ call: "provision", do: [{ effect: "late", lateMs: 100, status: 500 }] }],
  },
  "done, and refused when it is asked for again": {
    offering: "unfetchable",
    rules: [
      { call: "provision", do: ["done-500"] },
      { call: "provision", do: "400" },
    ],
  },
  failed: { rules: [{ call: "provision", do: "async-fails" }] },
};

describe.each(Object.entries(ways))("E10-22, E10-23: a create that is %s", (_name, way) => {
  test("and is deleted at any moment leaves nothing", async () => {
    const { moments, left } = await interrupted(way, Number.POSITIVE_INFINITY);
    expect(left).toBe("nothing");
    const ends: string[] = [];
    for (let at = 1; at <= moments; at += 32) {
      const group = Array.from({ length: Math.min(32, moments - at + 1) }, (_, more) => interrupted(way, at + more));
      ends.push(...(await Promise.all(group)).map((end) => end.left));
    }
    expect(ends).toEqual(ends.map(() => "nothing"));
  });
});

async function interrupted({ offering, rules }: (typeof ways)[string], dieAt: number) {
  let deleted = "";
  const lab = await executionLab({
    dieAt,
    rules,
    timeoutMs: 60_000,
    pauses: { lateMs: 500 },
    ...(offering !== undefined && { offering }),
    whenDead: async (dead) => {
      await dead.cancelAll("db");
      deleted = await dead.accept("db", "delete", { mode: "drain", reason: null });
    },
  });
  lab.arm();
  await lab.ended("db", await lab.create("db"));
  lab.disarm();
  // Whoever was killed in the last moment is followed by another one first.
  await lab.data("db");
  if (deleted === "") deleted = await lab.delete("db");
  const { kind } = await lab.ended("db", deleted);
  await lab.quiet();
  return { moments: lab.moments(), left: told(lab, kind, dieAt) };
}

function told(lab: ExecutionLab, kind: string, dieAt: number): string {
  const { instances } = lab.broker.state();
  if (kind === "succeeded" && instances.length === 0) return "nothing";
  return `killed at ${dieAt}: the delete has ${kind}, ${instances.map(({ id }) => id)} are left, sent ${lab.sent()}`;
}
