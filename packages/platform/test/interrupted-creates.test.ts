import { describe, expect, test } from "vitest";
import { cancelReasons } from "../src/decisions/cancel-reasons.js";
import { keys } from "../src/records/keys.js";
import type { Rule } from "../src/testing/index.js";
import { type ExecutionLab, executionLab } from "./execution-lab.js";

/**
 * A create is stopped at each of its moments, by a platform that dies and a user who has it deleted before another one goes on: in the end there is
 * nothing at the broker, or it is known to be there.
 */
interface Way {
  readonly offering?: string;
  readonly rules: readonly Rule[];
  /** For how long something may come late: longer than a lease, where that is what matters. */
  readonly lateMs?: number;
}

const ways: Readonly<Record<string, Way>> = {
  "done at once": { rules: [] },
  "done after a while": { rules: [{ call: "provision", do: ["async"] }] },
  "done, and the answer is lost": { offering: "unfetchable", rules: [{ call: "provision", do: ["done-reset"] }] },
  "done late": {
    offering: "unfetchable",
    rules: [{ call: "provision", do: [{ effect: "late", lateMs: 100, status: 500 }] }],
  },
  "done late, by a broker that says before that it was deleted": {
    lateMs: 2_000,
    offering: "unfetchable",
    rules: [
      { call: "provision", do: [{ effect: "late", lateMs: 100, status: 500 }] },
      { call: "deprovision", do: [{ effect: "none", status: 200, body: {} }] },
    ],
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

test("E10-22: a create that is stopped at any moment, and resumed, has no id that the ledger deletes", async () => {
  // Those after these are moments of the ledger and of the second attempt.
  const ends = await Promise.all(Array.from({ length: 32 }, (_, at) => resumed(at + 1)));
  expect(ends.flatMap(({ fault }) => fault ?? [])).toEqual([]);
  expect(ends.some(({ hasNewId }) => hasNewId)).toBe(true);
});

test("P-ORPH-02: a create that is resumed, and of which something waits in the ledger for someone, makes nothing beside it", async () => {
  const held = async (dieAt: number) => {
    let [goesOn, hadRow] = ["", false];
    const lab = await executionLab({
      dieAt,
      rules: [{ call: "provision", instance: "osb-db", do: ["done-500", "done-500"] }],
      offering: "unfetchable",
      policy: { orphans: "hold" },
      timeoutMs: 60_000,
      whenDead: async (dead) => {
        hadRow = (await dead.orphans()).length > 0;
        goesOn = await dead.resume("db");
      },
    });
    lab.arm();
    await lab.ended("db", await lab.create("db"));
    lab.disarm();
    await lab.data("db");
    const end = goesOn === "" ? undefined : await lab.ended("db", goesOn);
    const isForgotten = lab.sent().includes("PUT osb-db-next");
    return { end: hadRow && !isForgotten ? end : undefined, sent: lab.sent() };
  };
  const ends = await Promise.all(Array.from({ length: 24 }, (_, at) => held(at + 1)));
  const beside = ends.flatMap(({ end, sent }) => (end === undefined ? [] : [{ end, sent }]));
  expect(beside.length).toBeGreaterThan(0);
  for (const { end, sent } of beside) {
    expect(end).toMatchObject({ failure: { uncertain: true, orphan: keys.orphan("broker", "osb-db", null) } });
    expect(sent).toEqual(["PUT osb-db", "PUT osb-db"]);
  }
});

test("E10-22: a delete of a create that was stopped after it had given its id to the ledger sends nothing beside it", async () => {
  const ends = await Promise.all(Array.from({ length: 24 }, (_, at) => deletedBesideLedger(at + 1)));
  const beside = ends.filter(({ hadRow }) => hadRow);
  expect(beside.length).toBeGreaterThan(0);
  expect(beside.flatMap(({ asUser }) => asUser)).toEqual([]);
});

test.each([
  ["done-500", "is nobody's"],
  ["409", "is never sent"],
] as const)(
  "E10-22, E10-63: of a bind (%s) that was stopped after it had given its id to the ledger the DELETE %s",
  async (answer, _sent) => {
    const ends = await Promise.all(Array.from({ length: 16 }, (_, at) => unboundBesideLedger(answer, at + 1)));
    const beside = ends.filter(({ hadRow }) => hadRow);
    expect(beside.length).toBeGreaterThan(0);
    expect(beside.flatMap(({ asUser }) => asUser)).toEqual([]);
  },
);

async function unboundBesideLedger(answer: "done-500" | "409", dieAt: number) {
  let [unbound, hadRow] = ["", false];
  const lab = await executionLab({
    dieAt,
    rules: [{ call: "bind", binding: "osb-db-app", do: answer }],
    offering: "unfetchable",
    timeoutMs: 60_000,
    // No row ends meanwhile, as what it has may come late.
    pauses: { lateMs: 3_600_000 },
    whenDead: async (dead) => {
      hadRow = (await dead.orphans()).length > 0;
      // Its broker is taken away and comes back: only that ends a bind that was sent.
      await dead.cancelAll("db", cancelReasons.unmanaged);
      unbound = await dead.accept("db", "unbind", { binding: "app" });
    },
  });
  await lab.ended("db", await lab.create("db"));
  lab.arm();
  await lab.ended("db", await lab.bind("db", "app"));
  lab.disarm();
  await lab.data("db");
  if (unbound !== "") await lab.ended("db", unbound);
  return { hadRow, asUser: deletesOfUsers(lab).filter((path) => path.endsWith("osb-db-app")) };
}

async function deletedBesideLedger(dieAt: number) {
  let [deleted, hadRow] = ["", false];
  const lab = await executionLab({
    dieAt,
    rules: [{ call: "provision", instance: "osb-db", do: "done-500" }],
    offering: "unfetchable",
    timeoutMs: 60_000,
    // No row ends meanwhile, as what it has may come late.
    pauses: { lateMs: 3_600_000 },
    whenDead: async (dead) => {
      hadRow = (await dead.orphans()).length > 0;
      await dead.cancelAll("db");
      deleted = await dead.accept("db", "delete", { mode: "drain", reason: null });
    },
  });
  lab.arm();
  await lab.ended("db", await lab.create("db"));
  lab.disarm();
  await lab.data("db");
  if (deleted !== "") await lab.ended("db", deleted);
  return { hadRow, asUser: deletesOfUsers(lab).filter((path) => path.endsWith("osb-db")) };
}

/** Paths of those in the name of who asked for it: the ledger's are nobody's (P-ID-03). */
function deletesOfUsers({ broker }: ExecutionLab): readonly string[] {
  const isUsers = (headers: Readonly<Record<string, unknown>>) =>
    headers["x-broker-api-originating-identity"] !== undefined;
  return broker
    .requests()
    .flatMap(({ method, headers, path }) => (method === "DELETE" && isUsers(headers) ? [path] : []));
}

async function resumed(dieAt: number) {
  let goesOn = "";
  const lab = await executionLab({
    dieAt,
    rules: [{ call: "provision", instance: "osb-db", do: ["done-500", "done-500"] }],
    offering: "unfetchable",
    timeoutMs: 60_000,
    whenDead: async (dead) => {
      goesOn = await dead.resume("db");
    },
  });
  lab.arm();
  const create = await lab.ended("db", await lab.create("db"));
  lab.disarm();
  const { kind } = goesOn === "" ? create : await lab.ended("db", goesOn);
  await lab.quiet();
  await lab.checkNothingUnknown();
  const osbId = (await lab.data("db"))?.osbId ?? null;
  const isThere = lab.broker.state().instances.some(({ id }) => id === osbId);
  const sent = lab.sent();
  const isSentAgain = sent.lastIndexOf("PUT osb-db") > sent.indexOf("DELETE osb-db") && sent.includes("DELETE osb-db");
  const isWell = kind === "succeeded" && isThere && !isSentAgain;
  return {
    hasNewId: goesOn !== "" && osbId !== "osb-db",
    ...(!isWell && { fault: `killed at ${dieAt}: the create has ${kind} as ${osbId}, sent ${sent}` }),
  };
}

async function interrupted({ offering, rules, lateMs = 500 }: Way, dieAt: number) {
  let deleted = "";
  const lab = await executionLab({
    dieAt,
    rules,
    timeoutMs: 60_000,
    pauses: { lateMs },
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
